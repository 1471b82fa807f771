"""`elastic bench`: experiments that write CSV files and charts."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click
from rich.console import Console
from rich.status import Status
from rich.text import Text

from elastic.cli.group import add_working_folder_to_path
from elastic.cli.options import (
    PAPER000_ENGINE_EXPERIMENTS,
    PAPER000_EXPERIMENTS,
    PAPER001_ENGINE_EXPERIMENTS,
    PAPER001_EXPERIMENTS,
    PAPER002_ENGINE_EXPERIMENTS,
    PAPER002_EXPERIMENTS,
    PAPER003_EXPERIMENTS,
    PAPER004_ENGINE_EXPERIMENTS,
    PAPER004_EXPERIMENTS,
)
from elastic.cli.terminal import is_interactive
from elastic.errors import ElasticError
from mdp.errors import MdpError
from migration.errors import MigrationError

if TYPE_CHECKING:
    from elastic.experiments import Experiment, ExperimentResult

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Lab = TypeVar("_Lab")


class ProgressLog:
    """Progress on standard error: one line per step, and a spinner at a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._began = time.monotonic()
        self._console = Console(stderr=True, quiet=quiet)
        self._spinner = Status("", console=self._console) if is_interactive(quiet=quiet) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_spinner()

    def step(self, text: str) -> None:
        """Print a line, and hide the spinner until the next status, so that it does not disturb other output."""
        self._stop_spinner()
        self._console.print(f"{self._elapsed}  {text}", markup=False, highlight=False, soft_wrap=True)

    def status(self, text: str) -> None:
        if self._spinner is not None:
            self._spinner.update(Text(f"{self._elapsed}  {text}"))
            self._spinner.start()

    def _stop_spinner(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()

    @property
    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{minutes:3d}:{seconds:02d}"


@click.group("bench")
def command() -> None:
    """Run experiments and save their numbers and charts."""


def _common_options(output: str, names: Sequence[str]) -> Callable[[_Command], _Command]:
    """The options that the experiments of every paper have."""
    options = [
        click.option(
            "--output",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path(output),
            show_default=True,
            help="Folder for CSV files and charts.",
        ),
        click.option(
            "--only", "names", multiple=True, type=click.Choice(names), help="Run this experiment only; repeatable."
        ),
        click.option("--quick", is_flag=True, help="Run small versions in seconds, as a smoke test."),
        click.option("--seed", default=0, show_default=True, help="Seed of everything that is drawn at random."),
        click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON and nothing else."),
    ]

    def add(function: _Command) -> _Command:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@command.command()
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of logs (timestamp, value), or of the folder tweet_volume; by default, generated logs.",
)
@_common_options("build/paper003", PAPER003_EXPERIMENTS)
def paper003(data: Path | None, output: Path, names: tuple[str, ...], quick: bool, seed: int, as_json: bool) -> None:
    """Reproduce the planning experiments of paper 003: figures 9 to 12 and 14, and the benefit of foresight."""
    # Imported here because they load the compiler and matplotlib.
    from elastic.experiments.paper003 import EXPERIMENTS, FULL, QUICK, Lab, generate_logs, read_logs

    scale = QUICK if quick else FULL
    with _report_errors(), ProgressLog(quiet=as_json) as progress:
        logs = generate_logs(scale.logs, scale.log_days, seed) if data is None else read_logs(data)
        _run(EXPERIMENTS, Lab(logs, scale, seed, progress), progress, output, names, as_json=as_json)


@command.command()
@click.option(
    "--engine",
    is_flag=True,
    help="Run the experiments on a running job instead, figures 13 to 16; in the repository only.",
)
@_common_options("build/paper000", (*PAPER000_EXPERIMENTS, *PAPER000_ENGINE_EXPERIMENTS))
def paper000(engine: bool, output: Path, names: tuple[str, ...], quick: bool, seed: int, as_json: bool) -> None:
    """Reproduce the experiments of paper 000: figures 7 to 12 and 17 to 21 on plans, 13 to 15 on a running job."""
    _check_names(names, engine, PAPER000_EXPERIMENTS, PAPER000_ENGINE_EXPERIMENTS)
    with _report_errors(), ProgressLog(quiet=as_json) as progress:
        # Imported here because they load the compiler and matplotlib.
        if engine:
            module = _import_engine()
            lab = module.EngineLab(module.ENGINE_QUICK if quick else module.ENGINE_FULL, seed, progress)
            _run(module.ENGINE_EXPERIMENTS, lab, progress, output, names, as_json=as_json)
            return
        from elastic.experiments.paper000 import EXPERIMENTS, FULL, QUICK, Lab

        _run(EXPERIMENTS, Lab(QUICK if quick else FULL, seed, progress), progress, output, names, as_json=as_json)


