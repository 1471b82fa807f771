"""A simulated cluster: nodes with state, a log and snapshots in dicts. State and rows are serialised when they move."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.calls import UnitState
from elastic.operators.context import Moment
from elastic.operators.operator import Hashes
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.operators.testing.scenario import NotReplayable
from elastic.routing.groupings import Groupings, TableGrouping
from elastic.routing.key_table import KeyTable
from elastic.routing.routing import Routing
from migration import Assignment, Ownership, Plan, UnknownNode, Workload, plan
from storage.codec import Secret, pack, unpack
from storage.state import UnitId

_KEY = "tester/state"


class _Step(NamedTuple):
    """Rows and timers that a unit processed, and what it emitted."""

    moment: Moment
    slices: Sequence[pa.Table]
    output: StepOutput


class _Parting(NamedTuple):
    """Keys that left a unit. A replay drops them: their new unit has them in its own log, or in a snapshot."""

    hashes: Hashes


class _Joining(NamedTuple):
    """A part of another unit that joined a unit, in its stored form."""

    part: bytes


class _Change(NamedTuple):
    """A change of a unit's state that a test made."""

    apply: Callable[[UnitState], None]


class SimulatedCluster:
    """Nodes that own units; what a unit emits depends neither on its node nor on scaling and crashes."""

    def __init__(self, runners: Sequence[StageRunner], groupings: Groupings, nodes: int) -> None:
        self._runners = runners
        self._secret = Secret.random()
        self.routing = Routing(Assignment.even(groupings.tasks, nodes), groupings)
        self._states: dict[str, dict[UnitId, UnitState]] = {node: {} for node in self.assignment.nodes}
        self._snapshots: dict[UnitId, Any] = {}
        self._log: dict[
            UnitId, list[_Step | _Parting | _Joining | _Change]
        ] = {}  # since the last snapshot of each unit
        self._work = [0] * groupings.tasks

    @property
    def assignment(self) -> Ownership:
        return self.routing.assignment

    def state(self, unit: UnitId) -> UnitState:
        """Return the state of a unit on its current node."""
        (node,) = self.routing.owners(unit)
        states = self._states[node]
        if unit not in states:
            states[unit] = self._runner(unit).new_state()
        return states[unit]

    def step(self, unit: UnitId, slices: Sequence[pa.Table], moment: Moment) -> StepOutput:
        output = self._runner(unit).step(self.state(unit), slices, moment)
        self._log.setdefault(unit, []).append(_Step(moment, slices, output))
        self._work[unit.task] += output.rows
        return output

    def change(self, unit: UnitId, apply: Callable[[UnitState], None]) -> None:
        """Let a test write into the state of a unit; a replay writes it again."""
        apply(self.state(unit))
        self._log.setdefault(unit, []).append(_Change(apply))

    def is_due(self, moment: Moment) -> bool:
        (node,) = self.routing.owners(moment.unit)
        state = self._states[node].get(moment.unit)
        return state is not None and self._runner(moment.unit).is_due(state, moment)

    def snapshot(self) -> None:
        """Capture every unit that has changed; it is serialised later, when needed, as on a node."""
        for unit in self._log:
            self._snapshots[unit] = self._runner(unit).capture(self.state(unit))
        self._log.clear()

    def scale(self, nodes: int) -> Plan:
        target_plan = plan(self.assignment, nodes, self._workload(), relax=True)
        for node in target_plan.joining:
            self._states[node] = {}
        targets = {move.task: move.target for move in target_plan.moves}
        for source in self.assignment.nodes:
            for unit in [unit for unit in self._states[source] if targets.get(unit.task, source) != source]:
                runner, state = self._runner(unit), self._states[source].pop(unit)
                moved = runner.restore(self._through_bytes(runner.capture(state)))
                self._states[targets[unit.task]][unit] = moved
        for node in target_plan.leaving:
            del self._states[node]
        self.routing = self.routing.with_assignment(target_plan.target, self.routing.epoch + 1)
        return target_plan

    def rekey(self, stage: int, tasks: Mapping[int, int | None]) -> None:
        """Move keys, given by their hashes, to the guests of these tasks, or with None to the tasks of their hashes.

        All keys leave their units before any of them joins another one, so that units may exchange keys.
        """
        routing = self._regroup(stage, tasks)
        parts: list[tuple[UnitId, bytes]] = []
        for (source, target), hashes in self._moves(stage, tasks, routing).items():
            runner = self._runner(source)
            parts.append((target, self._pack(runner.capture(runner.part(self.state(source), hashes)))))
            self._log.setdefault(source, []).append(_Parting(hashes))
        for target, part in parts:
            runner = self._runner(target)
            runner.join(self.state(target), runner.restore(self._unpack(part)))
            self._log.setdefault(target, []).append(_Joining(part))
        self.routing = routing

    def crash(self, node: str) -> None:
        if node not in self._states:
            raise UnknownNode(node, self.assignment.nodes, "Crash one of these.")
        for unit in list(self._states[node]):
            self._states[node][unit] = self._recover(unit)

    def _recover(self, unit: UnitId) -> UnitState:
        runner = self._runner(unit)
        has_snapshot = unit in self._snapshots
        state = runner.restore(self._through_bytes(self._snapshots[unit])) if has_snapshot else runner.new_state()
        for logged in self._log.get(unit, []):
            match logged:
                case _Step():
                    _repeat(runner, state, logged)
                case _Parting(hashes):
                    runner.part(state, hashes)
                case _Joining(part):
                    runner.join(state, runner.restore(self._unpack(part)))
                case _Change(apply):
                    apply(state)
        return state

    def _regroup(self, stage: int, tasks: Mapping[int, int | None]) -> Routing:
        """Return the routing with these entries in the key table of a stage, and without those of keys that go home."""
        groupings = self.routing.groupings
        grouping = groupings[stage]
        if not isinstance(grouping, TableGrouping):
            raise InvalidJob(
                f"stage {self._runners[stage].name!r} is grouped by {grouping.kind}, so single keys of it cannot move. "
                'Use Stage(..., grouping="table").'
            )
        entries = {**dict(grouping.table), **tasks}
        table = KeyTable.from_entries({key_hash: task for key_hash, task in entries.items() if task is not None})
        by_stage = list(groupings.by_stage)
        by_stage[stage] = TableGrouping(table)
        return self.routing.with_groupings(by_stage, self.routing.epoch + 1)

    def _moves(self, stage: int, key_hashes: Iterable[int], routing: Routing) -> dict[tuple[UnitId, UnitId], Hashes]:
        """Return the hashes of the keys that leave their unit, by (source, target)."""
        hashes = np.array(sorted(key_hashes), np.int64)
        sources, targets = self.routing.unit_numbers(hashes, stage), routing.unit_numbers(hashes, stage)
        moves: dict[tuple[UnitId, UnitId], list[int]] = {}
        for key_hash, source, target in zip(hashes.tolist(), sources.tolist(), targets.tolist(), strict=True):
            if source != target:
                way = UnitId.from_number(source), UnitId.from_number(target)
                moves.setdefault(way, []).append(key_hash)
        return {way: np.array(moved, np.int64) for way, moved in moves.items()}

    def _through_bytes(self, captured: Any) -> Any:
        return self._unpack(self._pack(captured))

    def _pack(self, captured: Any) -> bytes:
        return bytes(pack({"state": captured}, key=_KEY, secret=self._secret))

    def _unpack(self, stored: bytes) -> Any:
        return unpack(stored, key=_KEY, secret=self._secret).parts["state"]

    def _workload(self) -> Workload:
        sizes = [1] * len(self._work)
        for states in self._states.values():
            for unit, state in states.items():
                sizes[unit.task] += self._runner(unit).size(state)
        return Workload([1 + work for work in self._work], sizes)

    def _runner(self, unit: UnitId) -> StageRunner:
        return self._runners[unit.stage]


def _repeat(runner: StageRunner, state: UnitState, logged: _Step) -> None:
    """Repeat a step; it must emit what it emitted before."""
    again = runner.step(state, logged.slices, logged.moment)
    before, now = _format_output(logged.output), _format_output(again)
    if before != now:
        raise NotReplayable(runner.name, logged.moment.task, logged.moment.batch, before, now)


def _format_output(output: StepOutput) -> str:
    """Return all rows as text, in which NaN equals NaN."""
    tables = (output.sink, output.next, output.self_, output.quarantined)
    return str([None if table is None else table.to_pylist() for table in tables])
