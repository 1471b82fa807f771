"""Who may call: addresses, names and tokens. Pure."""

import secrets
import socket
from collections.abc import Iterable
from ipaddress import ip_address

from elastic.api.errors import OpenToAll, WeakToken

_TOKEN_BYTES = 32
_LEAST_TOKEN_LENGTH = 16


class Token:
    """The secret that every change needs. It is compared in constant time and never shown by accident."""

    def __init__(self, secret: str) -> None:
        printable = secret.isascii() and secret.isprintable() and not any(map(str.isspace, secret))
        if len(secret) < _LEAST_TOKEN_LENGTH or not printable:
            raise WeakToken(_LEAST_TOKEN_LENGTH)
        self.secret = secret

    @classmethod
    def for_host(cls, host: str, given: str | None) -> "Token":
        """The given one, or a fresh one; but who opens the API to the network must choose it himself."""
        if given is None:
            if not is_loopback(host):
                raise OpenToAll(host)
            return cls(secrets.token_urlsafe(_TOKEN_BYTES))
        return cls(given)

    def allows(self, authorization: bytes | None) -> bool:
        """Whether this header carries the token."""
        scheme, _, given = (authorization or b"").partition(b" ")
        return secrets.compare_digest(given.strip(), self.secret.encode()) and scheme.lower() == b"bearer"

    def __repr__(self) -> str:
        return "Token(...)"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Names:
    """Under which names a server may be called.

    A page that rebinds its own name to our address still sends that name as the host. So an address is always right
    (on loopback: a loopback address), and a name only if it is known to be ours.
    """

    def __init__(self, host: str, names: Iterable[str] = ()) -> None:
        self._only_loopback = is_loopback(host)
        own = ["localhost"] if self._only_loopback else ["localhost", host, socket.gethostname()]
        self._known = {name.lower() for name in (*own, *names)}

    def allow(self, header: str) -> bool:
        name = _without_port(header).lower()
        try:
            address = ip_address(name.strip("[]"))
        except ValueError:
            return name in self._known
        return address.is_loopback or not self._only_loopback


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.partition(":")[0]
