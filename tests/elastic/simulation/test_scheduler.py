"""The simulated threads themselves: one seed, one story; time passes only while all wait; a dead process stays dead."""

import queue
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.elastic.simulation.scheduler import Process, Scheduler, Stuck


def play(body: Callable[[Scheduler], object], seed: int = 0, **limits: Any) -> Scheduler:
    scheduler = Scheduler(random.Random(seed), **limits)  # noqa: S311
    scheduler.run(lambda: body(scheduler))
    return scheduler


def tell_story(seed: int) -> list[str]:
    """Three threads that work on one queue."""
    story: list[str] = []

    def body(scheduler: Scheduler) -> None:
        numbers = scheduler.queue(2)

        def work(name: str) -> None:
            while (number := numbers.get()) is not None:
                story.append(f"{scheduler.now:.3f} {name} {number}")
                scheduler.sleep(scheduler.random_seconds(1.0))

        workers = [scheduler.spawn(partial(work, name), name) for name in "abc"]
        for number in range(20):
            numbers.put(number)
        for _ in workers:
            numbers.put(None)
        for worker in workers:
            worker.join()

    play(body, seed)
    return story


def test_a_seed_tells_one_story_and_another_seed_another_one() -> None:
    assert tell_story(1) == tell_story(1)
    assert tell_story(1) != tell_story(2)


def test_every_runnable_thread_gets_its_turns() -> None:
    turns: Counter[int] = Counter()

    def body(scheduler: Scheduler) -> None:
        def take_turns(number: int) -> None:
            for _ in range(100):
                turns[number] += 1
                scheduler.pause()
                if sum(turns.values()) == 500:
                    assert min(turns.values()) > 25, turns

        threads = [scheduler.spawn(partial(take_turns, number), "one") for number in range(10)]
        for thread in threads:
            thread.join()

    play(body)
    assert set(turns.values()) == {100}


def test_time_passes_only_while_all_threads_wait() -> None:
    def body(scheduler: Scheduler) -> None:
        assert not scheduler.event().wait(timeout=3_600.0)
        assert scheduler.now == 3_600.0
        began = scheduler.time_ns()
        scheduler.sleep(0.5)
        assert scheduler.time_ns() - began == 500_000_000

    assert play(body).steps < 10


def test_waits_end_in_time_or_when_they_are_notified() -> None:
    def body(scheduler: Scheduler) -> None:
        event, items, lock, condition = (
            scheduler.event(),
            scheduler.queue(1),
            scheduler.lock(False),
            scheduler.condition(),
        )
        future = scheduler.future()
        with lock:
            for wait in (
                lambda: event.wait(1.0),
                lambda: lock.acquire(timeout=1.0),
                lambda: condition.wait_for(lambda: False, 1.0),
            ):
                with condition:
                    began = scheduler.now
                    assert not wait()
                    assert scheduler.now == began + 1.0
        with pytest.raises(queue.Empty):
            items.get(timeout=1.0)
        items.put("full")
        with pytest.raises(queue.Full):
            items.put("more", timeout=1.0)
        with pytest.raises(TimeoutError):
            future.result(timeout=1.0)
        began = scheduler.now

        def notify() -> None:
            scheduler.sleep(2.0)
            event.set()
            with condition:
                condition.notify_all()
            items.get()
            future.set_result(7)

        scheduler.spawn(notify, "notify")
        assert event.wait(10.0)
        with condition:
            condition.wait_for(event.is_set, 10.0)
        items.put("more", timeout=10.0)
        assert future.result(10.0) == 7
        assert scheduler.now == began + 2.0

    play(body)


def test_a_lock_is_held_by_one_thread_and_by_its_owner_again_if_that_is_allowed() -> None:
    inside: list[str] = []

    def body(scheduler: Scheduler) -> None:
        lock = scheduler.lock(True)

        def enter(name: str) -> None:
            with lock, lock:
                assert not inside
                inside.append(name)
                scheduler.sleep(scheduler.random_seconds(1.0))
                inside.remove(name)

        threads = [scheduler.spawn(partial(enter, name), name) for name in "abcd"]
        for thread in threads:
            thread.join()
        assert not lock.locked()

    for seed in range(10):
        play(body, seed)


