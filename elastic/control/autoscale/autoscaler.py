"""The control loop of autoscaling: measure, decide, request, record, cool down."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from elastic import threads
from elastic.control.autoscale.policy import Decision, Observation
from elastic.control.autoscale.settings import AutoscalerSettings
from elastic.control.cluster import Cluster
from elastic.control.key_request import KeyRequest
from elastic.control.load import Load
from elastic.control.migration import Migration
from elastic.control.monitor import OBSERVE_SECONDS, Monitor
from elastic.control.periodic import PeriodicThread
from elastic.control.scaler import Scaler
from elastic.errors import ElasticError
from migration.errors import KeysInfeasible, MigrationError
from storage.errors import StorageError
from storage.journal import JobJournal, ScalingDecided, ScalingFailed, ScalingRecommended, ScalingRefused

_log = logging.getLogger(__name__)
_SPLIT_ADVICE = (
    "Split that key if its operator can merge: run a job with partial(operator, split='none'), which the autoscaler "
    "then splits by itself, and let it begin with the state of this one (docs/splitting.md)."
)


class Autoscaler:
    """Scales one job by a policy, from `start` to `stop`. One thread polls; any thread may read and stop it.

    Every failure is recorded in the journal and followed by a cool-down; none ends the autoscaler.
    """

    def __init__(
        self,
        settings: AutoscalerSettings,
        cluster: Cluster,
        monitor: Monitor,
        scaler: Scaler,
        journal: JobJournal,
        clock: Callable[[], float] = threads.monotonic,
    ) -> None:
        self.settings = settings
        self._cluster = cluster
        self._monitor = monitor
        self._scaler = scaler
        self._journal = journal
        self._clock = clock
        self._last: Decision | None = None
        self._paused_until = clock() + settings.window_seconds
        self._failed_until = clock()  # after a failure the policy is not called before this
        self._handled = scaler.current  # the newest migration whose end was handled
        self._own: Migration | None = None  # the migration that this autoscaler requested, until its end was handled
        self._open_target: int | None = None  # a recorded target that is not reached yet
        self._thread = PeriodicThread("autoscaler", OBSERVE_SECONDS, self.poll)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Make no further decision; a migration in progress continues."""
        self._thread.stop()

    def __repr__(self) -> str:
        settings, decision = self.settings, self._last
        last = "no decision yet" if decision is None else f"target {decision.target} nodes: {decision.reason}"
        return (
            f"Autoscaler({settings.name}, {settings.floor} to {settings.ceiling} nodes, "
            f"{'stopped' if self.is_stopped else 'running'}, {last})"
        )

    @property
    def is_stopped(self) -> bool:
        return self._thread.is_stopped

    @property
    def last_decision(self) -> Decision | None:
        """The newest decision, also one to change nothing; None before the first."""
        return self._last

    def poll(self) -> Decision:
        """Measure, decide, and request a migration if the target differs from the node count."""
        now = self._clock()
        nodes = self._cluster.assignment().nodes
        load = self._monitor.load(self.settings.window_seconds)
        try:
            obstacle = self._find_obstacle(now, nodes, load)
            observation = Observation(now, len(nodes), load, self._cluster.find_unsplit())
            self._last = Decision(len(nodes), obstacle) if obstacle else self._decide(observation)
        except Exception as error:  # noqa: BLE001 - a policy is user code, and the store may be unavailable
            _log.warning("the autoscaler could not decide: %s", error, exc_info=error)
            self._pause(now)
            self._failed_until = self._paused_until
            self._last = Decision(len(nodes), f"no decision: {_format_error(error)}")
            self._record_failure(ScalingFailed, len(nodes), None, error)
        return self._last

    def _find_obstacle(self, now: float, nodes: tuple[str, ...], load: Load) -> str:
        """Return why no decision is possible now, or an empty text."""
        migration = self._scaler.current
        if migration is not None and migration is not self._handled:
            self._pause(now)
            if not migration.is_over:
                return "a migration is in progress"
            self._handled = migration
            self._handle_end(migration, len(nodes))
        missing = [node for node in nodes if node not in load.utilisation]
        if missing:
            # A node that restores tasks is busier than the load explains: that must leave the window first.
            self._paused_until = max(self._paused_until, now + self.settings.window_seconds)
            return f"no measurements of {', '.join(missing)} yet"
        if now < self._failed_until and self._last is not None:
            return self._last.reason
        return ""

    def _decide(self, observation: Observation) -> Decision:
        decision = self.settings.decide(observation)
        if observation.at < self._paused_until:
            if decision.target == observation.nodes and decision.rebalance is None and decision.split is None:
                return decision
            left = self._paused_until - observation.at
            would = f"the target would be {decision.target} nodes"
            if decision.target == observation.nodes:
                would = "a rebalance is due" if decision.rebalance else "keys should be split"
            return Decision(observation.nodes, f"cooling down for {left:.0f} s; {would}: {decision.reason}")
        if decision.target != observation.nodes:
            self._request(decision, observation)
        elif decision.split is not None:
            self._split(decision, decision.split, observation)
        elif decision.rebalance is not None:
            return self._rebalance(decision, decision.rebalance, observation)
        elif self._open_target is not None:
            if self._open_target != observation.nodes:
                self._record(decision, observation)  # the open target is withdrawn
            self._open_target = None
        return decision

    def _request(self, decision: Decision, observation: Observation) -> None:
        """Record the decision, then request the migration unless the autoscaler only recommends."""
        if self.settings.recommend_only and decision.target == self._open_target:
            return
        self._pause(observation.at)
        self._record(decision, observation)
        self._open_target = decision.target
        if self.settings.recommend_only:
            return
        try:
            self._own = self._scaler.scale(self.settings.request(decision.target))
        except (ElasticError, MigrationError) as error:
            _log.warning("the request for %d nodes was refused: %s", decision.target, error)
            self._record_failure(ScalingRefused, observation.nodes, decision.target, error)

    def _split(self, decision: Decision, stage: str, observation: Observation) -> None:
        """Split the head of a partial stage and record the decision; only record it if the autoscaler recommends."""
        self._pause(observation.at)
        if self.settings.recommend_only:
            advised = replace(decision, reason=f"{decision.reason}. Use job.split('head'), or `elastic split`.")
            self._record(advised, observation)
            return
        self._record(decision, observation)
        try:
            self._cluster.split_keys(stage, "head")
        except ElasticError as error:
            _log.warning("the request to split keys was refused: %s", error)
            self._record_failure(ScalingRefused, observation.nodes, observation.nodes, error)

    def _rebalance(self, decision: Decision, request: KeyRequest, observation: Observation) -> Decision:
        """Move keys and record the decision; only record what would help if that does not, or if it only recommends."""
        self._pause(observation.at)
        if self.settings.recommend_only:
            self._record(decision, observation)
            return decision
        try:
            self._own = self._move_keys(request)
            self._record(decision, observation)
        except KeysInfeasible as error:
            advice = f"{decision.reason}, and neither more nodes nor moves help: {error}"
            decision = Decision(observation.nodes, f"{advice} {_SPLIT_ADVICE}")
            self._record(decision, observation, ScalingRecommended)
        except (ElasticError, MigrationError) as error:
            _log.warning("the rebalance by keys was refused: %s", error)
            self._record_failure(ScalingRefused, observation.nodes, observation.nodes, error)
        return decision

    def _move_keys(self, request: KeyRequest) -> Migration:
        """Begin to move keys, to the smallest theta that works if theta does not; not if one key is too heavy."""
        try:
            return self._scaler.move_keys(replace(request, relax=False))
        except KeysInfeasible as error:
            if error.heaviest_hash is not None:
                raise
        return self._scaler.move_keys(request)

    def _pause(self, now: float) -> None:
        self._paused_until = now + self.settings.pause_seconds

    def _handle_end(self, migration: Migration, nodes: int) -> None:
        if migration is self._own and migration.error is not None:
            self._record_failure(ScalingFailed, nodes, migration.nodes[1], migration.error)
        self._own = None

    def _record(
        self, decision: Decision, observation: Observation, record_type: type[ScalingDecided] | None = None
    ) -> None:
        if record_type is None:
            record_type = ScalingRecommended if self.settings.recommend_only else ScalingDecided
        nodes, load = observation.nodes, observation.load
        _log.info("%s: %d nodes instead of %d: %s", record_type.kind, decision.target, nodes, decision.reason)
        record = record_type(
            **self._policy_facts(),
            nodes=nodes,
            target=decision.target,
            reason=decision.reason,
            mean_utilisation=load.mean_utilisation,
            **load.to_dict(),
        )
        self._journal.append(record)

    def _record_failure(
        self, record_type: type[ScalingRefused], nodes: int, target: int | None, error: BaseException
    ) -> None:
        facts = {**self._policy_facts(), "nodes": nodes, "target": target, "error": _format_error(error)}
        try:
            self._journal.append(record_type(**facts))
        except StorageError as unavailable:
            _log.warning("the journal has no record of the autoscaler's failure (%s): %s", error, unavailable)

    def _policy_facts(self) -> dict[str, Any]:
        settings = self.settings
        return {"policy": settings.name, "floor": settings.floor, "ceiling": settings.ceiling}


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
