"""The protocol of a hand-over, and migrations made of them."""

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migration import Assignment, Move, ScatteredAssignment, Workload, moves_between
from migration.errors import IllegalEvent
from migration.live import (
    TABLE,
    AssignmentCommitted,
    CommitAssignment,
    Event,
    ForgetState,
    InstallState,
    MigrationRun,
    NodeLost,
    Phase,
    ReleaseState,
    StateInstalled,
    StateReleased,
    next_phase,
)
from migration.live import run as run_module
from migration.live.messages import Command
from migration.live.table import diagram


def test_the_documents_show_the_table_as_it_is() -> None:
    document = Path(__file__).parents[3] / "docs" / "protocol.md"
    assert diagram() in document.read_text()


def test_what_is_not_a_row_of_the_table_is_refused() -> None:
    for phase in Phase:
        for event in Event:
            if (phase, event) not in TABLE:
                with pytest.raises(IllegalEvent):
                    next_phase(phase, event)


def test_every_phase_can_reach_the_end_and_only_a_lost_target_goes_back() -> None:
    order = list(Phase)
    for (phase, event), (after, _) in TABLE.items():
        assert order.index(after) >= order.index(phase) or event is Event.TARGET_LOST
    reached = {Phase.DONE}
    for _ in Phase:
        reached |= {phase for (phase, _), (after, _) in TABLE.items() if after in reached}
    assert reached == set(Phase)


class Cluster:
    """Carries commands out at once, in a random order, and loses nodes now and then."""

    def __init__(self, run: MigrationRun, seed: int, losses: int) -> None:
        self.run = run
        self.chance = random.Random(seed)  # noqa: S311
        self.losses = losses
        self.forgotten: list[int] = []
        self.waiting: list[Command] = run.go_on()

    def finish(self, nodes: Sequence[str]) -> None:
        for _ in range(10_000):
            if self.run.is_over and not self.waiting:
                return
            if self.losses and self.chance.random() < 0.3:
                self.losses -= 1
                self.waiting += self.run.handle(NodeLost(self.chance.choice(nodes)))
            elif not self.waiting:
                self.waiting += self.run.go_on()
            else:
                self.carry_out(self.waiting.pop(self.chance.randrange(len(self.waiting))))
        raise AssertionError("\n".join(self.run.story))

    def carry_out(self, command: Command) -> None:
        if isinstance(command, ReleaseState):
            event = StateReleased(command.hand_over.source, command.hand_over.tasks, 10)
            self.waiting += self.run.handle(event)
        elif isinstance(command, InstallState):
            self.waiting += self.run.handle(StateInstalled(command.hand_over.target, command.hand_over.tasks))
        elif isinstance(command, CommitAssignment):
            self.waiting += self.run.handle(AssignmentCommitted(command.assignment))
        elif isinstance(command, ForgetState):
            self.forgotten += command.hand_over.tasks


def some_run(owners: Sequence[int], size: int) -> tuple[MigrationRun, tuple[Move, ...]]:
    current = Assignment.even(tasks=len(owners), nodes=2)
    nodes = ["node-1", "node-2", "node-3"]
    target = ScatteredAssignment.of_owners([nodes[owner] for owner in owners], nodes)
    moves = moves_between(current, target, Workload([1.0] * len(owners), [2.0] * len(owners)))
    minis = [moves[start : start + size] for start in range(0, len(moves), size)]
    return MigrationRun(current, target, minis), moves


@given(
    owners=st.lists(st.integers(0, 2), min_size=2, max_size=12),
    size=st.integers(1, 5),
    seed=st.integers(0, 1_000),
    losses=st.integers(0, 6),
)
def test_a_migration_ends_at_its_target_and_every_moved_task_is_forgotten_once(
    owners: list[int], size: int, seed: int, losses: int
) -> None:
    run, moves = some_run(owners, size)
    cluster = Cluster(run, seed, losses)
    cluster.finish(["node-1", "node-2", "node-3"])
    assert run.assignment.owners == run.target.owners
    assert sorted(cluster.forgotten) == sorted(move.task for move in moves)
    progress = run.progress()
    assert (progress.tasks_done, progress.size_done) == (len(moves), 2.0 * len(moves))
    assert progress.mini_migrations_done == progress.mini_migrations


