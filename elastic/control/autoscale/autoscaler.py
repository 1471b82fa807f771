"""The autoscaler at work: look, decide, ask the scaler, write it down, wait."""

import logging
import time
from collections.abc import Callable
from typing import Any

from elastic.control.autoscale.autoscaling import Autoscaling
from elastic.control.autoscale.policy import Decision, Observation
from elastic.control.cluster import Cluster
from elastic.control.journal import Journal
from elastic.control.load import Load
from elastic.control.migration import Migration
from elastic.control.monitor import OBSERVE_SECONDS, Monitor
from elastic.control.repeating import Repeating
from elastic.control.scaler import Scaler
from elastic.errors import ElasticError
from migration.errors import MigrationError
from storage.errors import StorageError

_log = logging.getLogger(__name__)


class Autoscaler:
    """Scales one job by a policy, from `start` to `stop`. One thread looks; any thread may ask and stop it.

    Whatever goes wrong is written down and followed by a cool-down: it neither ends nor hurries.
    """

    def __init__(
        self,
        autoscaling: Autoscaling,
        cluster: Cluster,
        monitor: Monitor,
        scaler: Scaler,
        journal: Journal,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.autoscaling = autoscaling
        self._cluster = cluster
        self._monitor = monitor
        self._scaler = scaler
        self._journal = journal
        self._clock = clock
        self._last: Decision | None = None
        self._quiet_until = clock() + autoscaling.window_seconds
        self._failed_until = clock()  # what could not decide is not asked before
        self._seen = scaler.current  # the latest migration that was waited for
        self._own: Migration | None = None  # under way, and asked for here
        self._standing: int | None = None  # a target that was written down and is not reached
        self._repeating = Repeating("autoscaler", OBSERVE_SECONDS, self.look)

    def start(self) -> None:
        self._repeating.start()

    def stop(self) -> None:
        """It decides nothing any more; a migration that it began goes on to its end."""
        self._repeating.stop()

    def __repr__(self) -> str:
        asked, decision = self.autoscaling, self._last
        last = "no decision yet" if decision is None else f"wants {decision.target} nodes: {decision.reason}"
        return (
            f"Autoscaler({asked.name}, {asked.floor} to {asked.ceiling} nodes, "
            f"{'stopped' if self.is_stopped else 'running'}, {last})"
        )

    @property
    def is_stopped(self) -> bool:
        return self._repeating.is_stopped

    @property
    def last_decision(self) -> Decision | None:
        """The latest one, to stay or not; None before the first."""
        return self._last

    def look(self) -> Decision:
        """One turn."""
        now = self._clock()
        nodes = self._cluster.assignment().nodes
        load = self._monitor.load(self.autoscaling.window_seconds)
        try:
            hindrance = self._hindrance(now, nodes, load)
            observation = Observation(now, len(nodes), load)
            self._last = Decision(len(nodes), hindrance) if hindrance else self._decide(observation)
        except Exception as error:  # noqa: BLE001 - a policy is anybody's code, and the store may be away
            _log.warning("the autoscaler could not decide: %s", error, exc_info=error)
            self._rest(now)
            self._failed_until = self._quiet_until
            self._last = Decision(len(nodes), f"it could not be decided: {_said(error)}")
            self._write_failure("failed", len(nodes), None, error)
        return self._last

    def _hindrance(self, now: float, nodes: tuple[str, ...], load: Load) -> str:
        """Why nothing can be decided now, in words; empty if something can."""
        migration = self._scaler.current
        if migration is not None and migration is not self._seen:
            self._rest(now)
            if not migration.is_over:
                return "a migration is under way"
            self._seen = migration
            self._note_end(migration, len(nodes))
        missing = [node for node in nodes if node not in load.utilisation]
        if missing:
            # Who restores tasks is busier than the load makes it: that must be out of the window first.
            self._quiet_until = max(self._quiet_until, now + self.autoscaling.window_seconds)
            return f"{', '.join(missing)} cannot be measured yet"
        if now < self._failed_until and self._last is not None:
            return self._last.reason
        return ""

    def _decide(self, observation: Observation) -> Decision:
        wish = self.autoscaling.wish(observation)
        if observation.at < self._quiet_until:
            left = self._quiet_until - observation.at
            stays = wish.target == observation.nodes
            held = f"{wish.target} nodes in {left:.0f} s, if this lasts: {wish.reason}"
            return wish if stays else Decision(observation.nodes, held)
        if wish.target != observation.nodes:
            self._pursue(wish, observation)
        elif self._standing is not None:
            if self._standing != observation.nodes:
                self._write(wish, observation)
            self._standing = None
        return wish

    def _pursue(self, wish: Decision, observation: Observation) -> None:
        if self.autoscaling.recommend_only and wish.target == self._standing:
            return
        self._rest(observation.at)
        self._write(wish, observation)
        self._standing = wish.target
        if self.autoscaling.recommend_only:
            return
        try:
            self._own = self._scaler.scale(self.autoscaling.request(wish.target))
        except (ElasticError, MigrationError) as error:
            _log.warning("%d nodes were refused: %s", wish.target, error)
            self._write_failure("refused", observation.nodes, wish.target, error)

    def _rest(self, now: float) -> None:
        self._quiet_until = now + self.autoscaling.quiet_seconds

    def _note_end(self, migration: Migration, nodes: int) -> None:
        if migration is self._own and migration.error is not None:
            self._write_failure("failed", nodes, len(migration.plan.target.nodes), migration.error)
        self._own = None

    def _write(self, decision: Decision, observation: Observation) -> None:
        kind = "recommended" if self.autoscaling.recommend_only else "decided"
        _log.info("%s: %d nodes instead of %d: %s", kind, decision.target, observation.nodes, decision.reason)
        load = observation.load
        facts: dict[str, Any] = {
            **self._who(),
            "nodes": observation.nodes,
            "target": decision.target,
            "reason": decision.reason,
            "mean_utilisation": load.mean_utilisation,
            **load.to_dict(),
        }
        self._journal.append(kind, **facts)

    def _write_failure(self, kind: str, nodes: int, target: int | None, error: BaseException) -> None:
        try:
            self._journal.append(kind, **self._who(), nodes=nodes, target=target, error=_said(error))
        except StorageError as away:
            _log.warning("what the autoscaler met was not written down: %s: %s", error, away)

    def _who(self) -> dict[str, Any]:
        asked = self.autoscaling
        return {"policy": asked.name, "floor": asked.floor, "ceiling": asked.ceiling}


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