@command.command()
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with tweets.csv, whose words are one more stream; by default, generated streams only.",
)
@click.option("--engine", is_flag=True, help="Measure a running job with a hot key instead.")
@_common_options("build/paper001", (*PAPER001_EXPERIMENTS, *PAPER001_ENGINE_EXPERIMENTS))
def paper001(
    data: Path | None, engine: bool, output: Path, names: tuple[str, ...], quick: bool, seed: int, as_json: bool
) -> None:
    """Reproduce the simulations of paper 001: Tables I and II, Figures 2 to 5, memory, and routing speed."""
    _check_names(names, engine, PAPER001_EXPERIMENTS, PAPER001_ENGINE_EXPERIMENTS)
    with _report_errors(), ProgressLog(quiet=as_json) as progress:
        # Imported here because they load the compiler and matplotlib.
        if engine:
            from elastic.experiments.paper001 import engine as running

            lab_of_job = running.EngineLab(running.ENGINE_QUICK if quick else running.ENGINE_FULL, seed, progress)
            _run(running.ENGINE_EXPERIMENTS, lab_of_job, progress, output, names, as_json=as_json)
            return
        from elastic.experiments.paper001 import EXPERIMENTS, FULL, QUICK, Lab

        lab = Lab(QUICK if quick else FULL, seed, progress, data)
        _run(EXPERIMENTS, lab, progress, output, names, as_json=as_json)


@command.command()
@click.option("--engine", is_flag=True, help="Measure a running job that loses a node instead, figures 10 and 11.")
@_common_options("build/paper002", (*PAPER002_EXPERIMENTS, *PAPER002_ENGINE_EXPERIMENTS))
def paper002(engine: bool, output: Path, names: tuple[str, ...], quick: bool, seed: int, as_json: bool) -> None:
    """Reproduce the experiments of paper 002: figures 7 to 9 on plans, 10 and 11 on a running job."""
    _check_names(names, engine, PAPER002_EXPERIMENTS, PAPER002_ENGINE_EXPERIMENTS)
    with _report_errors(), ProgressLog(quiet=as_json) as progress:
        # Imported here because they load the compiler and matplotlib.
        if engine:
            from elastic.experiments.paper002 import engine as running

            lab_of_job = running.EngineLab(running.ENGINE_QUICK if quick else running.ENGINE_FULL, seed, progress)
            _run(running.ENGINE_EXPERIMENTS, lab_of_job, progress, output, names, as_json=as_json)
            return
        from elastic.experiments.paper002 import EXPERIMENTS, FULL, QUICK, Lab

        _run(EXPERIMENTS, Lab(QUICK if quick else FULL, seed, progress), progress, output, names, as_json=as_json)


@command.command()
@click.option("--engine", is_flag=True, help="Measure completion times and overhead on a running job instead.")
@_common_options("build/paper004", (*PAPER004_EXPERIMENTS, *PAPER004_ENGINE_EXPERIMENTS))
def paper004(engine: bool, output: Path, names: tuple[str, ...], quick: bool, seed: int, as_json: bool) -> None:
    """Reproduce the experiments of paper 004 in a simulator: figures 4 to 12, and batches of several senders."""
    _check_names(names, engine, PAPER004_EXPERIMENTS, PAPER004_ENGINE_EXPERIMENTS)
    with _report_errors(), ProgressLog(quiet=as_json) as progress:
        # Imported here because they load the compiler and matplotlib.
        if engine:
            from elastic.experiments.paper004 import engine as running

            lab = running.EngineLab(running.ENGINE_QUICK if quick else running.ENGINE_FULL, seed, progress)
            _run(running.ENGINE_EXPERIMENTS, lab, progress, output, names, as_json=as_json)
            return
        from elastic.experiments.paper004 import EXPERIMENTS, FULL, QUICK, Lab

        _run(EXPERIMENTS, Lab(QUICK if quick else FULL, seed, progress), progress, output, names, as_json=as_json)


def _check_names(names: Sequence[str], engine: bool, simulated: Sequence[str], on_engine: Sequence[str]) -> None:
    """Refuse experiments that need the option `--engine`, or must not have it."""
    others = set(names) - set(on_engine if engine else simulated)
    if others:
        raise click.UsageError(f"{', '.join(sorted(others))}: run {'without' if engine else 'with'} --engine.")


def _import_engine() -> ModuleType:
    """Import the experiments on a running job, which use the applications of the repository."""
    add_working_folder_to_path()
    try:
        return import_module("elastic.experiments.paper000.engine")
    except ModuleNotFoundError as missing:
        if not f"{missing.name}.".startswith("examples."):
            raise
        raise click.ClickException(
            "--engine runs applications that are in the repository and not in the installed package. Clone it, and run "
            "this command there."
        ) from missing


@contextmanager
def _report_errors() -> Iterator[None]:
    try:
        yield
    except (ElasticError, MdpError, MigrationError) as error:
        raise click.ClickException(str(error)) from error


def _run(
    experiments: "Mapping[str, Experiment[_Lab]]",
    lab: _Lab,
    progress: ProgressLog,
    output: Path,
    names: Sequence[str],
    *,
    as_json: bool,
) -> None:
    from elastic.experiments import run_experiments

    results = run_experiments(
        experiments, lab, output, names, on_done=lambda result: None if as_json else _show(result, progress)
    )
    if as_json:
        click.echo(json.dumps({result.name: result.to_dict() for result in results}))


def _show(result: "ExperimentResult", progress: ProgressLog) -> None:
    progress.step(f"{result.name} took {result.seconds:.0f} s")
    note = f"{result.note}\n\n" if result.note else ""
    click.echo(f"\n{result.title}\n\n{result.table}\n\n{note}{result.csv}\n{result.picture}\n")
