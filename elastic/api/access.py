"""Access control: tokens and allowed host names. Pure."""

import secrets
import socket
from collections.abc import Iterable
from ipaddress import ip_address

from elastic.api.errors import TokenRequired, WeakToken

_TOKEN_BYTES = 32
_MIN_TOKEN_LENGTH = 16


class Token:
    """The secret that every change needs. It is compared in constant time, and its repr does not show it."""

    def __init__(self, secret: str) -> None:
        printable = secret.isascii() and secret.isprintable() and not any(map(str.isspace, secret))
        if len(secret) < _MIN_TOKEN_LENGTH or not printable:
            raise WeakToken(_MIN_TOKEN_LENGTH)
        self.secret = secret

    @classmethod
    def for_host(cls, host: str, secret: str | None) -> "Token":
        """Return the given token or a generated one; beyond loopback the token must be given."""
        if secret is None:
            if not is_loopback(host):
                raise TokenRequired(host)
            return cls(secrets.token_urlsafe(_TOKEN_BYTES))
        return cls(secret)

    def matches(self, authorization: bytes | None) -> bool:
        """Return whether this Authorization header carries the token."""
        scheme, _, credentials = (authorization or b"").partition(b" ")
        return secrets.compare_digest(credentials.strip(), self.secret.encode()) and scheme.lower() == b"bearer"

    def __repr__(self) -> str:
        return "Token(...)"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class AllowedHosts:
    """The Host headers that a server accepts, as a defence against DNS rebinding.

    A page that rebinds its own name to the server's address still sends that name as the host. So IP addresses are
    accepted (on loopback: loopback addresses), names only if they are known.
    """

    def __init__(self, host: str, names: Iterable[str] = ()) -> None:
        self._loopback_only = is_loopback(host)
        own = ["localhost"] if self._loopback_only else ["localhost", host, socket.gethostname()]
        self._names = {name.lower() for name in (*own, *names)}

    def allows(self, header: str) -> bool:
        name = _strip_port(header).lower()
        try:
            address = ip_address(name.strip("[]"))
        except ValueError:
            return name in self._names
        return address.is_loopback or not self._loopback_only


def _strip_port(header: str) -> str:
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.partition(":")[0]
