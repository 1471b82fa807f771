"""The options that both applications share."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import click
import pyarrow as pa

from examples.harness.balance import LEVELS, ScaleStep, ScaleStepType
from examples.workloads import KeyStream, Pace

_COUNT, _POSITIVE, _AMOUNT = click.IntRange(1), click.FloatRange(0.1), click.FloatRange(0)
_BALANCE = click.Choice(LEVELS)

# Name, default, type, and help; names are those of the fields of `StreamOptions`.
_VALUES: tuple[tuple[tuple[str, ...], Any, Any, str], ...] = (
    (("--nodes",), 4, _COUNT, "Nodes at the start."),
    (("--tasks",), 64, _COUNT, "Hash buckets of the keys."),
    (("--seconds",), 20.0, _POSITIVE, "Length of the run."),
    (("--rate",), 4_000, _COUNT, "Rows per second."),
    (("--every", "every_ms"), 200, _COUNT, "Milliseconds between two batches."),
    (("--interval",), 2.0, _POSITIVE, "Seconds between two checks and rebalances."),
    (("--skew",), 0.85, _AMOUNT, "Exponent z of the Zipf frequencies."),
    (("--drift",), 1.0, _AMOUNT, "Fluctuation f: by this share the load of one node grows with every drift."),
    (("--drift-every",), 3, _COUNT, "Intervals between two drifts."),
    (("--balance",), "keys", _BALANCE, "What to move at the end of every interval."),
    (("--theta",), 0.1, _AMOUNT, "Overload of a node that a rebalance allows."),
    (("--cost-microseconds",), 0.0, _AMOUNT, "Time that a node takes for a row, by sleeping."),
    (("--seed",), 0, int, "Seed of the generated stream."),
)


@dataclass(frozen=True)
class StreamOptions:
    """The options that both applications share."""

    local: bool
    nodes: int
    tasks: int
    seconds: float
    rate: int
    every_ms: int
    interval: float
    skew: float
    drift: float
    drift_every: int
    balance: str
    theta: float
    steps: tuple[ScaleStep, ...]
    cost_microseconds: float
    unpaced: bool
    seed: int

    @property
    def pace(self) -> Pace:
        return Pace.from_rate(self.rate, self.every_ms, self.interval, self.drift_every)

    @property
    def intervals(self) -> int:
        return max(1, round(self.seconds * 1_000 / self.pace.interval_ms))

    def key_stream(self, names: pa.Array) -> KeyStream:
        return KeyStream(names, self.nodes, self.tasks, self.skew, self.drift, self.seed)


def stream_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared options to a command, which gets them as one `StreamOptions` and its own ones by name."""

    @wraps(command)
    def call(**arguments: Any) -> Any:
        shared = {name: arguments.pop(name) for name in [one.name for one in fields(StreamOptions)]}
        return command(StreamOptions(**shared), **arguments)

    return _add_options(call)


def _add_options(call: Callable[..., Any]) -> Callable[..., Any]:
    help_of_scale = "Scale to this many nodes after that many seconds, such as 6@10; repeatable."
    call = click.option("--unpaced", is_flag=True, help="With --local: send batches as fast as the job takes them.")(
        call
    )
    call = click.option("--scale", "steps", multiple=True, type=ScaleStepType(), help=help_of_scale)(call)
    for names, default, kind, text in reversed(_VALUES):
        call = click.option(*names, default=default, show_default=True, type=kind, help=text)(call)
    return click.option("--local", is_flag=True, help="Run in threads of this process, without Spark and Java.")(call)
