"""The world itself: a job on real shells, chaos around it, and the comparison with an undisturbed process."""

import random
from collections import Counter, defaultdict
from typing import Any

from elastic.core.events import NodeLost
from elastic.core.messages import InstallUnits, ReleaseUnits, StandbysDropped
from elastic.core.pipeline import create_runners
from elastic.driver.event_loop import Decision
from elastic.errors import ElasticError, PoisonedStep, StoreUnreachable
from elastic.job.job import Job
from elastic.job.shutdown import StopReport
from elastic.results import Description, ResultLog
from elastic.settings import Settings
from storage.state import Manifests, StateManager, UnitId
from tests.elastic.simulation.chaos import Chaos
from tests.elastic.simulation.closed_form import closed_forms_of, count_keys, totals_of
from tests.elastic.simulation.faults import Faults
from tests.elastic.simulation.life import JOB, SECRET, Checkpoint, Life, Setting
from tests.elastic.simulation.network import FaultyNetwork
from tests.elastic.simulation.observer import Observer
from tests.elastic.simulation.oracle import Batch, Oracle, lines_of, text_of
from tests.elastic.simulation.patches import simulated
from tests.elastic.simulation.scheduler import Scheduler
from tests.elastic.simulation.store import FaultyStore

_POLL_SECONDS = 0.5
_SECONDS_LIMIT = 1_500.0
_MOST_LIVES = 200  # while the store is away, a driver starts in vain every half second
_MOST_STOPS = 3
_STEP_LIMIT = 400_000
_ZOMBIE_SECONDS = 150.0  # longer than a node is cut off, and than it takes to miss its driver


