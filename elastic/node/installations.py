"""Units that come to a node: their states are loaded, then they repeat the steps since, until they have caught up.

A unit that the node follows as a standby has its state, and only has to repeat the steps that are not published.

States of standbys are decoded one at a time, between the steps of the units that the node owns: a state of many Python
objects takes a tenth of a second or more, and a node that is to follow may get dozens at once.
"""

from collections import deque
from collections.abc import Iterable
from functools import partial

from elastic import threads
from elastic.core.ids import NO_BATCH, UnitId
from elastic.core.messages import CaughtUp, InstallUnits, StandbysCaughtUp, StandbysDropped, UnitHandle, UnitsInstalled
from elastic.core.steps import Position
from elastic.core.unit_host import UnitHost
from elastic.node.context import NodeContext
from elastic.node.running_step import StepMonitor
from elastic.node.state_loader import StateLoader
from storage.state import SavedState


class Installations:
    """Carries out `InstallUnits` on one node. Only the working thread calls it."""

    def __init__(self, context: NodeContext, host: UnitHost, loader: StateLoader, monitor: StepMonitor) -> None:
        self._context = context
        self._host = host
        self._loader = loader
        self._monitor = monitor
        self._catch_up: _CatchUp | None = None
        self._arrived: deque[tuple[UnitHandle, SavedState | None, str]] = deque()  # of standbys, not decoded

    @property
    def has_arrived_states(self) -> bool:
        """Whether states of standbys are there that are not decoded; their first steps wait, to be taken together."""
        return bool(self._arrived)

    def begin(self, message: InstallUnits) -> None:
        self._monitor.begin_replay(message)
        installation = self._host.install(message)
        urgent = [handle for handle in installation.to_load if not handle.standby]
        if urgent or installation.promoted:
            self._catch_up = _CatchUp(message, self._host)
        if urgent:
            self._loader.load(urgent, partial(self._set_states, message.cause), message.cause)
        if followed := [handle for handle in installation.to_load if handle.standby]:
            use = partial(self._keep_states, message.cause)
            self._loader.load(followed, use, message.cause, throttled=True, on_missing=self._drop_replaced)
        if installation.promoted:
            self._report_installed(installation.promoted, 0, message.cause)

    def advance(self) -> bool:
        """Decode one state of a standby, and report what has become true; return whether there was a state.

        It is reported once when the installed units have taken all steps that the latest command named.
        """
        decoded = self._set_next_state()
        if self._catch_up is not None and self._catch_up.is_over(self._host):
            self._monitor.end_replay()
            self._context.report(self._catch_up.report(self._context, self._host))
            self._catch_up = None
        if not self._arrived and (units := self._host.take_caught_up()):
            self._context.report(StandbysCaughtUp(self._context.node, self._context.incarnation, units))
        return decoded

    def drop_standbys(self, units: Iterable[UnitId]) -> None:
        """Drop standbys that cannot go on; the driver sends a newer state."""
        if dropped := self._host.drop_standbys(units):
            self._context.report(StandbysDropped(self._context.node, self._context.incarnation, dropped))

    def _drop_replaced(self, handles: Iterable[UnitHandle]) -> None:
        """Drop standbys that wait for these states: their owner has saved newer ones, which replaced them."""
        self.drop_standbys([handle.unit for handle in handles if self._host.is_waiting_for(handle)])

    def _set_states(self, cause: str, states: dict[UnitHandle, SavedState | None], direct_bytes: int) -> None:
        units = [handle.unit for handle, state in states.items() if self._host.set_state(handle, state)]
        active = tuple(unit for unit in units if not self._host.is_standby(unit))
        if active or not units:
            self._report_installed(active, direct_bytes, cause)

    def _keep_states(self, cause: str, states: dict[UnitHandle, SavedState | None], _direct_bytes: int) -> None:
        self._arrived += [(handle, state, cause) for handle, state in states.items()]

    def _set_next_state(self) -> bool:
        if not self._arrived:
            return False
        handle, state, cause = self._arrived.popleft()
        if self._host.set_state(handle, state) and not self._host.is_standby(handle.unit):
            self._report_installed((handle.unit,), 0, cause)  # it has taken over while it was loaded
        return True

    def _report_installed(self, units: tuple[UnitId, ...], direct_bytes: int, cause: str) -> None:
        node, incarnation = self._context.node, self._context.incarnation
        self._context.report(UnitsInstalled(node, incarnation, units, direct_bytes, cause=cause))


class _CatchUp:
    """From an `InstallUnits` until its units have taken all steps that it named."""

    def __init__(self, message: InstallUnits, host: UnitHost) -> None:
        self._started = threads.monotonic()
        self._message = message
        self._replayed_before = host.replayed_rows
        self._last = max((step.position for step in message.steps), default=Position(NO_BATCH, 0))

    def is_over(self, host: UnitHost) -> bool:
        return host.is_past(self._last)

    def report(self, context: NodeContext, host: UnitHost) -> CaughtUp:
        return CaughtUp(
            context.node,
            context.incarnation,
            units=len(self._message.units),
            steps=len(self._message.steps),
            replayed_rows=host.replayed_rows - self._replayed_before,
            seconds=threads.monotonic() - self._started,
            cause=self._message.cause,
        )
