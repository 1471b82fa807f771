"""What the demo does to a running job, one act after the other, each with a bar."""

import os
import signal
import time
from collections.abc import Callable

from rich.progress import Progress, TaskID

import elastic
from elastic.errors import ElasticError
from examples.demo.diary import Diary, Episode

_LOOK_SECONDS = 0.05
_CATCH_UP_SECONDS = 30.0  # after the first batches, which take longer
_PATIENCE_SECONDS = 60.0  # for a migration, or for a node to come back; far more than either needs


class Acts:
    """Acts on one job; what happens is in the diary, what is going on in the bars."""

    def __init__(self, job: elastic.Job, diary: Diary, bars: Progress) -> None:
        self._job = job
        self._diary = diary
        self._bars = bars

    def warm_up(self, batches: int, began: Callable[[], float | None]) -> None:
        """Until so many batches were seen and none is waiting; what is measured before says little."""
        bar, now = self._bar("warming up", batches), time.time()
        self._until(lambda: began() is not None, bar, lambda: 0)
        self._diary.began = began() or 0.0
        seen = self._diary.changes
        self._until(lambda: len(seen) >= batches, bar, lambda: len(seen))
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        self._until(
            lambda: self._diary.behind < self._diary.every or time.monotonic() > deadline, bar, lambda: len(seen)
        )
        self._over(bar, "warming", "warming up", now)
        if self._diary.behind > self._diary.every:
            self._bars.console.print(
                f"  This machine does not keep up with a batch every {self._diary.every:g} s, so texts wait longer and "
                "longer. Try a larger --every, a smaller --rate, or end what else is running.",
                style="yellow",
            )

    def steady(self, title: str, seconds: float) -> None:
        """Nothing but the stream."""
        bar, began = self._bar(title, seconds), time.time()
        while (past := time.time() - began) < seconds:
            self._look(bar, past)
        self._over(bar, "steady", title, began)

    def scale(self, nodes: int) -> None:
        """To so many nodes, while the stream goes on."""
        before = len(self._job.assignment().nodes)
        even = self._job.plan(nodes, strategy="even", relax=True)
        title = f"{before} -> {nodes} nodes"
        bar, began = self._bar(title, 1), time.time()
        # Patterns are not evenly spread, and what was measured is a minute old at most: the best balance there is.
        migration = self._job.scale(nodes, relax=True)
        self._bars.update(bar, total=max(len(migration.plan.moves), 1))
        self._until(lambda: migration.is_over, bar, lambda: migration.progress().tasks_done)
        migration.wait(0)
        done = migration.progress()
        said = (
            f"{done.tasks_done} of {self._job.pipeline.tasks} tasks and {done.bytes_done / 1e6:.1f} MB moved in "
            f"{done.seconds:.1f} s; an even split would have moved {len(even.moves)} tasks and {even.cost / 1e6:.1f} MB"
        )
        self._over(bar, "scaling", title, began, said)

    def kill(self) -> None:
        """End the process of a node at once, and wait until another one has taken its place."""
        status = self._job.status()
        chosen = max((node for node in status.nodes if node.serving), key=lambda node: node.state_bytes)
        title = f"kill -9 of {chosen.name}"
        bar, began = self._bar(title, None), time.time()
        os.kill(chosen.pid, signal.SIGKILL)
        known = len(status.recoveries)
        self._until(lambda: len(self._job.status().recoveries) > known, bar, lambda: 0)
        back = self._job.status().recoveries[-1]
        said = (
            f"{chosen.name} was back after {back['seconds']:.1f} s; {back['replayed_rows']:,} rows were applied again"
        )
        self._bars.update(bar, total=1)
        self._over(bar, "loss", title, began, said)

    def _until(self, holds: Callable[[], bool], bar: TaskID, completed: Callable[[], float]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise ElasticError(
                    f"this took more than {_PATIENCE_SECONDS:.0f} s. Is the machine very busy? Try again."
                )
            self._look(bar, completed())

    def _look(self, bar: TaskID, completed: float) -> None:
        self._job.await_termination(_LOOK_SECONDS)
        self._diary.note_owners(self._job.assignment().owners)
        self._bars.update(bar, completed=completed, note=_note(self._diary))

    def _bar(self, title: str, total: float | None) -> TaskID:
        return self._bars.add_task(title, total=total, note="")

    def _over(self, bar: TaskID, kind: str, title: str, began: float, said: str = "") -> None:
        self._diary.note_owners(self._job.assignment().owners)
        self._diary.episodes.append(Episode(kind, title, began, time.time(), said))
        task = next(task for task in self._bars.tasks if task.id == bar)
        self._bars.update(bar, completed=task.total, note="")
        if said:
            self._bars.console.print(f"  {title}: {said}", highlight=False)


def _note(diary: Diary) -> str:
    """What the job has found out just now."""
    if not diary.changes:
        return ""
    shown = diary.changes[-1]
    best = max(shown.patterns.items(), key=lambda item: item[1], default=None)
    first = "" if best is None else f", first of all '{best[0]}' ({best[1]} texts)"
    behind = f", {diary.behind:.1f} s behind" if diary.behind > 1 else ""
    return f"batch {shown.batch}, {len(shown.patterns)} patterns{first}{behind}"