class World:
    """Runs `batches` through a pipeline, and compares results and states with those of an undisturbed process."""

    def __init__(self, seed: int, pipeline: Description, batches: list[Batch], faults: Faults) -> None:
        self.chance = chance = random.Random(seed)  # noqa: S311 - the world is hostile, not secret
        self.faults = faults
        self.story: list[tuple[Any, ...]] = []
        self.lives = 0
        self.violations: list[str] = []
        self._roles = Counter({"takeovers": 0, "warm_releases": 0, "standbys_dropped": 0})
        self._losses: dict[str, list[str]] = defaultdict(list)  # by node: its lost incarnations
        self._killed_in_one_step = 0
        self.scheduler = scheduler = Scheduler(
            chance,
            preemption=chance.choice([0.0, 0.05, 0.3]),
            step_limit=_STEP_LIMIT,
            seconds_limit=_SECONDS_LIMIT,
        )
        self.network = FaultyNetwork(scheduler, chance, lambda: self.faults, self.tell)
        self.observer = Observer(lambda: self.store.objects, SECRET, JOB, pipeline, self._complain)
        self.store = FaultyStore(scheduler, chance, lambda: self.faults, self.observer.written)
        self.chaos = Chaos(self, chance)
        self._pipeline = pipeline
        self._batches = batches
        settings = Settings(
            heartbeat_seconds=1.0,
            node_timeout_seconds=chance.choice([3.0, 6.0]),
            node_start_seconds=40.0,
            snapshot_seconds=chance.choice([1.0, 4.0, 30.0]),
            store_retry_seconds=chance.choice([4.0, 600.0]),
            max_pending_batches=chance.choice([1, 2, 4]),
            spares=chance.choice([0, 0, 1, 2]),
            staging_bytes=chance.choice([400, 64 << 20]),
            compression="none",
            standbys=chance.choice(faults.standbys) if len(faults.standbys) > 1 else faults.standbys[0],
        )
        self._checkpoint = Checkpoint()
        self._setting = Setting(
            scheduler,
            chance,
            self.network,
            self.store,
            pipeline,
            settings,
            batches,
            self._checkpoint,
            nodes=chance.choice([1, 2, 3] if settings.standbys == 0 else [2, 3, 4]),
            pace_seconds=chance.choice([0.3, 1.0, 3.0]),
        )

    def tell(self, *words: Any) -> None:
        """Add to the story; not put into text yet, since most stories are never read."""
        self.story.append((self.scheduler.now, *words))
        if words[0] == "loop:":
            self._check_roles()
            self._count_roles(words[1])
            self._note_loss(words[1])

    def tell_story(self, lines: int) -> str:
        """The end of the story, as text."""
        return "\n".join(f"{at:9.3f} " + " ".join(map(str, words))[:400] for at, *words in self.story[-lines:])

    def count(self) -> dict[str, int]:
        """What happened how often."""
        return {
            "simulated_seconds": int(self.scheduler.now),
            "switches": self.scheduler.steps,
            "calls": self.network.calls,
            "failed_calls": self.network.failures,
            "store_operations": self.store.operations,
            "store_faults": self.store.faults,
            "batches": len(self.observer.committed.sources),
            "ticks": self.observer.committed.sources.count(None),
            "drivers": self.lives,
            **self._roles,
            "killed_in_one_step": self._killed_in_one_step,
            **self.chaos.done,
        }

    def run(self) -> None:
        with simulated(self.scheduler, self.chance, self.tell):
            self.scheduler.run(self._live)

    def begin_life(self) -> None:
        """Start another driver, in the place of the one before."""
        self.lives += 1
        self.tell("driver", self.lives, "starts; the source has noted", self._checkpoint.taken)
        self.life = Life(self.lives, self._setting)

    def _live(self) -> None:
        self.begin_life()
        times = self.chance.choice([0, 5, 10, 20])
        chaos = self.scheduler.spawn(lambda: self.chaos.run(times), "chaos")
        for _ in range(_MOST_STOPS):
            while not (self._is_at_rest() and not chaos.is_alive()):
                self._check()
                self.scheduler.sleep(_POLL_SECONDS)
            self._check_owners()
            self._check_zombies()
            report = self._stop()
            if report is None:
                continue
            if report.last_batch == report.published_batch == report.saved_batch:
                self._compare()
                return
            # A node that is lost during the stop may need longer to catch up than a stop may take.
            assert report.unfinished, report
            self.scheduler.kill(self.life.process)
            self.begin_life()
        raise AssertionError(f"{_MOST_STOPS} stops saved less than what was published")

    def _stop(self) -> StopReport | None:
        """Stop the job; None if it failed by itself meanwhile, and was started again."""
        life, job = self.life, self.life.job
        assert job is not None
        if any(stage.is_partial for stage in self._pipeline.stages):
            life.spawn(lambda: self._ask_fresh(job), "fresh").join()
            self._check()
            if self.life is not life:
                return None
        reports: list[StopReport] = []
        life.is_stopping = True
        life.spawn(lambda: reports.append(job.stop()), "stop").join()
        self._check()
        return reports[0] if self.life is life else None

    def _check(self) -> None:
        """Fail as soon as something is wrong; start another driver in the place of one that could not start."""
        assert not self.violations, self.violations
        life = self.life
        if life.error is not None:
            self.tell(life.process, "could not start:", repr(life.error))
            assert self.lives < _MOST_LIVES, "no driver can start"
            self.scheduler.kill(life.process)
            self.begin_life()
        elif life.failure is not None:
            self._check_failure(life.failure)

    def _check_failure(self, failure: BaseException) -> None:
        """Start a job again that may have ended: its store was away for too long, or its steps look poisoned."""
        if isinstance(failure, PoisonedStep):
            self._check_poisoned(failure)
        elif not isinstance(failure, StoreUnreachable):
            raise failure
        life = self.life
        self.tell(life.process, "failed:", repr(failure))
        self.scheduler.sleep(_POLL_SECONDS)
        self.scheduler.kill(life.process)
        if self.life is life:  # else chaos has started another one
            self.begin_life()

    def _check_poisoned(self, failure: PoisonedStep) -> None:
        """No operator here kills a process, so a step looks poisoned only if chaos has struck each that died in it."""
        launcher = self.life.launcher
        assert launcher is not None
        of_this_life = {launcher.current_name(name) for name in launcher.incarnations}
        losses = [one for one in self._losses[failure.node] if one in of_this_life]
        if len(losses) < failure.deaths or not self.chaos.struck.issuperset(losses):
            raise failure
        self._killed_in_one_step += 1

    def _is_at_rest(self) -> bool:
        """Whether nothing is left to do, and nothing keeps the last stop from saving it."""
        life = self.life
        if not life.is_running or life.is_stopping or life.job is None or self._checkpoint.taken < len(self._batches):
            return False
        if not self.store.is_reachable:
            return False
        newest, published = life.job.batches()
        migration, rekeying = life.job.migration, life.job._driver.view.rekeying
        is_moving = any(change is not None and not change.is_over for change in (migration, rekeying))
        return published == newest and not is_moving

    def _check_owners(self) -> None:
        """No unit is active on two nodes that the driver listens to."""
        life = self.life
        assert life.launcher is not None
        current = self._current_incarnations()
        owners: Counter[UnitId] = Counter()
        for process in life.launcher.living_nodes().values():
            if process._context.incarnation in current:
                owners.update(unit.id for unit in process._host._active())
        twice = [unit for unit, count in owners.items() if count > 1]
        assert not twice, f"{twice} work on two nodes"

    def _check_roles(self) -> None:
        """After every event: no node owns and follows the same unit, neither now nor by what is committed."""
        job = self.life.job
        if job is None or self.violations:
            return
        placement = job._driver._loop._coordinator.placement
        for node in placement.following():
            if both := set(placement.followed_by(node)).intersection(placement.units_on(node)):
                self._complain(f"{node} owns and follows {both}")
        for routing in (placement.committed, placement.route()):
            for task, standbys in enumerate(routing.standbys):
                if len({routing.assignment.owners[task], *standbys}) <= len(standbys):
                    self._complain(f"task {task} is on a node twice: {routing}")

    def _count_roles(self, decision: Decision) -> None:
        """Count what happens to standbys, so that a campaign shows what it has tried."""
        for command in decision.commands:
            message = getattr(command, "message", None)
            if isinstance(message, InstallUnits) and any(not handle.standby for handle in message.units):
                is_taken_over = isinstance(decision.event, NodeLost) and decision.event.node != command.node
                self._roles["takeovers"] += is_taken_over
            elif isinstance(message, ReleaseUnits):
                self._roles["warm_releases"] += message.warm
        self._roles["standbys_dropped"] += isinstance(decision.event, StandbysDropped)

    def _note_loss(self, decision: Decision) -> None:
        if isinstance(decision.event, NodeLost) and decision.commands:  # else it was known
            self._losses[decision.event.node].append(decision.event.incarnation)

    def _check_zombies(self) -> None:
        """A node that the driver has replaced leaves as soon as it hears so."""
        assert self.life.launcher is not None
        deadline = self.scheduler.now + _ZOMBIE_SECONDS
        while zombies := self._zombies():
            assert self.scheduler.now < deadline, f"{zombies} were replaced, and do not leave"
            self.scheduler.sleep(_POLL_SECONDS)

    def _zombies(self) -> list[str]:
        """Living processes that are no current incarnation, and no spare that waits for a name."""
        assert self.life.job is not None
        assert self.life.launcher is not None
        launcher = self.life.launcher
        current = self._current_incarnations() | set(self.life.job._driver.links._spares._waiting)
        return [name for name in launcher.living() if launcher.current_name(name) not in current]

    def _ask_fresh(self, job: Job) -> None:
        """A fresh answer has every row once, whether the partial stage has emitted it or not."""
        expected = count_keys(self._pipeline, self._batches)
        for key in self.chance.sample(sorted(expected), min(3, len(expected))):
            try:
                found = job.state(key, self._pipeline.stages[-1].name, fresh=True)
            except ElasticError as error:
                self.tell("user is told:", repr(error))
                continue
            if (found if isinstance(found, int) else found[0]) != expected[key]:
                self._complain(f"key {key} has {expected[key]} rows, and a fresh answer is {found}")

    def _current_incarnations(self) -> set[str]:
        assert self.life.job is not None
        return {node.incarnation for node in self.life.job._driver.view.nodes}

    def _compare(self) -> None:
        oracle = Oracle(self._pipeline, self.observer.committed)
        oracle.take(self._batches)
        results = ResultLog(self.store.objects, SECRET, JOB)
        found: Counter[str] = Counter()
        for stage in self._pipeline.stages:
            for batch in range(len(self.observer.committed.sources)):
                rows = results.read(batch, stage.name)
                found.update(lines_of(stage.name, batch, rows.drop_columns(["_batch", "_task"])))
        assert found == oracle.results, _difference(found, oracle.results)
        totals = totals_of(self._pipeline, self.observer.committed, self._batches)
        if totals is not None:
            last = self._pipeline.stages[-1].name
            merged = Counter({line: count for line, count in found.items() if line.startswith(f"{last} ")})
            assert merged == totals, _difference(merged, totals)
        for stage_name, lines in closed_forms_of(self._pipeline, self.observer.committed, self._batches).items():
            of_stage = Counter({line: count for line, count in found.items() if line.startswith(f"{stage_name} ")})
            assert of_stage == lines, _difference(of_stage, lines)
        assert self._stored_states() == oracle.states()
        self._compare_sink(oracle)

    def _compare_sink(self, oracle: Oracle) -> None:
        assert self.life.job is not None
        [writer] = self.life.job._sink_writers.by_stage.values()
        if isinstance(writer.error, StoreUnreachable):
            return  # the status of the job says so, and the next run delivers the rest
        assert writer.error is None
        last = next(stage.name for stage in reversed(self._pipeline.stages) if stage.output_schema is not None)
        delivered: Counter[str] = Counter()
        for batch, rows in self.life.sink._batches:
            delivered.update(lines_of(last, batch, rows.drop_columns(["_batch", "_task"])))
        expected = Counter({line: count for line, count in oracle.results.items() if line.startswith(f"{last} ")})
        batches = [batch for batch, _ in self.life.sink._batches]
        assert delivered == expected, f"the sink has {batches}. {_difference(delivered, expected)}"

    def _stored_states(self) -> dict[UnitId, str]:
        """The states that the next driver would start with."""
        manifest = Manifests(self.store.objects, SECRET, JOB).latest()
        assert manifest is not None
        assert manifest.low_water_mark == manifest.last_batch == len(self.observer.committed.sources) - 1
        manager = StateManager(self.store.objects, SECRET, JOB, threads=1)
        stages = create_runners(self._pipeline, "fail")
        states: dict[UnitId, str] = {}
        for unit, ref in manifest.units.items():
            runner = stages[unit.stage]
            saved = None if ref is None else manager.load(ref).state
            states[unit] = text_of(runner.new_state() if saved is None else runner.restore(saved), runner)
        return states

    def _complain(self, what: str) -> None:
        self.tell("VIOLATION", what)
        self.violations.append(what)


def _difference(found: Counter[str], expected: Counter[str]) -> str:
    return f"missing: {dict(expected - found)}; not expected: {dict(found - expected)}"
