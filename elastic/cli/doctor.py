"""`elastic doctor`: what is missing on this machine, and how to mend it."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

import storage
from elastic.cli.waiting import waiting
from elastic.errors import ElasticError
from elastic.secret import application_secret
from storage.errors import StorageError

_LEAST_JAVA = 17
_LEAST_SPARK = (4, 3)
_MOST_SKEW_SECONDS = 5.0  # leases and manifests need no clocks, but people who compare logs do
_LEAST_FREE_MB = 1_000


class Finding(NamedTuple):
    """What a check found; `mend` is empty if all is well."""

    what: str
    mend: str = ""


def java(_: str) -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    install = "Install Java 17 ('apt-get install openjdk-17-jre-headless'), or set JAVA_HOME."
    if program is None or not Path(program).exists():
        return Finding("no Java", install)
    said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr  # noqa: S603
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < _LEAST_JAVA:
        return Finding(f"Java {found[1] if found else 'of no known version'}", install)
    return Finding(f"Java {found[1]} at {program}")


def spark(_: str) -> Finding:
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Finding("no PySpark", "Install spark-elastic[spark], or run with the Python of your cluster.")
    if tuple(map(int, found.split(".")[:2])) < _LEAST_SPARK:
        return Finding(f"PySpark {found}", "Install spark-elastic[spark]: PySpark 4.3 or newer is needed.")
    return Finding(f"PySpark {found}")


def kernels(_: str) -> Finding:
    # Imported late: it brings the compiler with it.
    from migration import kernel_info

    found = kernel_info()
    slow = "Install spark-elastic[fast]: plans are the same, some hundred times slower."
    return Finding(found.name, "" if "numba" in found.name else slow)


def secret(_: str) -> Finding:
    try:
        application_secret(None, os.environ)
    except ElasticError as error:
        return Finding("no secret", str(error))
    return Finding("a secret to sign state with")


def store(url: str) -> Finding:
    """Writes, reads, lists and deletes one small object."""
    key, data = f"doctor/{uuid.uuid4().hex}.txt", b"is it well?"
    try:
        opened = storage.open(url)
        try:
            opened.put_if_absent(key, data)
            same = bytes(opened.get(key).data) == data
            listed = any(entry.key == key for entry in opened.list("doctor/"))
            opened.delete([key])
        finally:
            opened.close()
    except StorageError as error:
        return Finding(f"{type(error).__name__}", str(error))
    if not same or not listed:
        return Finding("an object came back otherwise, or was not listed", "Check what is between here and the store.")
    if not opened.conditional:
        return Finding("no conditional writes", "Run one driver a job at most, or use a store that honours them.")
    return Finding(f"{opened.url}, with conditional writes")


def ports(_: str) -> Finding:
    with socket.socket() as listening, socket.socket() as calling:
        try:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            calling.settimeout(5)
            calling.connect(listening.getsockname())
        except OSError as error:
            return Finding(f"no connection on loopback: {error}", "Allow processes of this machine to call each other.")
    return Finding("processes here can call each other on loopback")


def clock(url: str) -> Finding:
    """The clock of a store of files is seen in the files it writes."""
    if not url.startswith("file:"):
        return Finding("not compared: a server's own clock does not matter here")
    folder = Path(url.removeprefix("file://"))
    probe = folder / f".clock-{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        skew = probe.stat().st_mtime - time.time()
        probe.unlink()
    except OSError as error:
        return Finding(f"not compared: {error}", "Choose a folder that can be written to.")
    if abs(skew) > _MOST_SKEW_SECONDS:
        return Finding(f"files are {skew:+.1f} s off", "Synchronise the clocks of this machine and its file server.")
    return Finding(f"files and this machine agree within {max(abs(skew), 0.001):.3f} s")


def memory(_: str) -> Finding:
    facts = dict(re.findall(r"^(\w+):\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE))
    free = int(facts["MemAvailable"]) / 1_000
    what = f"{free:,.0f} MB free, {os.cpu_count()} processors"
    return Finding(what, "" if free >= _LEAST_FREE_MB else "Free some: Spark needs 500 MB, and a node 100 MB.")


CHECKS: Mapping[str, Callable[[str], Finding]] = {
    "java": java,
    "spark": spark,
    "kernels": kernels,
    "memory": memory,
    "ports": ports,
    "secret": secret,
    "store": store,
    "clock": clock,
}


@click.command("doctor")
@click.option("--store", "url", default=None, metavar="URL", help="The store to try; a temporary folder if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
def command(url: str | None, as_json: bool) -> None:
    """Look for what is missing here (Java, Spark, store, ports, clock), and say how to mend it."""
    with tempfile.TemporaryDirectory(prefix="elastic-doctor-") as folder:
        found = _looked(url or Path(folder).as_uri(), quiet=as_json)
    ill = [name for name, finding in found.items() if finding.mend]
    if as_json:
        click.echo(json.dumps({name: finding._asdict() for name, finding in found.items()}))
    else:
        _show(found)
    if ill:
        raise SystemExit(1)


def _looked(url: str, *, quiet: bool) -> dict[str, Finding]:
    found = {}
    with waiting("looking", quiet=quiet) as say:
        for name, check in CHECKS.items():
            say(f"looking at {name}")
            found[name] = check(url)
    return found


def _show(found: Mapping[str, Finding]) -> None:
    shown = Table(box=None, header_style="bold")
    for column in ("", "check", "found", "what to do"):
        shown.add_column(column, overflow="fold")
    for name, finding in found.items():
        mark = "[red]x[/red]" if finding.mend else "[green]ok[/green]"
        shown.add_row(mark, name, Text(finding.what), Text(finding.mend))
    Console().print(shown)
