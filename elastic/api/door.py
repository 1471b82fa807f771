"""What every request passes before anything of it is parsed: name, origin, token, size; and what every answer carries.

A route cannot forget to ask for the token: whatever is not a plain read needs it.
"""

from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elastic.api.access import Names, Token
from elastic.api.errors import ForeignHost, ForeignPage, NotAllowed, TooLarge
from elastic.api.problems import Problem, answer

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_BYTES = 64 * 1024  # the largest request names a thousand nodes

# The page is files of this server and nothing else; nobody may frame it, and no form may leave it.
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
_ALWAYS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Door:
    """ASGI middleware: refuses what may not come in, and marks what goes out."""

    def __init__(self, app: ASGIApp, names: Names, token: Token) -> None:
        self._app = app
        self._names = names
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, _counted(receive), marked)
        except (ForeignHost, ForeignPage, NotAllowed, TooLarge) as refused:
            await answer(Problem.of(refused))(scope, receive, marked)

    def _check(self, scope: MutableMapping[str, Any]) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._names.allow(host):
            raise ForeignHost(host)
        # Browsers say where a request comes from; following a link is no request of the page that has it.
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if foreign and headers.get("sec-fetch-mode") != "navigate":
            raise ForeignPage
        if scope["method"] not in _READS and not self._token.allows(headers.get("authorization", "").encode("latin-1")):
            raise NotAllowed
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > len(str(_MOST_BYTES)) or int(length) > _MOST_BYTES:
            raise TooLarge(_MOST_BYTES)


def _counted(receive: Receive) -> Receive:
    """The same, but a body that does not say its length is not read beyond the limit either."""
    read = 0

    async def counting() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > _MOST_BYTES:
            raise TooLarge(_MOST_BYTES)
        return message

    return counting
