"""Faults that leave processes alive: pauses, a lost JVM, a full disk, a second driver, a clock that jumps.

After each of them the job must make progress within `PROGRESS_SECONDS`, and what it says of itself meanwhile must be
true; what is not so is in the outcome.
"""

import os
import signal
import time
from pathlib import Path

from tests.chaos import processes
from tests.chaos.api_probe import wait_until_degraded
from tests.chaos.clock import set_clock
from tests.chaos.run import Run
from tests.chaos.small_disk import fill, make_room

NODE_TIMEOUT_SECONDS = 4.0  # of jobs that meet pauses, so that long ones can be short
SHORT_SECONDS, LONG_SECONDS = 1.5, 7.0  # below and above that timeout
PROGRESS_SECONDS = 45.0  # on two busy cores; a node that is replaced takes a few seconds
OVERDUE_SECONDS = 30.0  # a step that runs for less is not overdue
END_SECONDS = 30.0  # until a driver notices that it cannot continue


def pause_nodes(run: Run) -> None:
    """A short pause is not a loss; after a long one the node is replaced, and the old process does no harm."""
    before = run.life.losses
    _pause(run, [_a_node(run)], SHORT_SECONDS)
    run.expect_progress(PROGRESS_SECONDS)
    run.expect(run.life.losses == before, "a node that paused below its timeout was declared lost")
    _pause(run, [_a_node(run)], LONG_SECONDS)
    run.expect_progress(PROGRESS_SECONDS)
    run.expect(run.life.losses > before, "a node that paused above its timeout was not declared lost")


def pause_nodes_that_scale(run: Run, pauses: int) -> None:
    """While tasks and keys move, nodes pause in turn below and above the timeout; every migration comes to its end."""
    for number in range(pauses):
        run.wait_for_scales((number + 1) * run.settings.scales // (pauses + 1))
        _pause(run, [_a_node(run)], LONG_SECONDS if number % 2 else SHORT_SECONDS)
        run.expect_progress(PROGRESS_SECONDS)
    run.wait_for_scales(run.settings.scales)


def pause_executors(run: Run) -> None:
    """With all nodes on it; Spark itself has more patience than the job."""
    for seconds in (SHORT_SECONDS, LONG_SECONDS):
        executor = run.random.choice(run.life.executors_with_nodes())
        _pause(run, [executor, *processes.descendants(executor)], seconds)
        run.expect_progress(PROGRESS_SECONDS)


def pause_drivers(run: Run) -> None:
    """A driver that was suspended has heard no heartbeats, and must not take that for the silence of its nodes."""
    before = run.life.losses
    for seconds in (SHORT_SECONDS, LONG_SECONDS):
        _pause(run, [run.life.pid, run.life.jvm], seconds)
        run.expect_progress(PROGRESS_SECONDS)
    run.expect(run.life.losses == before, "a driver that was suspended declared nodes lost that were alive")


def kill_jvms(run: Run) -> None:
    """The driver's Python process stays, finds out, and ends; the next life continues."""
    processes.kill(run.life.jvm)
    run.expect_end(END_SECONDS, "the JVM was killed")
    run.start_again()
    run.expect_progress(PROGRESS_SECONDS)


def fill_disk(run: Run) -> None:
    """A store without room ends the job, and harms nothing that is committed; with room it continues."""
    disk = Path(run.settings.store.removeprefix("file://")).parent
    run.sleep(1.0)
    fill(disk)
    end = run.expect_end(END_SECONDS, "its store has no room")
    run.expect("No space left" in end or "StoreFull" in end, f"the job did not say that the store is full: {end}")
    make_room(disk)
    run.start_again()
    run.expect_progress(PROGRESS_SECONDS)


def start_second_driver(run: Run) -> None:
    """The second one takes the job over; the first one finds out that it does not own it any more, and ends."""
    first = run.life
    run.start_again(while_running=True)
    run.expect_progress(PROGRESS_SECONDS)
    run.expect_end(END_SECONDS, "another driver took the job over", life=first)


def jump_clock(run: Run) -> None:
    """Forward by an hour, back by two, and right again."""
    for hours in (1, -1, 0):
        set_clock(run.settings.folder, hours * 3_600_000)
        run.expect_progress(PROGRESS_SECONDS)


def poison(run: Run) -> None:
    """A row that always kills its process ends the job with a typed error; a corrected operator continues."""
    end = run.expect_end(END_SECONDS + 2 * PROGRESS_SECONDS, "a row kills every process that takes it")
    run.expect("PoisonedStep" in end, f"the job did not end with PoisonedStep, but with: {end[-500:]}")
    run.change(poison=-1)
    run.start_again()
    run.expect_progress(PROGRESS_SECONDS)


def hang(run: Run) -> None:
    """An operator that hangs once: its node is ended after `step_timeout_seconds`, and the step is repeated."""
    run.expect_progress_beyond(run.settings.hang, PROGRESS_SECONDS)
    run.expect(run.life.losses > 0, "no node was declared lost, though one did not end its step")


def hang_for_ever(run: Run) -> None:
    """Without a time limit the API says which node hangs; the job continues when that process is ended."""
    run.wait_for_batch(run.settings.hang - 1)
    node = wait_until_degraded(run.life, OVERDUE_SECONDS + PROGRESS_SECONDS)
    run.expect(node is not None, "a step hangs, and health is not degraded or does not name the node")
    run.kill_node(node)
    run.expect_progress_beyond(run.settings.hang, PROGRESS_SECONDS)


def _a_node(run: Run) -> int:
    nodes: dict[str, int] = {}
    run.wait_until(lambda: bool(nodes.update(run.life.nodes) or nodes), "a node")
    return nodes[run.random.choice(sorted(nodes))]


def _pause(run: Run, pids: list[int], seconds: float) -> None:
    """Stop processes, and let them continue whatever happens meanwhile."""
    run.outcome.pauses += 1
    try:
        _signal(pids, signal.SIGSTOP)
        time.sleep(seconds)
    finally:
        _signal(pids, signal.SIGCONT)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it has ended since
