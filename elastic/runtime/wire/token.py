"""Who may call: every call carries a token that only this life of this application can know."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from pyarrow import flight

from storage import Secret

HEADER = "authorization"


def wire_token(secret: Secret, life: str) -> str:
    """The token of one life of a job: processes of an earlier life, and strangers, do not have it."""
    return hmac.new(secret.reveal(), f"spark-elastic wire {life}".encode(), hashlib.sha256).hexdigest()


class TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses every call without the token, before anything of it is read."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}"

    def start_call(self, _info: Any, headers: Mapping[str, list[str]]) -> None:
        given = next((values[0] for name, values in headers.items() if name.lower() == HEADER), "")
        if not hmac.compare_digest(given, self._expected):
            raise flight.FlightUnauthenticatedError("the call carries no valid token of this application")
