"""Breaks the code one line at a time, and checks that the tests that need no Java notice each break.

`mutants.toml` lists the breaks: the file, the line before and after, why the changed line is wrong, and the tests that
should notice it. Every mutant gets a copy of the project of its own, in which only those tests run; a mutant that they
do not notice survives, and the script ends with 1.
"""

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_name("mutants.toml")
_SECONDS = 300.0  # for the tests of one mutant; a mutant that hangs is noticed too
_NO_JAVA = "not spark and not server and not browser and not long"


@dataclass(frozen=True)
class Mutant:
    """One line changed in one file."""

    file: str
    before: str
    after: str
    reason: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> None:
        """Change the file below `root`; `ValueError` if the line is not there exactly once."""
        path = root / self.file
        source = path.read_text()
        if source.count(self.before) != 1:
            raise ValueError(f"{self.file} has {source.count(self.before)} times: {self.before!r}. Update the list.")
        path.write_text(source.replace(self.before, self.after))


@dataclass(frozen=True)
class Verdict:
    """The result of the tests of a mutant."""

    mutant: Mutant
    killed: bool
    seconds: float
    detail: str


def read_mutants() -> list[Mutant]:
    entries = tomllib.loads(LIST.read_text())["mutant"]
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


class Workplace:
    """A copy of the project in which one mutant at a time is tried. Compiled loops stay cached between mutants."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        _copy_project(folder)

    def try_mutant(self, mutant: Mutant) -> Verdict:
        began = time.monotonic()
        original = (self._folder / mutant.file).read_text()
        mutant.apply(self._folder)
        try:
            code, detail = self.run_tests(mutant.tests)
        finally:
            (self._folder / mutant.file).write_text(original)
        # 1 is a failed test; anything above it means that pytest itself could not run them.
        return Verdict(mutant, code == 1, time.monotonic() - began, detail)

    def run_tests(self, tests: Iterable[str]) -> tuple[int, str]:
        """Return pytest's exit code and its last lines."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", _NO_JAVA, *tests]
        environment = {**os.environ, "PYTHONPATH": str(self._folder), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(  # noqa: S603 - pytest of this very environment
                command,
                cwd=self._folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 1, f"the tests did not end within {_SECONDS:g} s"
        return done.returncode, "\n".join(done.stdout.splitlines()[-3:])


def check_list(mutants: Iterable[Mutant]) -> None:
    """Apply every mutant to a copy of its file: a list that does not fit the code proves nothing."""
    for mutant in mutants:
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / mutant.file
            target.parent.mkdir(parents=True)
            shutil.copy(ROOT / mutant.file, target)
            mutant.apply(Path(folder))


def try_all(mutants: list[Mutant], folder: Path, processes: int) -> int:
    """Try the mutants, several at a time, and return how many survive."""
    workplaces: queue.SimpleQueue[Workplace] = queue.SimpleQueue()
    for number in range(processes):
        workplaces.put(Workplace(folder / str(number)))

    def judge(mutant: Mutant) -> Verdict:
        workplace = workplaces.get()
        try:
            return workplace.try_mutant(mutant)
        finally:
            workplaces.put(workplace)

    survivors = 0
    with ThreadPoolExecutor(processes) as executor:
        for verdict in executor.map(judge, mutants):
            survivors += not verdict.killed
            word = "killed  " if verdict.killed else "SURVIVED"
            print(f"{word} {verdict.seconds:5.1f} s  {verdict.mutant.file}: {verdict.mutant.reason}", flush=True)
            if not verdict.killed:
                print(f"         {verdict.mutant.before.strip()} -> {verdict.mutant.after.strip()}\n{verdict.detail}")
    return survivors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="try only mutants whose file contains this text")
    parser.add_argument("--processes", type=int, default=2, help="number of mutants tried at a time")
    options = parser.parse_args()
    mutants = [mutant for mutant in read_mutants() if options.only is None or options.only in mutant.file]
    check_list(mutants)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        print(f"{len(mutants)} mutants; the tests run without any first", flush=True)
        code, detail = Workplace(Path(folder) / "unchanged").run_tests(tests)
        if code != 0:
            print(f"the tests fail without a mutant:\n{detail}")
            return 1
        survivors = try_all(mutants, Path(folder), options.processes)
    print(f"{len(mutants) - survivors} of {len(mutants)} mutants killed")
    return 1 if survivors else 0


def _copy_project(target: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],  # noqa: S607 - the developer's own git
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


if __name__ == "__main__":
    sys.exit(main())
