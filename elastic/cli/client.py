"""A client for a job's API, and the exit codes of its failures."""

from collections.abc import Mapping
from typing import Any

import click

from elastic.cli.connection import TOKEN, Connection
from elastic.errors import MissingPackage

_TIMEOUT_SECONDS = 30.0
_UNAUTHORIZED = 401


class RequestFailed(click.ClickException):
    """The server refused a request; its message ends with what to do."""

    exit_code = 1


class JobNotFound(RequestFailed):
    """The server has no such job or migration. The exit code is click's for wrong arguments."""

    exit_code = 2


class Unreachable(RequestFailed):
    """The server did not respond."""

    exit_code = 3


class Conflict(RequestFailed):
    """Another migration is in progress."""

    exit_code = 4


class MigrationFailed(RequestFailed):
    """The migration that the command started has failed."""

    exit_code = 5


class MigrationCancelled(RequestFailed):
    """The migration that the command started was cancelled."""

    exit_code = 6


_ERRORS: Mapping[int, type[RequestFailed]] = {404: JobNotFound, 409: Conflict}


class Client:
    """Sends requests about one job to its server, for as long as the command runs."""

    def __init__(self, connection: Connection, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        try:
            import httpx2 as httpx
        except ModuleNotFoundError as missing:
            raise click.ClickException(str(MissingPackage("talking to a job", "httpx2", "api"))) from missing
        self._httpx = httpx
        self._connection = connection
        headers = {"Authorization": f"Bearer {connection.token}"} if connection.token else {}
        base = f"{connection.url.rstrip('/')}/api/v1/jobs/{connection.job}/"
        http = httpx.Client(base_url=base, headers=headers, timeout=timeout_seconds, trust_env=False)
        self._http = click.get_current_context().with_resource(http)

    def get(self, path: str, **query: Any) -> Any:
        return self._request("GET", path, params={name: value for name, value in query.items() if value is not None})

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._request("POST", path, json=body)

    def _request(self, method: str, path: str, **options: Any) -> Any:
        url = self._connection.url
        try:
            response = self._http.request(method, path, **options)
        except self._httpx.HTTPError as error:
            raise Unreachable(f"no response from {url}: {error}. Check that the driver is still running.") from error
        if response.status_code == _UNAUTHORIZED:
            raise RequestFailed(
                f"the server at {url} refuses a change without its token. Give it with --token or in {TOKEN}; "
                "the user who started the job finds it in the job's connection file."
            )
        try:
            document = response.json()
            if response.is_success:
                return document
            message = str(document.get("detail") or document.get("title"))
        except (ValueError, AttributeError):
            message = (
                f"the server at {url} responded with status {response.status_code} and is not the API of a job. "
                "Check the address."
            )
        raise _ERRORS.get(response.status_code, RequestFailed)(message)
