"""A cluster in a dict: nodes with states, a log, snapshots; everything that moves goes through bytes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from elastic.operators.calls import UnitState
from elastic.operators.execution import StageRunner, StepOutput
from elastic.operators.moment import Moment
from elastic.operators.testing.story import NotReplayable
from elastic.routing.interval import IntervalRouting
from elastic.routing.slots import stage_of, task_of_slot
from migration import Assignment, Ownership, Plan, UnknownNode, Workload, plan
from storage.codec import Secret, pack, unpack

_KEY = "tester/state"


class _Logged(NamedTuple):
    """A step that was taken since the last snapshot of its slot."""

    moment: Moment
    slices: Sequence[pa.Table]
    output: StepOutput


class World:
    """Nodes that own slots. What a slot gives does not depend on where it is, nor on what happened to it."""

    def __init__(self, runners: Sequence[StageRunner], tasks: int, nodes: int) -> None:
        self._runners = runners
        self._secret = Secret.random()
        self.routing = IntervalRouting(Assignment.even(tasks, nodes))
        self._states: dict[str, dict[int, UnitState]] = {node: {} for node in self.assignment.nodes}
        self._snapshots: dict[int, Any] = {}
        self._log: dict[int, list[_Logged]] = {}
        self._work = [0] * tasks

    @property
    def assignment(self) -> Ownership:
        return self.routing.assignment

    def state(self, slot: int) -> UnitState:
        """The state of a slot, where it is now."""
        (node,) = self.routing.owners(slot)
        states = self._states[node]
        if slot not in states:
            states[slot] = self._runner(slot).new_state()
        return states[slot]

    def step(self, slot: int, slices: Sequence[pa.Table], moment: Moment) -> StepOutput:
        output = self._runner(slot).step(self.state(slot), slices, moment)
        self._log.setdefault(slot, []).append(_Logged(moment, slices, output))
        self._work[task_of_slot(slot)] += output.rows
        return output

    def due(self, moment: Moment) -> bool:
        (node,) = self.routing.owners(moment.slot)
        state = self._states[node].get(moment.slot)
        return state is not None and self._runner(moment.slot).due(state, moment)

    def snapshot(self) -> None:
        """Capture every slot that has changed. Bytes are made later, when they are needed, as a node does."""
        for slot in self._log:
            self._snapshots[slot] = self._runner(slot).capture(self.state(slot))
        self._log.clear()

    def scale(self, nodes: int) -> Plan:
        made = plan(self.assignment, nodes, self._workload(), relax=True)
        for node in made.joining:
            self._states[node] = {}
        for move in made.moves:
            for stage, runner in enumerate(self._runners):
                slot = self.routing.slots(stage)[move.task]
                state = self._states[move.source].pop(slot, None)
                if state is not None:
                    self._states[move.target][slot] = runner.restore(self._through_bytes(runner.capture(state)))
        for node in made.leaving:
            del self._states[node]
        self.routing = IntervalRouting(made.target, self.routing.epoch + 1)
        return made

    def crash(self, node: str) -> None:
        if node not in self._states:
            raise UnknownNode(node, self.assignment.nodes, "Crash one of these.")
        for slot in list(self._states[node]):
            self._states[node][slot] = self._recovered(slot)

    def _recovered(self, slot: int) -> UnitState:
        runner = self._runner(slot)
        saved = slot in self._snapshots
        state = runner.restore(self._through_bytes(self._snapshots[slot])) if saved else runner.new_state()
        for logged in self._log.get(slot, []):
            again = runner.step(state, logged.slices, logged.moment)
            before, now = _shown(logged.output), _shown(again)
            if before != now:
                raise NotReplayable(runner.name, logged.moment.task, logged.moment.batch, before, now)
        return state

    def _through_bytes(self, captured: Any) -> Any:
        data = pack({"state": captured}, key=_KEY, secret=self._secret)
        return unpack(data, key=_KEY, secret=self._secret).parts["state"]

    def _workload(self) -> Workload:
        sizes = [1] * len(self._work)
        for states in self._states.values():
            for slot, state in states.items():
                sizes[task_of_slot(slot)] += self._runner(slot).size(state)
        return Workload([1 + work for work in self._work], sizes)

    def _runner(self, slot: int) -> StageRunner:
        return self._runners[stage_of(slot)]


def _shown(output: StepOutput) -> str:
    """All rows as text, in which a NaN equals a NaN."""
    tables = (output.sink, output.next, output.self_, output.quarantined)
    return str([None if table is None else table.to_pylist() for table in tables])
