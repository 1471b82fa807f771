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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import count, islice
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
    """Return the names of the pipeline and the faults that a seed stands for."""
    kinds = [(pipeline, world) for pipeline in PIPELINES for world in WORLDS]
    return kinds[seed % len(kinds)]


def select_seeds(first: int, number: int, pipelines: str = "") -> list[int]:
    """Return so many seeds from `first` on, of pipelines whose name contains a text."""
    if not any(pipelines in name for name in PIPELINES):
        raise ValueError(f"no pipeline has {pipelines!r} in its name. Use a part of one of {', '.join(PIPELINES)}.")
    return list(islice((seed for seed in count(first) if pipelines in kind_of(seed)[0]), number))


def run_seed(seed: int, story_lines: int = STORY_LINES) -> tuple[World, str]:
    """Run one world; returns it, and why it failed, with its story, or an empty text.

    The seed chooses the pipeline, the batches, the faults, and all that happens.
    """
    name, kind = kind_of(seed)
    world = World(seed, pipeline_of(PIPELINES[name]), batches_of(seed), WORLDS[kind])
    try:
        world.run()
    except Exception:  # noqa: BLE001 - whatever it is, the seed has failed
        story = world.tell_story(story_lines)
        again = f"PYTHONHASHSEED={HASH_SEED} python -m {_MODULE} --here --first-seed {seed} --seeds 1"
        return world, f"{story}\n{traceback.format_exc()}\nseed {seed} ({name}; {kind}) failed; again: {again}\n"
    return world, ""


def run_here(seeds: Sequence[int], story_lines: int) -> bool:
    """Run seeds in this process until one fails; prints a line for each. Returns whether all passed."""
    for seed in seeds:
        started = time.perf_counter()
        world, failure = run_seed(seed, story_lines)
        facts = " ".join(f"{name}={value}" for name, value in world.count().items())
        print(f"seed={seed} seconds={time.perf_counter() - started:.2f} {facts}", flush=True)
        if failure:
            print(failure, flush=True)
            return False
    return True


def run_campaign(
    first: int, number: int, processes: int, story_lines: int = STORY_LINES, pipelines: str = ""
) -> list[str]:
    """Run seeds in several processes, with a summary at the end; returns the output of those that failed."""
    seeds = select_seeds(first, number, pipelines)
    failures: list[str] = []
    totals: Counter[str] = Counter()
    started = told = time.monotonic()
    done = 0
    with ThreadPoolExecutor(processes) as pool:
        chunks = (seeds[begin : begin + _CHUNK] for begin in range(0, number, _CHUNK))
        under_way = {
            pool.submit(_run_chunk, chunk, story_lines, pipelines): len(chunk) for chunk in islice(chunks, processes)
        }
        while under_way:
            future = next(as_completed(under_way))
            done += under_way.pop(future)
            passed, output = future.result()
            for line in output.splitlines():
                if line.startswith("seed="):
                    totals.update({name: float(value) for name, value in (word.split("=") for word in line.split())})
            if not passed:
                failures.append(output)
                print(output, flush=True)
            if time.monotonic() - told > _PROGRESS_SECONDS:
                told = time.monotonic()
                print(f"{done} of {number} seeds, {len(failures)} failed, {told - started:.0f} s", flush=True)
            for chunk in islice(chunks, 1):
                under_way[pool.submit(_run_chunk, chunk, story_lines, pipelines)] = len(chunk)
    seconds = time.monotonic() - started
    print(f"{number} seeds in {seconds:.0f} s, {seconds / max(1, number):.3f} s each; {len(failures)} failed")
    print(", ".join(f"{name}: {value:.0f}" for name, value in totals.items() if name not in ("seed", "seconds")))
    return failures


def _run_chunk(seeds: Sequence[int], story_lines: int, pipelines: str) -> tuple[bool, str]:
    arguments = ["--here", "--first-seed", str(seeds[0]), "--seeds", str(len(seeds)), "--story", str(story_lines)]
    arguments += ["--pipelines", pipelines]
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
    parser.add_argument("--pipelines", default="", help="only those with this text in their name, such as 'split'")
    parser.add_argument("--here", action="store_true", help="run all seeds in this process, until one fails")
    arguments = parser.parse_args()
    first, number, story, pipelines = arguments.first_seed, arguments.seeds, arguments.story, arguments.pipelines
    if arguments.here:
        sys.exit(not run_here(select_seeds(first, number, pipelines), story))
    sys.exit(bool(run_campaign(first, number, arguments.processes, story, pipelines)))


if __name__ == "__main__":
    main()
