"""Many seeds of the simulated world, on all processors: `python -m tests.elastic.simulation.campaign --seeds 5000`.

A seed tells the same story in every process in which strings have the same hashes (`PYTHONHASHSEED`), since some
decisions follow the order of a set. So worlds run in processes of their own, which are started that way.
"""

import argparse
import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

from tests.elastic.simulation.faults import WORLDS
from tests.elastic.simulation.operators import PIPELINES
from tests.elastic.simulation.oracle import batches_of, pipeline_of
from tests.elastic.simulation.world import World

HASH_SEED = "0"
STORY_LINES = 150
_CHUNK = 25  # seeds for one process: it starts in a second
_PROGRESS_SECONDS = 30.0
_MODULE = "tests.elastic.simulation.campaign"
_ROOT = Path(__file__).parents[3]


def kind_of(seed: int) -> tuple[str, str]:
    """Return the names of the pipeline and of the faults of a seed."""
    kinds = [(pipeline, world) for pipeline in PIPELINES for world in WORLDS]
    return kinds[seed % len(kinds)]


def run_seed(seed: int, story_lines: int = STORY_LINES) -> tuple[World, str]:
    """Run one world; returns it, and why it failed, with its story, or an empty text.

    The seed chooses the pipeline, the batches, the faults, and all that happens.
    """
    name, kind = kind_of(seed)
    pipeline = pipeline_of(PIPELINES[name])
    world = World(seed, pipeline, batches_of(seed, len(pipeline.inputs)), WORLDS[kind])
    try:
        world.run()
    except Exception:  # noqa: BLE001 - whatever it is, the seed has failed
        story = world.tell_story(story_lines)
        again = f"PYTHONHASHSEED={HASH_SEED} python -m {_MODULE} --here --first-seed {seed} --seeds 1"
        return world, f"{story}\n{traceback.format_exc()}\nseed {seed} ({name}; {kind}) failed; again: {again}\n"
    return world, ""


def run_here(first: int, count: int, story_lines: int, only: str = "") -> bool:
    """Run seeds in this process until one fails; prints a line for each. Returns whether all passed."""
    for seed in range(first, first + count):
        if only not in " ".join(kind_of(seed)):
            continue
        started = time.perf_counter()
        world, failure = run_seed(seed, story_lines)
        facts = " ".join(f"{name}={value}" for name, value in world.count().items())
        print(f"seed={seed} seconds={time.perf_counter() - started:.2f} {facts}", flush=True)
        if failure:
            print(failure, flush=True)
            return False
    return True


def run_campaign(first: int, count: int, processes: int, story_lines: int = STORY_LINES, only: str = "") -> list[str]:
    """Run seeds in several processes, with a summary at the end; returns the output of those that failed."""
    failures: list[str] = []
    totals: Counter[str] = Counter()
    started = told = time.monotonic()
    done = 0
    with ThreadPoolExecutor(processes) as pool:
        chunks = _chunks(first, first + count)
        under_way = {pool.submit(_run_chunk, *chunk, story_lines, only): chunk for chunk in islice(chunks, processes)}
        while under_way:
            future = next(as_completed(under_way))
            _, size = under_way.pop(future)
            passed, output = future.result()
            done += size
            for line in output.splitlines():
                if line.startswith("seed="):
                    totals.update({name: float(value) for name, value in (word.split("=") for word in line.split())})
            if not passed:
                failures.append(output)
                print(output, flush=True)
            if time.monotonic() - told > _PROGRESS_SECONDS:
                told = time.monotonic()
                print(f"{done} of {count} seeds, {len(failures)} failed, {told - started:.0f} s", flush=True)
            under_way.update({pool.submit(_run_chunk, *chunk, story_lines, only): chunk for chunk in islice(chunks, 1)})
    seconds = time.monotonic() - started
    print(f"{count} seeds in {seconds:.0f} s, {seconds / max(1, count):.3f} s each; {len(failures)} failed")
    print(", ".join(f"{name}: {value:.0f}" for name, value in totals.items() if name not in ("seed", "seconds")))
    return failures


def _chunks(first: int, stop: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(_CHUNK, stop - begin)) for begin in range(first, stop, _CHUNK))


def _run_chunk(first: int, count: int, story_lines: int, only: str) -> tuple[bool, str]:
    seeds = ["--first-seed", str(first), "--seeds", str(count), "--only", only]
    arguments = ["--here", *seeds, "--story", str(story_lines)]
    done = subprocess.run(  # noqa: S603 - this very program
        [sys.executable, "-m", _MODULE, *arguments],
        env={**os.environ, "PYTHONHASHSEED": HASH_SEED, "OMP_NUM_THREADS": "1"},
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode == 0, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=int(os.environ.get("ELASTIC_SIMULATION_SEEDS", "5000")))
    parser.add_argument("--first-seed", type=int, default=int(os.environ.get("ELASTIC_SIMULATION_FIRST_SEED", "0")))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--story", type=int, default=STORY_LINES, help="lines of a failing world's story")
    parser.add_argument("--only", default="", help="run only seeds of a kind with this text in its name")
    parser.add_argument("--here", action="store_true", help="run all seeds in this process, until one fails")
    arguments = parser.parse_args()
    if arguments.here:
        sys.exit(not run_here(arguments.first_seed, arguments.seeds, arguments.story, arguments.only))
    count, processes = arguments.seeds, arguments.processes
    sys.exit(bool(run_campaign(arguments.first_seed, count, processes, arguments.story, arguments.only)))


if __name__ == "__main__":
    main()