def test_a_pool_runs_so_many_at_a_time_and_passes_on_results_and_errors() -> None:
    def body(scheduler: Scheduler) -> None:
        running: list[int] = []

        def work(number: int) -> int:
            running.append(number)
            assert len(running) <= 2
            scheduler.sleep(1.0)
            running.remove(number)
            return 10 // number

        with scheduler.pool(2, "pool", None) as pool:
            futures = [pool.submit(work, number) for number in range(4)]
            with pytest.raises(ZeroDivisionError):
                futures[0].result()
            assert [future.result() for future in futures[1:]] == [10, 5, 3]
            assert list(pool.map(work, [1, 2])) == [10, 5]
            left = [pool.submit(work, 1) for _ in range(5)]
            scheduler.sleep(0.5)
            pool.shutdown(wait=False, cancel_futures=True)
        assert [future.cancelled() for future in left] == [False, False, True, True, True]
        assert scheduler.now == 4.0

    play(body, preemption=0.0)


def test_threads_that_wait_for_each_other_are_reported_with_what_they_wait_for() -> None:
    def body(scheduler: Scheduler) -> None:
        one, other = scheduler.lock(False), scheduler.lock(False)

        def take(first: Any, second: Any) -> None:
            with first:
                scheduler.sleep(1.0)
                with second:
                    pass

        scheduler.spawn(lambda: take(one, other), "left")
        scheduler.spawn(lambda: take(other, one), "right").join()

    with pytest.raises(Stuck, match="waits for another one") as stuck:
        play(body)
    assert "world/left: a lock that world/right holds" in str(stuck.value)
    assert "world/main: the end of right" in str(stuck.value)


def test_a_world_that_does_not_come_to_rest_is_reported() -> None:
    def wait_for_ever(scheduler: Scheduler) -> None:
        while True:
            scheduler.sleep(1.0)

    def spin(scheduler: Scheduler) -> None:
        while True:
            scheduler.pause()

    with pytest.raises(Stuck, match="50 simulated seconds were not enough") as stuck:
        play(wait_for_ever, seconds_limit=50.0)
    assert "world/main: time to pass" in str(stuck.value)
    with pytest.raises(Stuck, match="1000 switches were not enough"):
        play(spin, step_limit=1_000)


def test_an_error_that_a_thread_does_not_catch_fails_the_world() -> None:
    def body(scheduler: Scheduler) -> None:
        scheduler.spawn(lambda: 1 // 0, "careless")
        scheduler.sleep(1.0)

    with pytest.raises(ZeroDivisionError) as failed:
        play(body)
    assert "world/careless" in failed.value.__notes__[0]


def test_a_killed_process_runs_nothing_more_not_even_its_finally_blocks() -> None:
    done: list[str] = []

    def body(scheduler: Scheduler) -> None:
        process = Process("victim")
        lock = scheduler.lock(False)

        def work() -> None:
            with lock:
                try:
                    scheduler.sleep(10.0)
                finally:
                    if scheduler.now > 1.0:
                        done.append("finally")

        victim = scheduler.spawn(work, "work", process)
        scheduler.sleep(1.0)
        scheduler.kill(process)
        victim.join()
        assert not victim.is_alive()
        assert not lock.acquire(timeout=100.0)
        assert done == []

    play(body)


def test_a_process_that_is_killed_silently_is_missed_only_when_that_is_announced() -> None:
    def body(scheduler: Scheduler) -> None:
        process = Process("victim")
        victim = scheduler.spawn(lambda: scheduler.sleep(10.0), "work", process)
        scheduler.sleep(1.0)
        scheduler.kill(process, silently=True)
        victim.join(timeout=100.0)
        assert victim.is_alive()
        scheduler.announce(process)
        victim.join()
        assert scheduler.now == 101.0

    play(body)


def test_threads_start_in_the_process_of_their_creator() -> None:
    def body(scheduler: Scheduler) -> None:
        process = Process("other")
        seen: list[Process] = []
        outer = scheduler.spawn(
            lambda: scheduler.spawn(lambda: seen.append(scheduler.process), "inner").join(), "outer", process
        )
        outer.join()
        assert seen == [process]

    play(body)
