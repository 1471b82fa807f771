"""`elastic bench`: experiments, with their numbers in CSV files and their pictures beside them."""

import json
import sys
import time
from pathlib import Path

import click

from mdp.errors import MdpError
from mdp.experiments import EXPERIMENTS, FULL, QUICK, Lab, Outcome, logs_in, made_up_logs, run

_CLEAR = "\r\033[K"


class Watch:
    """Progress on standard error: a line for every step; on a terminal also one that keeps changing."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._live = sys.stderr.isatty()

    def step(self, text: str) -> None:
        click.echo(f"{self._clear}{self._clock}  {text}", err=True)

    def status(self, text: str) -> None:
        if self._live:
            click.echo(f"{self._clear}{self._clock}  ... {text}", err=True, nl=False)

    @property
    def _clear(self) -> str:
        return _CLEAR if self._live else ""

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
@click.option("--only", "names", multiple=True, type=click.Choice(list(EXPERIMENTS)), help="Just this; repeatable.")
@click.option("--quick", is_flag=True, help="Everything small, in seconds: to see that it runs, not what comes out.")
@click.option("--seed", default=0, show_default=True, help="Of workloads, matrices, sequences and made-up logs.")
@click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON and nothing else.")
def paper003(data: Path | None, output: Path, names: tuple[str, ...], quick: bool, seed: int, as_json: bool) -> None:
    """Repeat the planning experiments of paper 003: figures 9 to 12 and 14, and what foresight is worth."""
    scale, watch = QUICK if quick else FULL, Watch()
    try:
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


def _show(outcome: Outcome, watch: Watch) -> None:
    watch.step(f"{outcome.name} took {outcome.seconds:.0f} s")
    click.echo(f"\n{outcome.title}\n\n{outcome.table}\n\n{outcome.csv}\n{outcome.picture}\n")
