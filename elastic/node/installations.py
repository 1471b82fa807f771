"""Units that come to a node: their states are loaded, then they repeat the steps since, until they have caught up.

A unit that the node follows as a standby has its state, and only has to repeat the steps that are not published.
"""

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

    def begin(self, message: InstallUnits) -> None:
        self._monitor.begin_replay(message)
        installation = self._host.install(message)
        urgent = [handle for handle in installation.to_load if not handle.standby]
        if urgent or installation.promoted:
            self._catch_up = _CatchUp(message, self._host)
        for handles in (urgent, [handle for handle in installation.to_load if handle.standby]):
            if handles:
                use, is_standby = partial(self._set_states, message.cause), handles[0].standby
                drop = self._drop_replaced if is_standby else None
                self._loader.load(handles, use, message.cause, throttled=is_standby, on_missing=drop)
        if installation.promoted:
            self._report_installed(installation.promoted, 0, message.cause)

    def advance(self) -> None:
        """Report once when the installed units have taken all steps that the latest command named."""
        if self._catch_up is not None and self._catch_up.is_over(self._host):
            self._monitor.end_replay()
            self._context.report(self._catch_up.report(self._context, self._host))
            self._catch_up = None
        if units := self._host.take_caught_up():
            self._context.report(StandbysCaughtUp(self._context.node, self._context.incarnation, units))

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
