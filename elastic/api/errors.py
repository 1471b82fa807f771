"""What the API refuses, each with the facts and a last sentence that says what to do.

ElasticError
├── OpenToAll (also a ValueError)   an address beyond this machine, without a token of the user's own
├── WeakToken (also a ValueError)   a token that could be guessed, or that no header can carry
├── CannotListen                    an address or port that cannot be bound
├── NotAllowed                      a change without the right token
├── ForeignHost                     a request under a name that is not this server's: DNS rebinding
├── ForeignPage                     a request that another site's page makes
├── TooLarge                        a body above the limit
├── NotServed                       a job of that name is not served here
├── UnknownMigration                no migration of that number is known
├── MigrationOver                   a migration that has ended can neither be paused, resumed nor cancelled
└── TooManyListeners                all event streams are taken
"""

from collections.abc import Iterable

from elastic.errors import ElasticError


class OpenToAll(ElasticError, ValueError):
    """An address beyond this machine, without a token of the user's own; nothing was started."""

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(
            f"host {host!r} opens the API to the network, and no token was given. "
            "Give token=, a secret of your own, or use host='127.0.0.1'."
        )


class WeakToken(ElasticError, ValueError):
    """A token that could be guessed, or that no header can carry; nothing was started."""

    def __init__(self, least: int) -> None:
        self.least = least
        super().__init__(
            f"a token needs at least {least} printable ASCII characters without spaces. "
            "Use secrets.token_urlsafe(), or leave it out."
        )


class CannotListen(ElasticError):
    """An address or port that cannot be bound; nothing was started."""

    def __init__(self, host: str, port: int, why: str) -> None:
        self.host = host
        self.port = port
        self.why = why
        super().__init__(f"the API cannot listen on port {port} of {host!r}: {why}. Use another port, or 0 for any.")


class NotAllowed(ElasticError):
    """A change without the right token; nothing was changed."""

    def __init__(self) -> None:
        super().__init__(
            "a change needs the server's token. Give it in the header 'Authorization: Bearer ...'; "
            "whoever started the server has it."
        )


class ForeignHost(ElasticError):
    """A request under a name that is not this server's, as a rebound DNS name would bring it."""

    def __init__(self, host: str) -> None:
        self.host = host[:100]
        super().__init__(f"{self.host!r} is not a name of this server. Use its address, or start it with names=[...].")


class ForeignPage(ElasticError):
    """A request that another site's page makes in somebody's browser."""

    def __init__(self) -> None:
        super().__init__("pages of other sites may not ask here. Open the page of this server instead.")


class TooLarge(ElasticError):
    """A body above the limit; it was not read to its end."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"the request is larger than {limit:,} bytes. Give only what the API describes.")


class NotServed(ElasticError):
    """A job of that name is not served here."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name[:100]
        self.known = tuple(known)
        super().__init__(f"there is no job {self.name!r} here. Use one of {', '.join(self.known)}.")


class UnknownMigration(ElasticError):
    """No migration of that number is known."""

    def __init__(self, number: int, known: Iterable[int]) -> None:
        self.number = number
        self.known = tuple(known)
        there = f"the known ones are {min(self.known)} to {max(self.known)}" if self.known else "there was none yet"
        super().__init__(f"there is no migration {number}: {there}. Look at the journal for older ones.")


class MigrationOver(ElasticError):
    """A migration that has ended can neither be paused, resumed nor cancelled."""

    def __init__(self, number: int, outcome: str) -> None:
        self.number = number
        self.outcome = outcome
        super().__init__(f"migration {number} is over ({outcome}): nothing of it can be changed. Ask for a new one.")


class TooManyListeners(ElasticError):
    """All event streams are taken."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(f"{most} clients listen already. Close one of them, or ask for the snapshot instead.")
