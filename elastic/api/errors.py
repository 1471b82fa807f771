"""Errors of the API. Each keeps its facts as attributes, and its message ends with what to do.

ElasticError
├── TokenRequired (also a ValueError)   an address beyond this machine needs a token chosen by the user
├── WeakToken (also a ValueError)       a token that can be guessed, or that no header can carry
├── CannotListen                        an address or port that cannot be bound
├── Unauthorized                        a change without the right token
├── HostNotAllowed                      a Host header that names another server: DNS rebinding
├── CrossSiteRequest                    a request from another site's page
├── RequestTooLarge                     a body above the limit
├── UnknownJob                          the server has no job of that name
├── UnknownMigration                    the server has no migration of that number
├── MigrationOver                       a migration that has ended cannot be paused, resumed or cancelled
└── TooManyListeners                    all event streams are in use
"""

from collections.abc import Iterable

from elastic.errors import ElasticError


class TokenRequired(ElasticError, ValueError):
    """An address beyond this machine needs a token chosen by the user; nothing was started."""

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(
            f"host {host!r} opens the API to the network, and no token was given. "
            "Give token=, a secret of your own, or use host='127.0.0.1'."
        )


class WeakToken(ElasticError, ValueError):
    """A token that can be guessed, or that no header can carry; nothing was started."""

    def __init__(self, min_length: int) -> None:
        self.min_length = min_length
        super().__init__(
            f"a token needs at least {min_length} printable ASCII characters without spaces. "
            "Use secrets.token_urlsafe(), or omit the token to have one generated."
        )


class CannotListen(ElasticError):
    """An address or port that cannot be bound; nothing was started."""

    def __init__(self, host: str, port: int, why: str) -> None:
        self.host = host
        self.port = port
        self.why = why
        super().__init__(
            f"the API cannot listen on port {port} of {host!r}: {why}. Use another port, or 0 for any free port."
        )


class Unauthorized(ElasticError):
    """A change without the right token; nothing was changed."""

    def __init__(self) -> None:
        super().__init__(
            "a change needs the server's token. Give it in the header 'Authorization: Bearer ...'; "
            "the user who started the server has it."
        )


class HostNotAllowed(ElasticError):
    """A Host header that names another server, as after DNS rebinding."""

    def __init__(self, host: str) -> None:
        self.host = host[:100]
        super().__init__(
            f"host {self.host!r} is not allowed. Use the server's IP address, or start it with allowed_hosts=[...]."
        )


class CrossSiteRequest(ElasticError):
    """A request that another site's page sends from a user's browser."""

    def __init__(self) -> None:
        super().__init__("requests from pages of other sites are refused. Open the page of this server instead.")


class RequestTooLarge(ElasticError):
    """A body above the limit; the server stopped reading it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"the request is larger than {limit:,} bytes. Give only fields that the API describes.")


class UnknownJob(ElasticError):
    """The server has no job of that name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name[:100]
        self.known = tuple(known)
        super().__init__(f"this server has no job {self.name!r}. Use one of {', '.join(self.known)}.")


class UnknownMigration(ElasticError):
    """The server has no migration of that number."""

    def __init__(self, number: int, known: Iterable[int]) -> None:
        self.number = number
        self.known = tuple(known)
        range_text = f"it has {min(self.known)} to {max(self.known)}" if self.known else "it has seen none yet"
        super().__init__(f"this server has no migration {number}: {range_text}. Look at the journal for older ones.")


class MigrationOver(ElasticError):
    """A migration that has ended cannot be paused, resumed or cancelled."""

    def __init__(self, number: int, outcome: str) -> None:
        self.number = number
        self.outcome = outcome
        super().__init__(f"migration {number} has ended ({outcome}) and cannot be changed. Ask for a new one.")


class TooManyListeners(ElasticError):
    """All event streams are in use."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"all {limit} event streams are in use. Close one of them, or read the snapshot instead.")
