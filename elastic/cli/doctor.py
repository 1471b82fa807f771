"""`elastic doctor`: check this machine for missing requirements."""

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
from elastic.cli.terminal import show_spinner
from elastic.errors import ElasticError
from elastic.secret import application_secret
from storage.errors import StorageError

_MIN_JAVA = 17
_MIN_SPARK = (4, 3)
_MAX_SKEW_SECONDS = 5.0  # the engine needs no synchronised clocks, but log timestamps do
_MIN_FREE_MB = 1_000


class Finding(NamedTuple):
    """The result of a check, and how to fix it; `fix` is empty if the check passed."""

    result: str
    fix: str = ""


def check_java(_: str) -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    install = "Install Java 17 ('apt-get install openjdk-17-jre-headless'), or set JAVA_HOME."
    if program is None or not Path(program).exists():
        return Finding("Java not found", install)
    output = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr  # noqa: S603
    found = re.search(r'version "(\d+)', output)
    if found is None or int(found[1]) < _MIN_JAVA:
        return Finding(f"Java {found[1] if found else 'of unknown version'}", install)
    return Finding(f"Java {found[1]} at {program}")


def check_spark(_: str) -> Finding:
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Finding("PySpark not found", "Install spark-elastic[spark], or run with the Python of your cluster.")
    if tuple(map(int, found.split(".")[:2])) < _MIN_SPARK:
        return Finding(f"PySpark {found}", "Install spark-elastic[spark]: PySpark 4.3 or newer is needed.")
    return Finding(f"PySpark {found}")


def check_kernels(_: str) -> Finding:
    # Imported here because it loads the compiler.
    from migration import kernel_info

    found = kernel_info()
    slow = "Install spark-elastic[fast]: without it, planning is some hundred times slower."
    return Finding(found.name, "" if "numba" in found.name else slow)


def check_secret(_: str) -> Finding:
    try:
        application_secret(None, os.environ)
    except ElasticError as error:
        return Finding("secret not found", str(error))
    return Finding("state is signed with a secret")


def check_store(url: str) -> Finding:
    """Write, read, list and delete one small object."""
    key, data = f"doctor/{uuid.uuid4().hex}.txt", b"elastic doctor"
    try:
        opened = storage.open(url)
        try:
            opened.put_if_absent(key, data)
            same = bytes(opened.get(key)) == data
            listed = any(entry.key == key for entry in opened.list("doctor/"))
            opened.delete([key])
        finally:
            opened.close()
    except StorageError as error:
        return Finding(f"{type(error).__name__}", str(error))
    if not same or not listed:
        return Finding(
            "an object was changed or not listed", "Check proxies and caches between this machine and the store."
        )
    if not opened.conditional:
        return Finding("no conditional writes", "Run at most one driver per job, or use a store that supports them.")
    return Finding(f"{opened.url}, with conditional writes")


def check_ports(_: str) -> Finding:
    with socket.socket() as server, socket.socket() as client:
        try:
            server.bind(("127.0.0.1", 0))
            server.listen()
            client.settimeout(5)
            client.connect(server.getsockname())
        except OSError as error:
            return Finding(
                f"no connection on loopback: {error}", "Allow connections between processes of this machine."
            )
    return Finding("connections on loopback work")


def check_clock(url: str) -> Finding:
    """Compare the clock of a file server with this machine's, by the time of a new file."""
    if not url.startswith("file:"):
        return Finding("not checked: the clock of an object store does not matter")
    folder = Path(url.removeprefix("file://"))
    probe = folder / f".clock-{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        skew = probe.stat().st_mtime - time.time()
        probe.unlink()
    except OSError as error:
        return Finding(f"not checked: {error}", "Choose a writable folder.")
    if abs(skew) > _MAX_SKEW_SECONDS:
        return Finding(
            f"file times differ by {skew:+.1f} s", "Synchronise the clocks of this machine and its file server."
        )
    return Finding(f"file times are accurate to {max(abs(skew), 0.001):.3f} s")


def check_memory(_: str) -> Finding:
    facts = dict(re.findall(r"^(\w+):\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE))
    free = int(facts["MemAvailable"]) / 1_000
    result = f"{free:,.0f} MB free, {os.cpu_count()} processors"
    return Finding(
        result, "" if free >= _MIN_FREE_MB else "Free some memory: Spark needs 500 MB, and each node 100 MB."
    )


CHECKS: Mapping[str, Callable[[str], Finding]] = {
    "java": check_java,
    "spark": check_spark,
    "kernels": check_kernels,
    "memory": check_memory,
    "ports": check_ports,
    "secret": check_secret,
    "store": check_store,
    "clock": check_clock,
}


@click.command("doctor")
@click.option("--store", "url", default=None, metavar="URL", help="Store to check; by default a temporary folder.")
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
def command(url: str | None, as_json: bool) -> None:
    """Check this machine (Java, Spark, memory, ports, secret, store, clock), and say how to fix problems."""
    with tempfile.TemporaryDirectory(prefix="elastic-doctor-") as folder:
        findings = _run_checks(url or Path(folder).as_uri(), quiet=as_json)
    if as_json:
        click.echo(json.dumps({name: finding._asdict() for name, finding in findings.items()}))
    else:
        _print_table(findings)
    if any(finding.fix for finding in findings.values()):
        raise SystemExit(1)


def _run_checks(url: str, *, quiet: bool) -> dict[str, Finding]:
    findings = {}
    with show_spinner("checking", quiet=quiet) as set_text:
        for name, check in CHECKS.items():
            set_text(f"checking {name}")
            findings[name] = check(url)
    return findings


def _print_table(findings: Mapping[str, Finding]) -> None:
    table = Table(box=None, header_style="bold")
    for column in ("", "check", "result", "fix"):
        table.add_column(column, overflow="fold")
    for name, finding in findings.items():
        mark = "[red]x[/red]" if finding.fix else "[green]ok[/green]"
        table.add_row(mark, name, Text(finding.result), Text(finding.fix))
    Console().print(table)
