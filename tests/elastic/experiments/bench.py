"""Run `elastic bench` as it is typed, and read what it writes."""

import csv
from pathlib import Path

from click.testing import CliRunner, Result

from elastic.cli.bench import command


def run_bench(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def run_quickly(paper: str, folder: Path) -> tuple[Path, Result]:
    return folder, run_bench(paper, "--quick", "--output", str(folder))


def read_rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))
