"""The HTTP API of running jobs, with a live page. The only package that imports an HTTP library.

`serve` starts it in the driver process. Reads are open; every change needs the server's token. See docs/api.md.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elastic.api.served_job import ServedJob
from elastic.errors import MissingPackage

if TYPE_CHECKING:
    from elastic.api.server import Server

__all__ = ["ServedJob", "serve"]


def serve(
    jobs: ServedJob | Sequence[ServedJob],
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    allowed_hosts: Sequence[str] = (),
) -> "Server":
    """Serve these jobs over HTTP in a background thread until `Server.stop`; port 0 selects a free port.

    Without a `token` the server generates one; beyond loopback a token is required (`TokenRequired`). Requests must
    address the server by IP address, by `host`, or by one of `allowed_hosts`.
    """
    try:
        from elastic.api.server import Server
    except ModuleNotFoundError as missing:
        raise MissingPackage("the HTTP API", missing.name or "fastapi", "api") from missing
    return Server(jobs if isinstance(jobs, Sequence) else [jobs], host, port, token, allowed_hosts)
