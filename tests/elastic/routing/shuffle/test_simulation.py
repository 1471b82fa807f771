"""The simulator, against the event heap and the paper's own example."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic.errors import IllegalTransition, InvalidJob
from elastic.experiments.paper004.streams import Setting
from elastic.routing.shuffle import ExecutionSketch, SketchShape
from elastic.routing.shuffle.machines import SchedulerState
from elastic.routing.shuffle.simulation import READINGS, Reading, SimulatedStream, SimulationResult, simulate
from elastic.routing.shuffle.simulation.instance import OperatorInstance, SketchReport, SyncReply, SyncRequest
from elastic.routing.shuffle.simulation.scheduler import PosgScheduler
from elastic.routing.shuffle.sketch import Columns

SHAPE = SketchShape(2, 8)
FLAGS = ("by_frequency", "wall_clock", "unseen_as_mean", "numbers_epochs", "pooled", "skips_idle")
SMALL_READINGS = st.builds(
    Reading,
    window=st.integers(1, 12),
    mu=st.sampled_from([None, 0.0, 0.3, 5.0]),
    sync_rows=st.sampled_from([None, 1, 7, 30]),
    **{flag: st.booleans() for flag in FLAGS},
)


def draw_stream(seed: int, rows: int = 300, instances: int = 3, *, whole: bool = False) -> SimulatedStream:
    """A stream with phases of other speeds; whole numbers make many events coincide."""
    rng = np.random.default_rng(seed)
    keys = rng.zipf(1.3, rows) % 40
    costs = rng.integers(1, 5, 40).astype(float)[keys]
    gaps = rng.integers(0, 3, rows) if whole else rng.exponential(costs.mean() / instances, rows)
    slowness = np.ones((2, instances)) if whole else rng.uniform(0.8, 1.2, (2, instances))
    return SimulatedStream(keys.astype(np.int64), np.cumsum(gaps).astype(float), costs, slowness)


def outcome(result: SimulationResult) -> tuple[object, ...]:
    return result.instances.tolist(), result.completion.tolist(), result.story, result.messages


@settings(max_examples=60)
@given(SMALL_READINGS, st.integers(0, 10**6), st.integers(1, 5), st.booleans(), st.sampled_from([0.0, 1.0, 2.7]))
def test_the_simulator_equals_the_event_heap(
    reading: Reading, seed: int, instances: int, whole: bool, delay: float
) -> None:
    stream = draw_stream(seed, 200, instances, whole=whole)
    by_events = simulate(stream, reading, SHAPE, delay=delay, by_events=True)
    assert outcome(simulate(stream, reading, SHAPE, delay=delay)) == outcome(by_events)


@pytest.mark.parametrize("policy", ["round-robin", "full-knowledge", *READINGS])
def test_every_policy_equals_the_event_heap(policy: str) -> None:
    named = READINGS.get(policy)
    small = policy if named is None else replace(named, window=named.window // 32, sync_rows=named.sync_rows and 40)
    for seed in range(3):
        stream = draw_stream(seed, 600, whole=seed == 0)
        assert outcome(simulate(stream, small, SHAPE)) == outcome(simulate(stream, small, SHAPE, by_events=True))


@pytest.mark.parametrize("seed", range(12))
def test_messages_of_the_same_moment_arrive_by_instance(seed: int) -> None:
    rng, instances, rows = np.random.default_rng(seed), 3, 300
    arrivals = np.sort(rng.integers(0, rows // instances, rows)).astype(float)
    stream = SimulatedStream(np.arange(rows), arrivals, np.ones(rows), np.ones((1, instances)))
    reading = Reading(window=int(rng.integers(2, 9)), mu=None, wall_clock=True, numbers_epochs=True)
    assert outcome(simulate(stream, reading, SHAPE)) == outcome(simulate(stream, reading, SHAPE, by_events=True))


def test_without_numba_the_event_heap_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, reading = draw_stream(4), Reading(window=10, mu=None)
    expected = outcome(simulate(stream, reading, SHAPE))
    monkeypatch.setattr("elastic.routing.shuffle.simulation.simulator.load_compiled", lambda _module, _name: None)
    assert outcome(simulate(stream, reading, SHAPE)) == expected


def test_the_example_of_the_paper_takes_29_seconds_by_turns_and_21_with_known_costs() -> None:
    stream = SimulatedStream(np.array([0, 1, 0]), np.arange(3.0), np.array([10.0, 1.0, 10.0]), np.ones((1, 2)))
    assert simulate(stream, "round-robin").completion.tolist() == [10, 1, 18]
    assert simulate(stream, "full-knowledge").completion.tolist() == [10, 1, 10]


def speedup(reading: Reading, skew: float, streams: int) -> float:
    """Return the mean completion time by turns, over that of a reading, in the streams of the paper."""
    turns = posg = 0.0
    for seed in range(streams):
        stream = Setting(32_768, 4_096, skew).stream(seed)
        turns += simulate(stream, "round-robin").mean_completion
        posg += simulate(stream, reading).mean_completion
    return turns / posg


@pytest.mark.parametrize(("window", "least"), [(256, 1.4), (1_024, 1.15)])
def test_skewed_rows_complete_faster_than_by_turns(window: int, least: float) -> None:
    assert speedup(replace(READINGS["best"], window=window), 1.0, 4) >= least


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.5, 2.0, 2.5, 3.0])
def test_no_skew_makes_the_best_reading_slower_than_turns(skew: float) -> None:
    assert speedup(READINGS["best"], skew, 1) >= 0.9


def test_the_scheduler_goes_through_its_states_in_the_order_of_the_paper() -> None:
    result = simulate(draw_stream(1), Reading(window=10, mu=None, sync_rows=20, numbers_epochs=True), SHAPE)
    states = [state for _, state in result.story]
    cycle = [SchedulerState.SEND_ALL, SchedulerState.WAIT_ALL, SchedulerState.RUN]
    assert len(states) > 6
    assert states == (cycle * len(states))[: len(states)]
    runs = [row for row, state in result.story if state is SchedulerState.RUN]
    sends = [row for row, state in result.story if state is SchedulerState.SEND_ALL]
    assert all(after - before == 21 for before, after in zip(runs, sends[1:], strict=False))


def start(reading: Reading, instances: int = 2) -> PosgScheduler:
    """A scheduler that has the sketches of all instances: every row takes 4 seconds on instance 0, and 6 on 1."""
    scheduler = PosgScheduler(instances, reading, SHAPE)
    for instance in range(instances):
        sketch = ExecutionSketch(SHAPE)
        sketch.add(np.arange(100), np.full(100, 4.0 + 2 * instance))
        scheduler.receive(SketchReport(instance, sketch))
    return scheduler


def columns(key: int = 1) -> Columns:
    return SHAPE.columns_of(np.array([key]))[:, 0]


def test_requests_ride_on_the_next_rows_and_replies_correct_all_estimates_at_once() -> None:
    scheduler = start(Reading(numbers_epochs=True))
    assert scheduler.submit(0, columns(), 0.0) == (0, SyncRequest(1, 4.0))
    assert scheduler.submit(1, columns(), 0.0) == (1, SyncRequest(1, 6.0))
    scheduler.receive(SyncReply(1, 1, 10.0))
    assert scheduler.completion.tolist() == [4, 6]
    scheduler.receive(SyncReply(0, 1, 20.0))
    states = [state for _, state in scheduler.story]
    assert states == [SchedulerState.SEND_ALL, SchedulerState.WAIT_ALL, SchedulerState.RUN]
    assert scheduler.completion.tolist() == [24, 16]
    assert scheduler.submit(2, columns(), 99.0) == (1, None)
    assert scheduler.completion.tolist() == [24, 22]


def test_a_sketch_starts_a_new_epoch_and_replies_of_the_old_one_are_dropped() -> None:
    scheduler = start(Reading(numbers_epochs=True))
    scheduler.submit(0, columns(), 0.0)
    scheduler.receive(SketchReport(0, ExecutionSketch(SHAPE)))
    scheduler.receive(SyncReply(0, 1, 100.0))
    assert scheduler.submit(1, columns(), 0.0).request == SyncRequest(2, 4.0)  # the new sketch knows no row
    scheduler.submit(2, columns(), 0.0)
    for instance in range(2):
        scheduler.receive(SyncReply(instance, 2, 1.0))
    assert scheduler.completion.tolist() == [5, 7]


def test_as_written_a_late_reply_is_taken_for_a_current_one() -> None:
    scheduler = start(Reading())
    for row in range(2):
        scheduler.submit(row, columns(), 0.0)
    scheduler.receive(SyncReply(0, 1, 100.0))
    scheduler.receive(SketchReport(0, ExecutionSketch(SHAPE)))
    for row in range(2):
        scheduler.submit(row, columns(), 0.0)
    scheduler.receive(SyncReply(1, 1, 100.0))
    scheduler.receive(SyncReply(0, 2, 1.0))
    assert scheduler.state is SchedulerState.RUN
    assert scheduler.completion.tolist() == [5, 112]


def test_an_instance_that_should_be_idle_is_done_now() -> None:
    for skips_idle, expected in (True, [54.0, 6.0]), (False, [8.0, 6.0]):
        scheduler = start(Reading(skips_idle=skips_idle))
        for row in range(2):
            scheduler.submit(row, columns(), 0.0)
        assert scheduler.submit(2, columns(), 50.0).instance == 0
        assert scheduler.completion.tolist() == expected


def test_a_reply_that_nobody_asked_for_is_refused() -> None:
    with pytest.raises(IllegalTransition):
        PosgScheduler(2, Reading(), SHAPE).receive(SyncReply(0, 0, 1.0))


def test_an_instance_reports_its_second_stable_window_and_begins_anew() -> None:
    instance = OperatorInstance(0, Reading(window=2, mu=0.0), ExecutionSketch(SHAPE))
    sent = [instance.execute(columns(), cost, 0.0, None) for cost in (1.0, 1.0, 1.0, 3.0, 1.5, 1.5)]
    assert [len(messages) for messages in sent] == [0, 0, 0, 0, 0, 1]
    [report] = sent[-1]
    assert isinstance(report, SketchReport)
    assert (report.sketch.rows, instance.sketch.rows) == (6, 0)


def test_a_reply_compares_the_estimate_with_the_clock_or_with_the_work_done() -> None:
    for wall_clock, delta in (True, 90.0), (False, -5.0):
        instance = OperatorInstance(3, Reading(wall_clock=wall_clock), ExecutionSketch(SHAPE))
        instance.execute(columns(), 2.0, 95.0, None)
        assert instance.execute(columns(), 3.0, 100.0, SyncRequest(7, 10.0)) == [SyncReply(3, 7, delta)]


def test_what_cannot_be_simulated_is_refused() -> None:
    stream = draw_stream(0, 5)
    with pytest.raises(InvalidJob, match="'best'"):
        simulate(stream, "worst")
    for delay in -1.0, float("nan"):
        with pytest.raises(InvalidJob, match="at least 0"):
            simulate(stream, "best", delay=delay)
    for wrong in {"window": 0}, {"mu": -0.1}, {"sync_rows": 0}:
        with pytest.raises(InvalidJob, match="no reading"):
            Reading(**wrong)


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"costs": np.ones(2)}, "every row"),
        ({"slowness": np.ones(3)}, "every row"),
        ({"slowness": np.ones((1, 0))}, "every row"),
        ({"costs": np.zeros(3)}, "above 0"),
        ({"slowness": np.array([[np.inf]])}, "above 0"),
        ({"arrivals": np.array([1.0, 0.0, 2.0])}, "Sort them"),
    ],
)
def test_streams_that_make_no_sense_are_refused(changed: dict[str, object], advice: str) -> None:
    given = {"hashes": np.arange(3), "arrivals": np.arange(3.0), "costs": np.ones(3), "slowness": np.ones((1, 1))}
    with pytest.raises(InvalidJob, match=advice):
        SimulatedStream(**{**given, **changed})  # type: ignore[arg-type]