@given(size=st.integers(1, 3), seed=st.integers(0, 100), after=st.integers(0, 8))
def test_a_cancelled_migration_settles_between_two_mini_migrations(size: int, seed: int, after: int) -> None:
    run, moves = some_run([2, 2, 2, 0, 0, 0, 1, 1], size)
    cluster = Cluster(run, seed, losses=0)
    for _ in range(after):
        if cluster.waiting:
            cluster.carry_out(cluster.waiting.pop(0))
    run.cancel()
    cluster.finish(["node-1"])
    done = run.progress().tasks_done
    assert done == len(moves) or done % size == 0
    moved = {move.task for move in moves if run.assignment.owners[move.task] == move.target}
    assert len(moved) == done
    assert sorted(cluster.forgotten) == sorted(moved)
    assert set(run.assignment.nodes) == set(run.assignment.owners)


def test_a_paused_migration_goes_on_where_it_was() -> None:
    run, _ = some_run([2, 2, 0, 0], 1)
    cluster = Cluster(run, 0, losses=0)
    run.pause()
    while cluster.waiting:
        cluster.carry_out(cluster.waiting.pop(0))
    assert run.progress().mini_migrations_done == 1
    assert run.is_between
    assert not run.is_over
    assert run.go_on() == []
    run.unpause()
    cluster.waiting += run.go_on()
    cluster.finish(["node-1"])
    assert run.assignment.owners == run.target.owners


def test_a_source_that_is_lost_before_it_stored_anything_is_not_waited_for() -> None:
    run, _ = some_run([2, 0], 1)
    [release] = run.go_on()
    assert isinstance(release, ReleaseState)
    [install] = run.handle(NodeLost("node-1"))
    assert install == InstallState(release.hand_over)


def test_a_target_is_told_again_when_the_source_is_lost_while_it_installs() -> None:
    run, _ = some_run([2, 0], 1)
    [release] = run.go_on()
    assert isinstance(release, ReleaseState)
    run.handle(StateReleased("node-1", release.hand_over.tasks, 10))
    assert run.handle(NodeLost("node-1")) == [InstallState(release.hand_over)]


def test_a_target_that_is_lost_while_the_assignment_is_committed_must_install_before_the_source_forgets() -> None:
    run, _ = some_run([2, 0], 1)
    [release] = run.go_on()
    assert isinstance(release, ReleaseState)
    hand_over = release.hand_over
    run.handle(StateReleased("node-1", hand_over.tasks, 10))
    [commit] = run.handle(StateInstalled("node-3", hand_over.tasks))
    assert isinstance(commit, CommitAssignment)
    assert run.handle(NodeLost("node-3")) == [InstallState(hand_over)]
    assert run.handle(AssignmentCommitted(commit.assignment)) == []
    assert run.handle(AssignmentCommitted(commit.assignment)) == []
    assert run.assignment.owners == commit.assignment.owners
    assert run.handle(NodeLost("node-1")) == [InstallState(hand_over)]
    [forget] = run.handle(StateInstalled("node-3", hand_over.tasks))
    assert forget == ForgetState(hand_over)


def test_bytes_that_went_directly_are_counted_once() -> None:
    run, _ = some_run([2, 0], 1)
    [release] = run.go_on()
    assert isinstance(release, ReleaseState)
    run.handle(StateReleased("node-1", release.hand_over.tasks, 10))
    for _ in range(2):
        run.handle(StateInstalled("node-3", release.hand_over.tasks, direct_bytes=10))
    assert (run.progress().stored_bytes, run.progress().direct_bytes) == (10, 10)


def seen_at_every_instruction(look: Callable[[], bool], call: Callable[[], object]) -> set[bool]:
    """What another thread may see of a run, at every instruction of the run's own code while `call` is executed."""
    seen: set[bool] = set()

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename != run_module.__file__:
            return None
        frame.f_trace_opcodes = True
        seen.add(look())
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen


def test_no_other_thread_sees_the_run_as_over_while_its_last_mini_migration_starts() -> None:
    run, _ = some_run([2, 2, 0, 0], 2)
    cluster = Cluster(run, 0, losses=0)

    def do_next() -> None:
        if cluster.waiting:
            cluster.carry_out(cluster.waiting.pop(0))
        else:
            cluster.waiting += run.go_on()

    seen: set[bool] = set()
    while run.progress().mini_migrations_done < run.progress().mini_migrations - 1 or not run.under_way:
        seen |= seen_at_every_instruction(lambda: run.is_over, do_next)
    assert seen == {False}


def test_a_mini_migration_starts_only_when_it_is_told_to() -> None:
    run, _ = some_run([2, 2, 0, 0], 1)
    cluster = Cluster(run, 0, losses=0)
    while cluster.waiting:
        cluster.carry_out(cluster.waiting.pop(0))
    assert (run.is_between, run.can_go_on, run.is_over) == (True, True, False)
    run.cancel()
    assert (run.is_between, run.can_go_on, run.is_over) == (True, False, True)
    assert run.go_on() == []
