"""Progress of long work in the terminal: bars where somebody looks, a line now and then where nobody does."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mdp.approximate.training import Progress as Round
from mdp.exact import Progress as Sweep
from mdp.projecting import Notice


class ProjectionProgress:
    """A bar for every sweep or for the rounds of training, with what is proven so far; on standard error."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._known: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, report: Notice | Sweep | Round) -> None:
        if isinstance(report, Notice):
            self._console.print(report.text, markup=False)
        elif isinstance(report, Sweep):
            proven = "" if report.error is None else f", error {report.error:.2%} so far, {report.goal:.2%} asked for"
            self._show(f"sweep {report.sweep}{proven}", report.done, report.blocks)
        else:
            self._show("training", report.round, report.rounds)

    def _show(self, title: str, done: int, total: int) -> None:
        if title not in self._known:
            self._known[title] = self._bars.add_task(title, total=total)
        self._bars.update(self._known[title], completed=done)
