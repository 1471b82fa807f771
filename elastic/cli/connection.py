"""Where a running job can be reached: told on the command line, in the environment, or by a file that its driver left.

A driver that serves its job writes the address and the token into the user's own folder, readable by nobody else, and
takes it away when it ends. So `elastic status` needs no arguments on the machine of the driver.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
URL, TOKEN = "ELASTIC_URL", "ELASTIC_TOKEN"
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


@dataclass(frozen=True)
class Connection:
    """A job behind a server; the token is for changes only, and never shown."""

    url: str
    job: str
    token: str = field(default="", repr=False)


def folder(environ: Mapping[str, str]) -> Path:
    """Where drivers of this user say where they are."""
    state = environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "spark-elastic" / "jobs"


@contextmanager
def announced(connection: Connection, environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """The job can be found by its name until the end of the block."""
    place = folder(environ)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = place / f"{connection.job}.json"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"url": connection.url, "job": connection.job, "token": connection.token, "pid": os.getpid()}, file)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def found(job: str | None, url: str | None, token: str | None, environ: Mapping[str, str]) -> Connection:
    """What was given counts; what was not is looked for among the jobs of this user."""
    url, token = url or environ.get(URL), token or environ.get(TOKEN, "")
    if url is not None:
        if job is None:
            raise click.UsageError(f"{url} may serve several jobs. Name one with --job.")
        return Connection(url, job, token)
    known = dict(_announcements(environ))
    if job is None and len(known) == 1:
        [job] = known
    if job is None or job not in known:
        running = ", ".join(sorted(known)) or "none that was started with `elastic run` or `elastic demo`"
        asked = f"there is no job {job!r} here" if job is not None else "which job?"
        raise click.UsageError(f"{asked} Running: {running}. Use --job, or --url for a driver elsewhere.")
    announcement = known[job]
    return Connection(announcement["url"], job, token or announcement["token"])


def _announcements(environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of drivers that live; what a killed one left is taken away."""
    for path in sorted(folder(environ).glob("*.json")):
        try:
            announcement = json.loads(path.read_text())
            alive = Path(f"/proc/{announcement['pid']}").exists() if Path("/proc/self").exists() else True
        except (OSError, ValueError, KeyError):
            continue  # another driver of the same name is just writing it
        if alive:
            yield path.stem, announcement
        else:
            path.unlink(missing_ok=True)


def jobs_here(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Completes the names of jobs that run here."""
    return [job for job, _ in _announcements(os.environ) if job.startswith(incomplete)]


def reaching(command: _Command) -> _Command:
    """The options by which a command finds its job; they become one argument, `connection`."""

    @wraps(command)
    def connected(job: str | None, url: str | None, token: str | None, **rest: Any) -> Any:
        return command(connection=found(job, url, token, os.environ), **rest)

    for option in (
        click.option("--token", help=f"For changes; or {TOKEN}, or the file that the driver left."),
        click.option("--url", help=f"Of the driver's API; or {URL}, or the file that the driver left."),
        click.option("--job", shell_complete=jobs_here, help="Its name; not needed if only one runs here."),
    ):
        connected = option(connected)
    return connected  # type: ignore[return-value]
