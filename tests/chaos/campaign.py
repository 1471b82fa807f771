"""The campaign: `make chaos`, or `python -m tests.chaos.campaign nodes --seed 7` for the scenarios of that name.

Every run counts a stream whose outcome is known in closed form while its nodes, drivers, executors and store are lost;
then every key's count and content, and every result, is compared. One line for each run; ends with 1 if one is wrong.
"""

import argparse
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.report import table
from scripts.s3_server import find_minio
from tests.chaos import hazards
from tests.chaos.falls import KEY_STEPS, every_fall
from tests.chaos.run import Outcome
from tests.chaos.scenarios import (
    CLUSTER,
    Scenario,
    die_at_moments,
    every_moment,
    fall_at_every_step,
    kill_drivers,
    kill_executors,
    kill_nodes,
    lose_store,
    mix,
    play,
    scale,
    scale_and_kill,
    scale_through_outages,
)
from tests.chaos.settings import WINDOWS
from tests.chaos.small_disk import SMALL_DISK, can_mount

_CLUSTER = {"master": CLUSTER}
_STREAM = {"sink": "stream"}
_MOMENTS = {"deaths": every_moment(first_batch=6)}
_OUTAGE_SECONDS = 10.0
_SCALES = {"scales": 50}
_FALLS = {"scales": 120, "falls": every_fall(), "modes": "progressive,live"}
_KEYS = {"scales": 50, "grouping": "table"}
_KEY_FALLS = {"falls": every_fall(KEY_STEPS), "grouping": "table"}
_STANDBYS = {"standbys": 1}
_WARM = {**_STANDBYS, "scales": 30, "modes": "warm,warm,progressive,live"}
_LONG = 1_500.0  # seconds

NODES = partial(kill_nodes, kills=20)
DRIVERS = partial(kill_drivers, kills=5)
EXECUTORS = partial(kill_executors, kills=2)
OUTAGES = partial(lose_store, seconds=_OUTAGE_SECONDS, outages=2)

SCENARIOS = (
    Scenario("nodes", NODES, "file"),
    Scenario("nodes", NODES, "minio", _STREAM),
    Scenario("nodes", NODES, "file", {**_CLUSTER, **_STREAM}),
    Scenario("nodes", NODES, "minio", _CLUSTER),
    Scenario("moments", die_at_moments, "file", {**_MOMENTS, **_STREAM}),
    Scenario("moments", die_at_moments, "minio", _MOMENTS),
    Scenario("driver", DRIVERS, "file", _STREAM),
    Scenario("driver", DRIVERS, "minio"),
    Scenario("driver", DRIVERS, "file", _CLUSTER),
    Scenario("executor", EXECUTORS, "file", _CLUSTER),
    Scenario("executor", EXECUTORS, "minio", {**_CLUSTER, **_STREAM}),
    Scenario("outage", OUTAGES, "minio"),
    Scenario("outage", OUTAGES, "minio", {**_CLUSTER, **_STREAM}),
    Scenario("mixed", partial(mix, outage_seconds=None), "file", {**_CLUSTER, **_STREAM}),
    Scenario("mixed", partial(mix, outage_seconds=_OUTAGE_SECONDS), "minio", _CLUSTER),
    Scenario("scaling", scale, "file", _SCALES, _LONG),
    Scenario("scaling", scale, "minio", {**_SCALES, **_STREAM}, _LONG),
    Scenario("scaling", scale, "file", {**_SCALES, **_CLUSTER, **_STREAM}, _LONG),
    Scenario("scaling", scale, "minio", {**_SCALES, **_CLUSTER}, _LONG),
    Scenario("scaling, kills", partial(scale_and_kill, kills=10), "file", _SCALES, _LONG),
    Scenario("scaling, outages", partial(scale_through_outages, seconds=_OUTAGE_SECONDS), "minio", _SCALES, _LONG),
    Scenario("keys", scale, "file", _KEYS, _LONG),
    Scenario("keys", scale, "minio", {**_KEYS, **_CLUSTER, **_STREAM}, _LONG),
    Scenario("keys, kills", partial(scale_and_kill, kills=10), "file", {**_KEYS, **_CLUSTER}, _LONG),
    Scenario("keys, kills", partial(scale_and_kill, kills=10), "minio", {**_KEYS, **_STREAM}, _LONG),
    Scenario("keys, falls", fall_at_every_step, "file", {**_FALLS, **_KEY_FALLS}, _LONG),
    Scenario("keys, falls", fall_at_every_step, "minio", {**_FALLS, **_KEY_FALLS, **_CLUSTER, **_STREAM}, _LONG),
    Scenario("standbys, nodes", partial(kill_nodes, kills=50), "file", _STANDBYS, _LONG),
    Scenario("standbys, moments", die_at_moments, "file", {**_MOMENTS, **_STANDBYS, **_STREAM}),
    Scenario("standbys, mixed", partial(mix, outage_seconds=None), "file", {**_CLUSTER, "standbys": 2}),
    Scenario("standbys, mixed", partial(mix, outage_seconds=_OUTAGE_SECONDS), "minio", {**_CLUSTER, **_STANDBYS}),
    Scenario("standbys, scaling, kills", partial(scale_and_kill, kills=10), "file", _WARM, _LONG),
    Scenario("scaling, falls", fall_at_every_step, "file", _FALLS, _LONG),
    Scenario("scaling, falls", fall_at_every_step, "minio", {**_FALLS, **_CLUSTER, **_STREAM}, _LONG),
)
_PAUSES = {"node_timeout_seconds": hazards.NODE_TIMEOUT_SECONDS}
_SHORT = 240.0  # seconds
_PAUSED_KEYS = partial(hazards.pause_nodes_that_scale, pauses=6)
HAZARDS = (
    Scenario("paused node", hazards.pause_nodes, "file", _PAUSES, _SHORT),
    Scenario("keys, paused nodes", _PAUSED_KEYS, "file", {**_KEYS, **_PAUSES, "scales": 16}, _LONG),
    Scenario(
        "keys, outages",
        partial(scale_through_outages, seconds=_OUTAGE_SECONDS),
        "minio",
        {**_KEYS, "scales": 16},
        _LONG,
    ),
    Scenario("standbys, paused node", hazards.pause_nodes, "file", {**_PAUSES, **_STANDBYS}, _SHORT),
    Scenario("paused executor", hazards.pause_executors, "file", {**_PAUSES, **_CLUSTER}, _SHORT),
    Scenario("paused driver", hazards.pause_drivers, "file", _PAUSES, _SHORT),
    Scenario("jvm", hazards.kill_jvms, "file", None, _SHORT),
    Scenario("poison row", hazards.poison, "file", {"poison": 8}, _SHORT),
    Scenario("hung operator", hazards.hang, "file", {"hang": 8, "step_timeout_seconds": 3.0}, _SHORT),
    Scenario("hung operator, no time limit", hazards.hang_for_ever, "file", {"hang": 8}, _SHORT),
    Scenario("full disk", hazards.fill_disk, SMALL_DISK, None, _SHORT),
    Scenario("two drivers", hazards.start_second_driver, "file", None, _SHORT),
    Scenario("two drivers", hazards.start_second_driver, "minio", None, _SHORT),
    Scenario("driver, no conditional writes", partial(kill_drivers, kills=2), "file", {"conditional": 0}, _SHORT),
    Scenario("clock", hazards.jump_clock, "file", None, _SHORT),
)
_WINDOWS = {"operator": WINDOWS, "rows": 2_000, "keys": 200}
WINDOWED = (
    Scenario("nodes", partial(kill_nodes, kills=8), "file", _WINDOWS, _SHORT),
    Scenario("driver", partial(kill_drivers, kills=2), "file", {**_WINDOWS, **_STREAM}, _SHORT),
    Scenario("paused driver", hazards.pause_drivers, "file", {**_WINDOWS, **_PAUSES}, _SHORT),
    Scenario("scaling, kills", partial(scale_and_kill, kills=3), "file", {**_WINDOWS, "scales": 12}, _SHORT),
)
HEADER = (
    *("scenario", "node kills", "driver kills", "executor kills", "outages", "pauses", "migrations", "rows", "keys"),
    *("content", "recoveries", "median s", "max s", "replayed rows", "progress s", "stop s", "run s", "verdict"),
)


