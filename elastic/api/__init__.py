"""The HTTP API beside a running job, and the live page on top of it. The only package that knows an HTTP library.

Started by `serve` in the driver process; reads are open, every change needs the server's token. See docs/api.md.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elastic.api.port import ServedJob
from elastic.errors import MissingPackage

if TYPE_CHECKING:
    from elastic.api.server import Server

__all__ = ["ServedJob", "serve"]


def serve(
    jobs: ServedJob | Sequence[ServedJob],
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    names: Sequence[str] = (),
) -> "Server":
    """Serve these jobs over HTTP in a thread of its own, until `Server.stop`; port 0 is any free one.

    Without a `token` one is made. `OpenToAll` if the host is not loopback and no token was given. `names` are the host
    names by which clients may call, besides the host itself.
    """
    try:
        from elastic.api.server import Server
    except ModuleNotFoundError as missing:
        raise MissingPackage("the HTTP API", missing.name or "fastapi", "api") from missing
    return Server(jobs if isinstance(jobs, Sequence) else [jobs], host, port, token, names)
