"""Progress bars of a projection at a terminal, and plain lines elsewhere."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mdp.progress import Notice, SweepProgress, TrainingProgress


class ProjectionProgress:
    """A bar on standard error for every sweep or for the training rounds, with the error bound proven so far."""

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
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, report: Notice | SweepProgress | TrainingProgress) -> None:
        if isinstance(report, Notice):
            self._console.print(report.text, markup=False)
        elif isinstance(report, SweepProgress):
            bound = "" if report.error is None else f", error {report.error:.2%}, goal {report.goal:.2%}"
            self._show(f"sweep {report.sweep}{bound}", report.done, report.blocks)
        else:
            self._show("training", report.round, report.rounds)

    def _show(self, title: str, done: int, total: int) -> None:
        if title not in self._tasks:
            self._tasks[title] = self._bars.add_task(title, total=total)
        self._bars.update(self._tasks[title], completed=done)
