"""The API at work: a socket, and a thread that answers."""

import logging
import socket
import threading
from collections.abc import Sequence

import uvicorn

from elastic.api.access import Names, Token
from elastic.api.application import application
from elastic.api.board import Board
from elastic.api.connections import MOST_CONNECTIONS, RESERVED_CONNECTIONS, BoundedConnection
from elastic.api.errors import CannotListen
from elastic.api.port import ServedJob

_log = logging.getLogger(__name__)
_START_SECONDS = 10.0
_STOP_SECONDS = 5.0
_GRACE_SECONDS = 2  # for answers under way
_LAST_PORT = 65_535
_BACKLOG = 128  # connections that the system accepts ahead of the server: their descriptors count too
_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


class Server:
    """Serves some jobs until it is stopped. Jobs may end before it: they are then shown as ended."""

    def __init__(
        self,
        jobs: Sequence[ServedJob],
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self._token = Token.for_host(host, token)
        self._board = Board(jobs)
        self._app = application(self._board, Names(host, names), self._token)
        self._socket = _bound(host, port)
        self.url = _url(host, self._socket.getsockname()[1])
        config = uvicorn.Config(
            self._app,
            log_config=None,  # the program's own logging counts
            access_log=False,
            server_header=False,
            http=BoundedConnection,
            backlog=_BACKLOG,
            limit_concurrency=MOST_CONNECTIONS + RESERVED_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="elastic-api", daemon=True)
        self._board.start()
        self._thread.start()
        self._wait_until_started()
        _log.info("the API of %s is at %s", ", ".join(job.name for job in jobs), self.url)

    @property
    def token(self) -> str:
        """What every change needs; keep it to yourself."""
        return self._token.secret

    def stop(self) -> None:
        """Ends all event streams, and then the server. The jobs go on."""
        self._app.state.listeners.close()
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)
        self._board.stop()
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
        waiting = threading.Event()
        for _ in range(round(_START_SECONDS / 0.01)):
            if self._server.started or not self._thread.is_alive():
                return
            waiting.wait(0.01)


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _LAST_PORT:  # beyond that, resolvers wrap around
        raise CannotListen(host, port, f"ports are 0 to {_LAST_PORT:,}")
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


def _url(host: str, port: int) -> str:
    name = socket.gethostname() if host in _WILDCARDS else host.strip("[]")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
