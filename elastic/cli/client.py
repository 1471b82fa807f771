"""Calls to a job's API, and what becomes of its answers on the command line."""

from collections.abc import Mapping
from typing import Any

import click

from elastic.cli.connection import Connection
from elastic.errors import MissingPackage

_SECONDS = 30.0


class Refused(click.ClickException):
    """The server said no; its sentence ends with what to do."""

    exit_code = 1


class Unknown(Refused):
    """It serves no such job. The code is click's for arguments that make no sense, as for a job that is not here."""

    exit_code = 2


class Unreachable(Refused):
    """Nobody answered."""

    exit_code = 3


class Conflict(Refused):
    """Something else is under way."""

    exit_code = 4


class Failed(Refused):
    """A migration that was begun failed."""

    exit_code = 5


class Cancelled(Refused):
    """A migration that was begun was cancelled."""

    exit_code = 6


_REFUSALS: Mapping[int, type[Refused]] = {404: Unknown, 409: Conflict}


class Client:
    """One job behind one server, for as long as the command runs."""

    def __init__(self, connection: Connection, seconds: float = _SECONDS) -> None:
        try:
            import httpx2 as httpx
        except ModuleNotFoundError as missing:
            raise click.ClickException(str(MissingPackage("talking to a job", "httpx2", "api"))) from missing
        self._httpx = httpx
        self._connection = connection
        headers = {"Authorization": f"Bearer {connection.token}"} if connection.token else {}
        base = f"{connection.url.rstrip('/')}/api/v1/jobs/{connection.job}/"
        http = httpx.Client(base_url=base, headers=headers, timeout=seconds, trust_env=False)
        self._http = click.get_current_context().with_resource(http)

    def get(self, path: str, **query: Any) -> Any:
        return self._answer("GET", path, params={name: value for name, value in query.items() if value is not None})

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._answer("POST", path, json=body)

    def _answer(self, method: str, path: str, **how: Any) -> Any:
        try:
            answer = self._http.request(method, path, **how)
        except self._httpx.HTTPError as error:
            raise Unreachable(
                f"no answer from {self._connection.url}: {error}. Is the driver still running?"
            ) from error
        try:
            said = answer.json()
            if answer.is_success:
                return said
            told = str(said.get("detail") or said.get("title"))
        except (ValueError, AttributeError):
            told = f"the server answered {answer.status_code}, and no API does so. Is {self._connection.url} a job's?"
        raise _REFUSALS.get(answer.status_code, Refused)(told)
