"""The steps of the demo on a running job, each with a progress bar."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence

from rich.progress import Progress, TaskID

import elastic
from elastic.errors import ElasticError
from examples.demo.timeline import Period, Timeline

_POLL_SECONDS = 0.05
_CATCH_UP_SECONDS = 30.0  # the first batches take longer
_TIMEOUT_SECONDS = 60.0  # of a migration or a recovery; far more than either needs


class DemoSteps:
    """Runs steps on one job; the timeline records them, the bars show their progress."""

    def __init__(self, job: elastic.SparkJob, timeline: Timeline, bars: Progress) -> None:
        self._job = job
        self._timeline = timeline
        self._bars = bars

    def warm_up(self, batches: int, began: Callable[[], float | None]) -> None:
        """Wait for this many batches and until the job has caught up; earlier measurements are not representative."""
        bar, now = self._bar("warming up", batches), time.time()
        self._until(lambda: began() is not None, bar, lambda: 0)
        self._timeline.began = began() or 0.0
        seen = self._timeline.changes
        self._until(lambda: len(seen) >= batches, bar, lambda: len(seen))
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        self._until(
            lambda: self._timeline.behind < self._timeline.every or time.monotonic() > deadline, bar, lambda: len(seen)
        )
        self._end(bar, "warming", "warming up", now)
        if self._timeline.behind > self._timeline.every:
            self._bars.console.print(
                f"  This machine cannot process a batch every {self._timeline.every:g} s, so the backlog grows. "
                "Try a larger --every or a smaller --rate, or stop other programs.",
                style="yellow",
            )

    def steady(self, title: str, seconds: float) -> None:
        """Let the job run undisturbed."""
        bar, began = self._bar(title, seconds), time.time()
        while (past := time.time() - began) < seconds:
            self._poll(bar, past)
        self._end(bar, "steady", title, began)

    def scale(self, nodes: int) -> None:
        """Scale to this many nodes while the stream runs."""
        before = len(self._job.assignment().nodes)
        even = self._job.plan(nodes, strategy="even", relax=True)
        title = f"{before} -> {nodes} nodes"
        bar, began = self._bar(title, 1), time.time()
        # Patterns are unevenly distributed, and measurements are up to a minute old: accept the best balance possible.
        migration = self._job.scale(nodes, relax=True)
        self._bars.update(bar, total=max(len(migration.plan.moves), 1))
        self._until(lambda: migration.is_over, bar, lambda: migration.progress().tasks_done)
        migration.wait(0)
        done = migration.progress()
        summary = (
            f"{done.tasks_done} of {self._job.pipeline.tasks} tasks and {done.bytes_done / 1e6:.1f} MB moved in "
            f"{done.seconds:.1f} s; an even split would have moved {len(even.moves)} tasks and {even.cost / 1e6:.1f} MB"
        )
        self._end(bar, "scaling", title, began, summary)

    def kill(self) -> None:
        """Kill the process of a node and wait until its units are served again: by standbys, or by a replacement."""
        if self._job.routing().standbys:
            bar = self._bar("standbys catch up", None)
            self._until(self._standbys_are_ready, bar, lambda: 0)
            self._bars.update(bar, total=1, completed=1, note="")
        status, before = self._job.status(), self._job.routing()
        chosen = max((node for node in status.nodes if node.serving), key=lambda node: node.state_bytes)
        title = f"kill -9 of {chosen.name}"
        bar, began = self._bar(title, None), time.time()
        os.kill(chosen.pid, signal.SIGKILL)
        known = len(status.recoveries)
        self._until(lambda: len(self._job.status().recoveries) > known, bar, lambda: 0)
        recovery = self._job.status().recoveries[-1]
        # The commit of new owners follows the recovery; that of the next incarnation comes before it.
        self._until(lambda: self._job.routing().epoch > before.epoch, bar, lambda: 0)
        heirs = describe_heirs(chosen.name, before.assignment.owners, self._job.assignment().owners)
        seconds, rows = _duration(recovery["seconds"]), recovery["replayed_rows"]
        summary = f"{heirs or f'{chosen.name} recovered'} after {seconds}; {rows:,} rows replayed"
        self._bars.update(bar, total=1)
        self._end(bar, "loss", title, began, summary)

    def switch_back(self) -> None:
        """Give the tasks of the lost node back to its next incarnation, which has become a standby of them."""
        title = "roles switch back"
        bar, began = self._bar(title, None), time.time()
        self._until(self._standbys_are_ready, bar, lambda: 0)
        migration = self._job.rebalance(mode="warm", relax=True)
        self._until(lambda: migration.is_over, bar, lambda: 0)
        migration.wait(0)
        done = migration.progress()
        summary = (
            f"{done.tasks_done} tasks went back in {done.seconds:.1f} s, with {done.bytes_done / 1e6:.1f} MB "
            "that had to move before an owner changed"
        )
        self._bars.update(bar, total=1)
        self._end(bar, "switch", title, began, summary)

    def _standbys_are_ready(self) -> bool:
        """Whether all nodes serve, and every task is followed by a node."""
        nodes, routing = self._job.status().nodes, self._job.routing()
        followed = {unit.task for node in nodes for unit in node.standbys}
        is_complete = len(routing.standbys) == len(routing.assignment.owners) and all(routing.standbys)
        return is_complete and all(node.serving for node in nodes) and len(followed) == len(routing.standbys)

    def _note_routing(self) -> None:
        routing = self._job.routing()
        self._timeline.note_owners(routing.assignment.owners, routing.standbys)

    def _until(self, holds: Callable[[], bool], bar: TaskID, completed: Callable[[], float]) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise ElasticError(
                    f"timed out after {_TIMEOUT_SECONDS:.0f} s waiting for a step. Stop other programs, and try again."
                )
            self._poll(bar, completed())

    def _poll(self, bar: TaskID, completed: float) -> None:
        self._job.await_termination(_POLL_SECONDS)
        self._note_routing()
        self._bars.update(bar, completed=completed, note=_note(self._timeline))

    def _bar(self, title: str, total: float | None) -> TaskID:
        return self._bars.add_task(title, total=total, note="")

    def _end(self, bar: TaskID, kind: str, title: str, began: float, summary: str = "") -> None:
        self._note_routing()
        self._timeline.periods.append(Period(kind, title, began, time.time(), summary))
        task = next(task for task in self._bars.tasks if task.id == bar)
        self._bars.update(bar, completed=task.total, note="")
        if summary:
            self._bars.console.print(f"  {title}: {summary}", highlight=False)


def describe_heirs(lost: str, before: Sequence[str], after: Sequence[str]) -> str:
    """Say which nodes took over how many tasks of a lost one; "" if they are its own again."""
    taken = Counter(new for old, new in zip(before, after, strict=True) if old == lost and new != lost)
    if not taken:
        return ""
    return " and ".join(f"{node} ({tasks})" for node, tasks in sorted(taken.items())) + " took over its tasks"


def _duration(seconds: float) -> str:
    return f"{1_000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _note(timeline: Timeline) -> str:
    """Return the newest results in one line."""
    if not timeline.changes:
        return ""
    last = timeline.changes[-1]
    best = max(last.patterns.items(), key=lambda item: item[1], default=None)
    first = "" if best is None else f", most frequent '{best[0]}' ({best[1]} texts)"
    behind = f", {timeline.behind:.1f} s behind" if timeline.behind > 1 else ""
    return f"batch {last.batch}, {len(last.patterns)} patterns{first}{behind}"
