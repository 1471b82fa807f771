"""How a command finds a running job: by options, by environment variables, or by the file that its driver wrote.

A driver that serves its job writes address and token into a folder of its user, readable by that user only, and deletes
the file when it ends. So `elastic status` needs no arguments on the driver's machine.
"""

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
_log = logging.getLogger(__name__)
URL, TOKEN = "ELASTIC_URL", "ELASTIC_TOKEN"


@dataclass(frozen=True)
class Connection:
    """The address of a job's server, and the token for changes, which repr does not show."""

    url: str
    job: str
    token: str = field(default="", repr=False)


def connection_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder where drivers of this user write their connections."""
    state = environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "spark-elastic" / "jobs"


@contextmanager
def announce(connection: Connection, environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Make the job discoverable by its name during the block.

    The newest driver of a name has its file: the one before may be about to end, because the newest took its job over.
    """
    folder = connection_folder(environ)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{connection.job}.json"
    if (other := dict(_read_connections(environ)).get(connection.job)) is not None and other["pid"] != os.getpid():
        _log.warning(
            "another driver on this machine runs a job named %s: commands find this one by its name from now on, "
            "and that one by --url %s. Give jobs of different stores different names.",
            connection.job,
            other["url"],
        )
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"url": connection.url, "job": connection.job, "token": connection.token, "pid": os.getpid()}, file)
    try:
        yield path
    finally:
        # It may be the file of another driver by now.
        if _read_connection(path).get("pid") == os.getpid():
            path.unlink(missing_ok=True)


def find_connection(job: str | None, url: str | None, token: str | None, environ: Mapping[str, str]) -> Connection:
    """Return the connection for these options; without a URL, that of a job of this user on this machine."""
    url, token = url or environ.get(URL), token or environ.get(TOKEN, "")
    if url is not None:
        if job is None:
            raise click.UsageError(f"{url} may serve several jobs. Name one with --job.")
        return Connection(url, job, token)
    known = dict(_read_connections(environ))
    if job is None and len(known) == 1:
        [job] = known
    if job is None or job not in known:
        raise click.UsageError(_explain_no_connection(job, sorted(known)))
    found = known[job]
    return Connection(found["url"], job, token or found["token"])


def _explain_no_connection(job: str | None, running: Sequence[str]) -> str:
    elsewhere = "use --url and --job for a driver on another machine"
    if not running:
        what = "no job" if job is None else f"no job {job!r}"
        return f"{what} of this user is running on this machine. Start one with `elastic run`, or {elsewhere}."
    if job is None:
        return f"several jobs are running: {', '.join(running)}. Name one with --job."
    return (
        f"no job {job!r} is running on this machine. Running: {', '.join(running)}. Name one of these, or {elsewhere}."
    )


def _read_connections(environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the connections of live drivers, and delete those that killed drivers left behind."""
    for path in sorted(connection_folder(environ).glob("*.json")):
        if not (connection := _read_connection(path)):
            continue
        if Path(f"/proc/{connection['pid']}").exists() or not Path("/proc/self").exists():
            yield path.stem, connection
        else:
            path.unlink(missing_ok=True)


def _read_connection(path: Path) -> dict[str, Any]:
    """Return what a connection file says, nothing if another driver of the same name is writing or deleting it."""
    try:
        connection = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return connection if isinstance(connection, dict) and {"url", "token", "pid"} <= connection.keys() else {}


def complete_jobs(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of running jobs of this user, for shell completion."""
    return [job for job, _ in _read_connections(os.environ) if job.startswith(incomplete)]


def connection_options(command: _Command) -> _Command:
    """Add the options that select a job; the command gets them as one argument, `connection`."""

    @wraps(command)
    def connected(job: str | None, url: str | None, token: str | None, **rest: Any) -> Any:
        return command(connection=find_connection(job, url, token, os.environ), **rest)

    for option in (
        click.option("--token", help=f"Token for changes; by default {TOKEN}, or the driver's connection file."),
        click.option("--url", help=f"Address of the driver's API; by default {URL}, or its connection file."),
        click.option("--job", shell_complete=complete_jobs, help="Name of the job; optional if only one is running."),
    ):
        connected = option(connected)
    return connected  # type: ignore[return-value]
