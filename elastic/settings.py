"""The settings of a job, each with its unit, its default and the reason for it.

In order of precedence: the keyword argument, Spark's configuration (`spark.elastic.heartbeat_seconds`), the environment
(`ELASTIC_HEARTBEAT_SECONDS`), the default.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from elastic.errors import InvalidSetting, UnknownSetting
from elastic.numbers import as_int, as_number

SPARK_PREFIX = "spark.elastic."
ENVIRONMENT_PREFIX = "ELASTIC_"

_MIB = 1 << 20


@dataclass(frozen=True)
class Settings:
    """The settings of one job. Invariant: durations and sizes are positive, choices are among those allowed."""

    # Interval of a node's heartbeats. Two per second notice a loss early and cost next to nothing.
    heartbeat_seconds: float = 0.5
    # A node without heartbeats for this long is lost. Longer than a garbage collection or a busy disk blocks it.
    node_timeout_seconds: float = 10.0
    # Timeout of one step of a node, after which its process ends and is replaced; 0 disables it. A step is one round of
    # one batch for all tasks of the node: set a multiple of the longest that is normal.
    step_timeout_seconds: float = 0.0
    # Timeout of starting nodes. A cluster that has to allocate executors needs most of a minute.
    node_start_seconds: float = 60.0
    # Processes that are started and wait: one takes the name of a lost node, or of a node of a scale-out, at once. Each
    # occupies a task slot and 40 to 85 MB, so there is none by default.
    spares: int = 0
    # How long the job retries while the store is unavailable. Longer than most outages.
    store_retry_seconds: float = 600.0
    # How long the job retries while the sink is unavailable. The result log keeps what the sink does not have, so it is
    # limited by the space of the store only: longer than the maintenance of a broker.
    sink_retry_seconds: float = 3_600.0
    # Interval of snapshots. A lost node's replacement replays at most about twice this much.
    snapshot_seconds: float = 10.0
    # Bytes per second that a node copies for units that another node serves, so that no result waits; 0 is no limit. A
    # quarter of what migrations move on two cores (100 to 170 MB/s): the stream keeps the rest.
    copy_bytes_per_second: int = 32 * _MIB
    # How long a query of a key waits while its state moves or is being restored; 0 asks once. Longer than a hand-over,
    # and than nodes need to load a state of 200 MB after a restart.
    query_seconds: float = 10.0
    # Timeout of a stop, also by SIGTERM. Keep it below the time after which a supervisor kills the driver.
    stop_seconds: float = 60.0
    # Limit of batches that are committed but not published; at it the source is throttled. Enough to keep nodes busy.
    max_pending_batches: int = 4
    # Copies of a unit on other nodes, which follow it and take over when its node is lost; a stage may say otherwise.
    # With one, most losses are a pause of a fraction of a second; each costs memory and work of the unit again.
    standbys: int = 0
    # Rows that a node buffers for coming steps. Above it a node reads them back from the log, which is slower.
    staging_bytes: int = 64 * _MIB
    # Target size of the log objects of a source partition: large enough for throughput, small enough for memory.
    chunk_bytes: int = 32 * _MIB
    # Limit of one row. A larger one is usually a mistake, and has to fit into every buffer on its way.
    max_row_bytes: int = 64 * _MIB
    # Batches whose results are kept for readers: hours at a batch per second.
    retain_result_batches: int = 10_000
    # Task slots that nodes leave to senders, which read the source; without one no batch ever runs.
    sender_slots: int = 1
    # Task slots of the Spark application; 0 counts them. Set it where executors are allocated on demand.
    task_slots: int = 0
    # If the operator raises: stop the job, or quarantine the failing rows and continue.
    on_error: Literal["fail", "skip"] = "fail"
    # If a key column is null: stop the job, treat null as a key, or drop the row.
    null_keys: Literal["fail", "keep", "drop"] = "fail"
    # On an idle stream, commit an empty batch when a timer is due, or let timers and moves of keys wait for rows. "off"
    # suits operators that count batches.
    empty_batches: Literal["on", "off"] = "on"
    # Compression of logs and states; "auto" compresses a sample first, and nothing that does not shrink.
    compression: Literal["auto", "none", "lz4", "zstd"] = "auto"
    # Address that the driver listens on; None is loopback on local masters, else `spark.driver.host`.
    host: str | None = None
    # Stages whose keys are counted: those grouped by "table", whose keys can move, "all", or none with "off".
    key_statistics: Literal["table", "all", "off"] = "table"
    # Interval of the statistics of keys. Several batches long, and short enough to follow a key that becomes hot.
    key_interval_seconds: float = 10.0
    # Number of heaviest keys of a stage that a node reports. 2,000 make a heartbeat of 100 kB, written in 0.5 ms.
    key_statistics_head: int = 2_000
    # Number of rows per second that a node counts by key. Above it a node counts one of 2, 4, 8, ... rows, because
    # counting all of them would cost a fast operator a tenth of its throughput.
    key_statistics_rows_per_second: int = 50_000
    # Number of keys that a node counts exactly in an interval, at 32 to 64 bytes each. Above it counts have an error.
    key_statistics_counters: int = 1_000_000
    # Secret that signs state; None uses the environment or the user's file, see `elastic.secret`. Never printed.
    secret: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if kind in _CONVERTERS and (number := _CONVERTERS[kind](value)) is not None:
                object.__setattr__(self, name, number)
                value = number
            _check(name, value, kind)

    @classmethod
    def resolve(
        cls,
        keywords: Mapping[str, Any],
        spark_conf: Callable[[str], str | None],
        environ: Mapping[str, str],
    ) -> Self:
        """Take each setting from the first place that has it; `spark_conf` returns the value of a key, or None."""
        for name in keywords:
            if name not in _KINDS:
                raise UnknownSetting(name, _KINDS)
        found = dict(keywords)
        for name, kind in _KINDS.items():
            text = spark_conf(SPARK_PREFIX + name)
            if text is None:
                text = environ.get(ENVIRONMENT_PREFIX + name.upper())
            if name not in found and text is not None:
                found[name] = _parse(name, text, kind)
        return cls(**found)


_KINDS: dict[str, Any] = {
    name: kind for name, kind in get_type_hints(Settings).items() if name in {one.name for one in fields(Settings)}
}
_MAY_BE_ZERO = frozenset(
    {"copy_bytes_per_second", "query_seconds", "spares", "standbys", "step_timeout_seconds", "task_slots"}
)


def _parse(name: str, text: str, kind: Any) -> Any:
    """Return the value of a text; a text that is none of the choices is left for the check to refuse."""
    if type(None) in get_args(kind):
        return text or None
    if kind not in (int, float):
        return text
    try:
        return kind(text)
    except ValueError:
        raise InvalidSetting(name, text, f"expected {_EXPECTED[kind]}") from None


def _check(name: str, value: Any, kind: Any) -> None:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise InvalidSetting(name, value, f"expected one of {', '.join(map(repr, get_args(kind)))}")
    elif type(None) in get_args(kind):
        if value is not None and not (isinstance(value, str) and value):
            # The value of a secret must not be printed, even if its type is wrong.
            raise InvalidSetting(name, "..." if name == "secret" else value, "expected a non-empty string")
    else:
        _check_number(name, value, kind)


def _check_number(name: str, value: Any, kind: type[int | float]) -> None:
    allowed = (int, float) if kind is float else int
    if isinstance(value, bool) or not isinstance(value, allowed):
        raise InvalidSetting(name, value, f"expected {_EXPECTED[kind]}")
    if not (0 <= value < float("inf")) or (value == 0 and name not in _MAY_BE_ZERO):
        least = "0 or more" if name in _MAY_BE_ZERO else "positive"
        is_finite = abs(value) < float("inf")
        raise InvalidSetting(name, value, f"it must be {least}" if is_finite else f"it must be {least} and finite")


_EXPECTED = {int: "an integer", float: "a number"}
_CONVERTERS: Mapping[Any, Callable[[object], int | float | None]] = {int: as_int, float: as_number}
