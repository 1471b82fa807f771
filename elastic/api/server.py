"""The HTTP server: a socket, and a thread that serves it."""

import logging
import socket
import threading
from collections.abc import Sequence

import uvicorn

from elastic.api.access import AllowedHosts, Token
from elastic.api.application import create_application
from elastic.api.connections import MAX_CONNECTIONS, RESERVED_CONNECTIONS, BoundedConnection
from elastic.api.errors import CannotListen
from elastic.api.registry import JobRegistry
from elastic.api.served_job import ServedJob

_log = logging.getLogger(__name__)
_START_SECONDS = 10.0
_STOP_SECONDS = 5.0
_GRACE_SECONDS = 2  # for responses in progress
_MAX_PORT = 65_535
_BACKLOG = 128  # connections that the kernel queues for the server
_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - for comparison only


class Server:
    """Serves jobs until it is stopped. It may outlive its jobs, and then shows them as ended."""

    def __init__(
        self,
        jobs: Sequence[ServedJob],
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        self._token = Token.for_host(host, token)
        self._registry = JobRegistry(jobs)
        self._app = create_application(self._registry, AllowedHosts(host, allowed_hosts), self._token)
        self._socket = _bind(host, port)
        self.url = _format_url(host, self._socket.getsockname()[1])
        config = uvicorn.Config(
            self._app,
            log_config=None,  # the program configures logging itself
            access_log=False,
            server_header=False,
            http=BoundedConnection,
            backlog=_BACKLOG,
            limit_concurrency=MAX_CONNECTIONS + RESERVED_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="elastic-api", daemon=True)
        self._registry.start()
        self._thread.start()
        self._wait_until_started()
        _log.info("serving the API of %s at %s", ", ".join(job.name for job in jobs), self.url)

    @property
    def token(self) -> str:
        """The secret that every change needs; keep it confidential."""
        return self._token.secret

    def stop(self) -> None:
        """Close all event streams, then the server. The jobs continue."""
        self._app.state.listeners.close()
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)
        self._registry.stop()
        self._socket.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Server({self.url})"

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def _wait_until_started(self) -> None:
        pause = threading.Event()
        for _ in range(round(_START_SECONDS / 0.01)):
            if self._server.started or not self._thread.is_alive():
                return
            pause.wait(0.01)


def _bind(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _MAX_PORT:  # resolvers wrap larger numbers around
        raise CannotListen(host, port, f"ports range from 0 to {_MAX_PORT:,}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as cause:
        raise CannotListen(host, port, cause.strerror or str(cause)) from cause
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as cause:
        bound.close()
        raise CannotListen(host, port, cause.strerror or str(cause)) from cause
    return bound


def _format_url(host: str, port: int) -> str:
    name = socket.gethostname() if host in _WILDCARDS else host.strip("[]")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
