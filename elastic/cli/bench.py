"""`elastic bench`: experiments, with their numbers in CSV files and their pictures beside them."""

import json
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click
from rich.console import Console
from rich.status import Status
from rich.text import Text

from elastic.cli.known import EXPERIMENTS
from elastic.cli.waiting import is_watched
from mdp.errors import MdpError

if TYPE_CHECKING:
    from mdp.experiments import Outcome


class Watch:
    """Progress on standard error: a line for every step, and at a terminal also one that keeps changing."""

    def __init__(self, *, quiet: bool) -> None:
        self._began = time.monotonic()
        self._console = Console(stderr=True, quiet=quiet)
        self._spinner = Status("", console=self._console) if is_watched(quiet=quiet) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rest()

    def step(self, text: str) -> None:
        """Also stops what keeps changing, until the next status: what is printed meanwhile is left alone."""
        self._rest()
        self._console.print(f"{self._clock}  {text}", markup=False, highlight=False, soft_wrap=True)

    def status(self, text: str) -> None:
        if self._spinner is not None:
            self._spinner.update(Text(f"{self._clock}  {text}"))
            self._spinner.start()

    def _rest(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()

    @property
    def _clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{minutes:3d}:{seconds:02d}"


@click.group("bench")
def command() -> None:
    """Run experiments and keep their numbers and pictures."""


@command.command()
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of logs (timestamp, value), or one with the folder tweet_volume in it; else logs are made up.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/paper003"),
    show_default=True,
    help="Where CSV files and pictures go.",
)
@click.option("--only", "names", multiple=True, type=click.Choice(EXPERIMENTS), help="Just this; repeatable.")
@click.option("--quick", is_flag=True, help="Everything small, in seconds: to see that it runs, not what comes out.")
@click.option("--seed", default=0, show_default=True, help="Of workloads, matrices, sequences and made-up logs.")
@click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON and nothing else.")
def paper003(data: Path | None, output: Path, names: tuple[str, ...], quick: bool, seed: int, as_json: bool) -> None:
    """Repeat the planning experiments of paper 003: figures 9 to 12 and 14, and what foresight is worth."""
    # Imported late: they bring the compiler and charts with them.
    from mdp.experiments import FULL, QUICK, Lab, logs_in, made_up_logs, run

    scale = QUICK if quick else FULL
    try:
        with Watch(quiet=as_json) as watch:
            logs = made_up_logs(scale.logs, scale.log_days, seed) if data is None else logs_in(data)
            outcomes = run(
                Lab(logs, scale, seed, watch),
                output,
                names or EXPERIMENTS,
                on_done=lambda outcome: None if as_json else _show(outcome, watch),
            )
    except MdpError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps({outcome.name: outcome.to_dict() for outcome in outcomes}))


def _show(outcome: "Outcome", watch: Watch) -> None:
    watch.step(f"{outcome.name} took {outcome.seconds:.0f} s")
    click.echo(f"\n{outcome.title}\n\n{outcome.table}\n\n{outcome.csv}\n{outcome.picture}\n")
