"""Calls to a job's API, and what becomes of its answers on the command line."""

from typing import Any

import click

from elastic.cli.connection import Connection
from elastic.errors import MissingPackage

_SECONDS = 30.0
UNREACHABLE, REFUSED, CONFLICT = 3, 1, 4  # exit codes; 2 is click's, for arguments that make no sense


class Refused(click.ClickException):
    """The server said no; its sentence ends with what to do."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code


class Client:
    """One job behind one server, for as long as the command runs."""

    def __init__(self, connection: Connection) -> None:
        try:
            import httpx
        except ModuleNotFoundError as missing:
            raise click.ClickException(str(MissingPackage("talking to a job", "httpx", "api"))) from missing
        self._httpx = httpx
        self._connection = connection
        headers = {"Authorization": f"Bearer {connection.token}"} if connection.token else {}
        base = f"{connection.url.rstrip('/')}/api/v1/jobs/{connection.job}/"
        http = httpx.Client(base_url=base, headers=headers, timeout=_SECONDS, trust_env=False)
        self._http = click.get_current_context().with_resource(http)

    def get(self, path: str, **query: Any) -> Any:
        return self._answer("GET", path, params={name: value for name, value in query.items() if value is not None})

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._answer("POST", path, json=body)

    def _answer(self, method: str, path: str, **how: Any) -> Any:
        try:
            answer = self._http.request(method, path, **how)
        except self._httpx.HTTPError as error:
            raise Refused(
                f"no answer from {self._connection.url}: {error}. Is the driver still running?", UNREACHABLE
            ) from error
        if answer.is_success:
            return answer.json()
        raise Refused(_told(answer), CONFLICT if answer.status_code == 409 else REFUSED)


def _told(answer: Any) -> str:
    try:
        problem = answer.json()
        return str(problem.get("detail") or problem.get("title"))
    except (ValueError, AttributeError):
        return f"the server answered {answer.status_code}. Is that the API of a job?"