def line(title: str, outcome: Outcome) -> list[str]:
    seconds = [one for one, _ in outcome.recoveries]
    migrations = sum(outcome.migrations.values())
    counts = (
        outcome.kills,
        outcome.restarts,
        outcome.executors,
        outcome.outages,
        outcome.pauses,
        migrations,
        outcome.rows,
        outcome.keys,
    )
    return [
        title,
        *map(str, counts),
        outcome.hash,
        str(len(seconds)),
        f"{statistics.median(seconds):.1f}" if seconds else "",
        f"{max(seconds):.1f}" if seconds else "",
        str(sum(rows for _, rows in outcome.recoveries)),
        f"{outcome.progress_seconds:.1f}",
        f"{outcome.stop_seconds:.1f}",
        f"{outcome.seconds:.0f}",
        "wrong" if outcome.wrong else "exact",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.campaign", description=__doc__)
    parser.add_argument("only", nargs="*", help="words of the scenarios to run; all of them if none is given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", type=Path, help="a folder for everything that runs leave; a temporary one if not given"
    )
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that all that was started is ended then, too
    chosen = [
        scenario for scenario in (*SCENARIOS, *HAZARDS, *WINDOWED) if all(word in scenario.title for word in asked.only)
    ]
    if find_minio() is None:
        chosen = [scenario for scenario in chosen if scenario.store != "minio"]
        print("MinIO is not built, so its scenarios are left out; scripts/minio.sh builds it.")
    if not can_mount():
        chosen = [scenario for scenario in chosen if scenario.store != SMALL_DISK]
        print("Only root can mount a small disk, so its scenario is left out.")
    lines, failures = [], 0
    with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
        for number, scenario in enumerate(chosen):
            folder = (asked.keep or Path(temporary)).resolve() / f"{number:02d}"
            print(f"{scenario.title}, seed {asked.seed + number}", flush=True)
            outcome = play(scenario, folder, asked.seed + number)
            print(json.dumps({"title": scenario.title, "seed": asked.seed + number, **vars(outcome)}), flush=True)
            lines.append(line(scenario.title, outcome))
            failures += bool(outcome.wrong)
    print(table(f"chaos, seed {asked.seed}", HEADER, lines))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
