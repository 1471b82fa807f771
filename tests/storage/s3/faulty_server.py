"""A server between the store and the real one, which fails requests on demand."""

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Request:
    """What the store asked."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What the real server said."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Exchange:
    """One request, and the ways to treat it: each fault uses one of them."""

    def __init__(self, handler: BaseHTTPRequestHandler, request: Request, server: "FaultyServer") -> None:
        self._handler = handler
        self.request = request
        self.server = server

    def forward(self) -> Answer:
        upstream = http.client.HTTPConnection(urlsplit(self.server.upstream).netloc, timeout=20)
        kept = {k: v for k, v in self.request.headers.items() if k.lower() not in {"expect", *self.server.strip}}
        try:
            upstream.request(self.request.method, self.request.path, self.request.body or None, kept)
            got = upstream.getresponse()
            return Answer(got.status, got.getheaders(), got.read())
        finally:
            upstream.close()

    def reply(self, answer: Answer, send: int | None = None) -> None:
        """Pass the answer on; if `send` is given, only that many bytes of its body, and then close."""
        self._handler.send_response_only(answer.status)
        for name, value in answer.headers:
            if name.lower() not in {"connection", "transfer-encoding"}:
                self._handler.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in answer.headers):
            self._handler.send_header("Content-Length", str(len(answer.body)))
        self._handler.end_headers()
        self._handler.wfile.write(answer.body[:send])
        if send is not None:
            self.hang_up()

    def write_slowly(self, data: bytes, pause_seconds: float) -> None:
        for byte in data:
            self._handler.wfile.write(bytes([byte]))
            if self.server.closing.wait(pause_seconds):
                return

    def hang_up(self) -> None:
        self._handler.close_connection = True


Fault = Callable[[Exchange], None]


def say(status: int, code: str) -> Fault:
    """An S3 error; the request does not reach the real server."""
    return answer(status, f"<Error><Code>{code}</Code><Message>on demand</Message></Error>")


def answer(status: int, xml: str) -> Fault:
    """This very answer; the request does not reach the real server."""
    body = f"<?xml version='1.0' encoding='UTF-8'?>{xml}".encode()
    return lambda exchange: exchange.reply(Answer(status, [("Content-Type", "application/xml")], body))


def hang_up(exchange: Exchange) -> None:
    """No answer at all; the request does not reach the real server."""
    exchange.hang_up()


def lose_answer(exchange: Exchange) -> None:
    """The real server does what was asked, and the store does not hear of it."""
    exchange.forward()
    exchange.hang_up()


def truncate(exchange: Exchange) -> None:
    """Half of the answer's body."""
    real = exchange.forward()
    exchange.reply(real, send=len(real.body) // 2)


def flip_a_bit(exchange: Exchange) -> None:
    """The whole answer, with one bit of its body wrong."""
    real = exchange.forward()
    body = bytearray(real.body)
    body[len(body) // 3] ^= 4
    exchange.reply(Answer(real.status, real.headers, bytes(body)))


def stall(exchange: Exchange) -> None:
    """Silence for longer than any test waits."""
    exchange.server.closing.wait(30)
    exchange.hang_up()


def trickle(exchange: Exchange) -> None:
    """An answer whose body never ends, though its bytes keep coming."""
    real = exchange.forward()
    exchange.reply(Answer(real.status, real.headers, b""))
    exchange.write_slowly(real.body, pause_seconds=0.05)
    exchange.hang_up()


@dataclass
class FaultyServer:
    """A proxy on loopback. Faults are used up in the order they were given; without any, everything passes."""

    upstream: str
    strip: frozenset[str] = frozenset()  # headers that this server does not understand, in small letters
    when: Callable[[Request], Fault | None] = lambda _: None  # a fault that depends on the request, for good
    seen: list[Request] = field(default_factory=list)
    closing: Event = field(default_factory=Event)
    endpoint: str = ""
    _faults: list[tuple[Fault, Callable[[Request], bool]]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def fail(self, fault: Fault, times: int = 1, where: Callable[[Request], bool] = lambda _: True) -> None:
        """The next requests go wrong, or the next ones of some kind."""
        with self._lock:
            self._faults += [(fault, where)] * times

    def behave(self) -> None:
        """Forget all faults and requests."""
        with self._lock:
            self._faults.clear()
            self.seen.clear()
            self.when = lambda _: None

    @property
    def faults_left(self) -> int:
        return len(self._faults)

    def url(self, bucket: str, prefix: str = "") -> str:
        return f"s3://{bucket}/{prefix}?endpoint={self.endpoint}"

    def fault_for(self, request: Request) -> Fault | None:
        with self._lock:
            self.seen.append(request)
            for index, (fault, where) in enumerate(self._faults):
                if where(request):
                    del self._faults[index]
                    return fault
        return self.when(request)

    @contextmanager
    def running(self) -> Iterator["FaultyServer"]:
        server = _Listener(("127.0.0.1", 0), _handler_of(self))
        self.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self.closing.set()
            server.shutdown()
            thread.join()
            server.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True  # a kept-alive connection must not hold up the end of a test

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what these tests are about."""


def _handler_of(faulty: FaultyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, self.headers, body)
            exchange = Exchange(self, request, faulty)
            fault = faulty.fault_for(request)
            if fault is None:
                exchange.reply(exchange.forward())
            else:
                fault(exchange)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815

    return Handler
