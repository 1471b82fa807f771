"""Load is measured from counters that begin anew with every incarnation, by many threads, while nodes come and go."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.control import Load, Monitor, NodeCounters, PeriodicThread, TaskCounters, Vitals
from elastic.control.load import Sample
from tests.elastic.control.test_control import PaperCluster


def vitals(ahead: int = 0, **busy: tuple[str, float]) -> Vitals:
    """Of nodes given as `name=(incarnation, busy seconds)`."""
    return Vitals({name: NodeCounters(life, seconds, 1) for name, (life, seconds) in busy.items()}, ahead, 4)


def monitored(*found: tuple[float, Vitals]) -> Monitor:
    monitor = Monitor(1, clock=lambda: found[-1][0])
    for at, seen in found:
        monitor.observe({}, at, seen)
    return monitor


def test_utilisation_is_the_share_of_the_time_in_which_a_node_worked() -> None:
    monitor = monitored(
        (0.0, vitals(a=("a.1", 100.0), b=("b.1", 7.0))), (10.0, vitals(a=("a.1", 105.0), b=("b.1", 7.0)))
    )
    load = monitor.load()
    assert load.utilisation == {"a": 0.5, "b": 0.0}
    assert load.mean_utilisation == 0.25
    assert load.seconds == 10.0
    assert load.pending_steps == {"a": 1, "b": 1}


def test_a_node_that_came_back_is_measured_from_its_return() -> None:
    before, back = vitals(a=("a.1", 50.0)), vitals(a=("a.2", 1.0))
    later = vitals(a=("a.2", 3.0))
    assert monitored((0.0, before), (1.0, vitals()), (6.0, back), (10.0, later)).load().utilisation == {"a": 0.5}


def test_a_node_that_is_away_or_was_seen_once_is_not_measured() -> None:
    assert monitored((0.0, vitals(a=("a.1", 0.0))), (1.0, vitals())).load().utilisation == {}
    assert monitored((0.0, vitals()), (1.0, vitals(a=("a.1", 0.5)))).load().utilisation == {}
    assert Monitor(1).load() == Load(0.0, {}, {}, 0.0, 1, 0.0)


def test_only_the_stretch_that_is_asked_for_counts() -> None:
    seconds = [0.0, 1.0, 2.0, 2.0, 2.0]
    monitor = monitored(*((float(at), vitals(ahead=at, a=("a.1", busy))) for at, busy in enumerate(seconds)))
    assert monitor.load(2.0).utilisation == {"a": 0.0}
    assert monitor.load(2.0).pending_batches == 3.0
    assert monitor.load(4.0).utilisation == {"a": 0.5}


@given(st.floats(-0.5, 0.5), st.integers(2, 30))
def test_growth_is_the_slope_of_the_queue(slope: float, count: int) -> None:
    samples = [Sample(float(at), Vitals({}, 50 + slope * at, 100)) for at in range(count)]  # type: ignore[arg-type]
    assert Load.from_samples(samples).queue_growth == pytest.approx(slope, abs=1e-9)


@given(st.lists(st.tuples(st.floats(0.01, 5), st.floats(0, 20)), min_size=2, max_size=20))
def test_utilisation_is_a_share_whatever_the_counters_say(steps: list[tuple[float, float]]) -> None:
    at, busy, found = 0.0, 0.0, []
    for seconds, work in steps:
        at, busy = at + seconds, busy + work
        found.append((at, vitals(a=("a.1", busy))))
    assert 0.0 <= monitored(*found).load().utilisation["a"] <= 1.0


def test_a_task_on_another_incarnation_is_counted_anew_even_if_it_has_worked_more_there() -> None:
    monitor = Monitor(2, window_seconds=100.0)
    monitor.observe({0: TaskCounters(1, 2.0, 1, "a.1"), 1: TaskCounters(1, 1.0, 1, "b.1")}, now=0.0)
    monitor.observe({1: TaskCounters(1, 1.0, 1, "b.1")}, now=1.0)  # task 0 is on its way
    monitor.observe({0: TaskCounters(1, 3.0, 1, "b.1"), 1: TaskCounters(1, 1.0, 1, "b.1")}, now=2.0)
    assert monitor.workload().work.tolist() == [5.0, 1.0]


@pytest.mark.parametrize(("seconds", "is_measured"), [(0.0, False), (0.59, False), (0.61, True)])
def test_work_counts_from_a_hundredth_of_a_core_on(seconds: float, is_measured: bool) -> None:
    monitor = Monitor(2)
    monitor.observe({0: TaskCounters(1, seconds, 1)}, now=0.0)
    workload, note = monitor.measure()
    assert workload.work.tolist() == ([seconds, 0.0] if is_measured else [1.0, 1.0])
    assert (note == "") == is_measured


def test_threads_that_look_at_once_count_nothing_twice() -> None:
    """What one has read must not be noted after what another has read later."""

    class Growing(PaperCluster):
        seconds = 0.0

        def counters(self) -> dict[int, TaskCounters]:
            self.seconds += 1.0
            return {0: TaskCounters(1, self.seconds, 1)}

    cluster, monitor = Growing(), Monitor(1)

    def look() -> None:
        for _ in range(200):
            monitor.poll(cluster)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert monitor.workload().work.tolist() == [800.0]


def test_what_repeats_goes_on_after_a_failure_and_ends_when_it_is_stopped() -> None:
    turns: list[int] = []
    enough = threading.Event()

    def do() -> None:
        turns.append(len(turns))
        if len(turns) == 3:
            enough.set()
        raise OSError("the store is away")

    repeating = PeriodicThread("test", 0.001, do)
    repeating.start()
    assert enough.wait(10)
    repeating.stop()
    done = len(turns)
    assert repeating.is_stopped
    assert not any(thread.name == "test" for thread in threading.enumerate())
    assert len(turns) == done


def test_what_repeats_can_stop_itself_and_be_stopped_before_it_started() -> None:
    stopped = threading.Event()

    def do() -> None:
        repeating.stop()
        stopped.set()

    repeating = PeriodicThread("test", 0.001, do)
    repeating.start()
    assert stopped.wait(10)
    PeriodicThread("never", 1.0, do).stop()
