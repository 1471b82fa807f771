"""Checks on every request before it is parsed (host, origin, token, size), and headers on every response.

No route can forget the token: every request that is not a plain read needs it. A read that carries it may show more;
`is_authorized` tells.
"""

from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elastic.api.access import AllowedHosts, Token
from elastic.api.errors import CrossSiteRequest, HostNotAllowed, RequestTooLarge, Unauthorized
from elastic.api.problems import Problem, to_response

_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_MAX_BODY_BYTES = 64 * 1024  # the largest request names a thousand nodes
_AUTHORIZED = "is_authorized"  # in the state of a request

# The page loads files of this server only; it cannot be framed, and no form can be sent elsewhere.
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
_RESPONSE_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class RequestGuard:
    """ASGI middleware that refuses requests which must not reach a route, and adds security headers to responses."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts, token: Token) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _RESPONSE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, _limit_body(receive), send_with_headers)
        except (HostNotAllowed, CrossSiteRequest, Unauthorized, RequestTooLarge) as refused:
            await to_response(Problem.from_error(refused))(scope, receive, send_with_headers)

    def _check(self, scope: MutableMapping[str, Any]) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._hosts.allows(host):
            raise HostNotAllowed(host)
        # Browsers say which site sends a request. A link to this page is fine; a script of another page is not.
        cross_site = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if cross_site and headers.get("sec-fetch-mode") != "navigate":
            raise CrossSiteRequest
        authorization = headers.get("authorization", "").encode("latin-1")
        is_authorized = self._token.matches(authorization)
        if scope["method"] not in _READ_METHODS and not is_authorized:
            raise Unauthorized
        scope.setdefault("state", {})[_AUTHORIZED] = is_authorized
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > len(str(_MAX_BODY_BYTES)) or int(length) > _MAX_BODY_BYTES:
            raise RequestTooLarge(_MAX_BODY_BYTES)


def is_authorized(request: Request) -> bool:
    """Return whether a request carried the token."""
    return getattr(request.state, _AUTHORIZED, False) is True


def _limit_body(receive: Receive) -> Receive:
    """Return `receive` with a limit on the bytes read, for bodies that do not declare their length."""
    read = 0

    async def receive_limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > _MAX_BODY_BYTES:
            raise RequestTooLarge(_MAX_BODY_BYTES)
        return message

    return receive_limited
