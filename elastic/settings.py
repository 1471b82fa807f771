"""Everything that can be set about a job, with its unit, its default and the reason for it.

A setting is looked up in four places; the first that has it counts: the keyword argument, Spark's configuration
(`spark.elastic.heartbeat_seconds`), the environment (`ELASTIC_HEARTBEAT_SECONDS`), the default.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from elastic.errors import InvalidSetting, UnknownSetting
from elastic.numbers import as_number, as_whole

SPARK_PREFIX = "spark.elastic."
ENVIRONMENT_PREFIX = "ELASTIC_"

_MIB = 1 << 20


@dataclass(frozen=True)
class Settings:
    """The settings of one job. Invariant: durations and sizes are positive, choices are among those there are."""

    # How often a node says that it lives; two of them a second are noticed at once and cost nothing.
    heartbeat_seconds: float = 0.5
    # Silence after which a node counts as lost: longer than a pause of its garbage collector or a busy disk.
    node_timeout_seconds: float = 10.0
    # How long one step of a node may take before the node ends its process, to be replaced; 0 is no limit. A step is
    # one round of one batch for all tasks of the node: choose a multiple of the longest that is right.
    step_timeout_seconds: float = 0.0
    # How long nodes may take to start: a cluster that has to find executors needs most of a minute.
    node_start_seconds: float = 60.0
    # How long the store may be away before the job gives up: an outage that people mend is shorter.
    store_patience_seconds: float = 600.0
    # How often changed state is saved: what a lost node replays is at most about twice that old.
    snapshot_seconds: float = 10.0
    # How long a stop may take, also by SIGTERM: set it below the time after which a supervisor kills the driver.
    stop_seconds: float = 60.0
    # Batches committed but not yet applied before the source has to wait: enough to keep every node busy.
    max_batches_ahead: int = 4
    # Rows that a node keeps for steps to come; above it they are read back from the log, which is slower.
    staging_bytes: int = 64 * _MIB
    # A source partition is logged in objects of about this size: large enough for full speed, small enough to hold.
    chunk_bytes: int = 32 * _MIB
    # A row above it is a mistake more often than not, and would have to fit into every buffer on its way.
    max_row_bytes: int = 64 * _MIB
    # Batches whose results stay readable: hours of them at a batch a second.
    retain_result_batches: int = 10_000
    # Task slots that nodes leave free: senders read the source there, and without one no batch ever runs.
    sender_slots: int = 1
    # Task slots of the Spark application; 0 counts them. For clusters that grow on demand, where counting says too few.
    task_slots: int = 0
    # What a failing operator does: stop the job, or set the failing rows aside and go on.
    on_error: Literal["fail", "skip"] = "fail"
    # What a null in a key column does: stop the job, be a key like others, or drop the row.
    null_keys: Literal["fail", "keep", "drop"] = "fail"
    # How logs and states are compressed: "auto" tries a sample, and does not compress what does not shrink.
    compression: Literal["auto", "none", "lz4", "zstd"] = "auto"
    # The address that the driver listens on; None is loopback on local masters, else `spark.driver.host`.
    host: str | None = None
    # Heaviest keys to track per node, for routings that treat them apart; 0 tracks none, and costs nothing.
    heavy_hitters: int = 0
    # What state is signed with; None looks further, see `elastic.secret`. Never shown.
    secret: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if kind in _AS_PYTHON and (number := _AS_PYTHON[kind](value)) is not None:
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
        """Each setting from the first place that has it; `spark_conf` gives the value of a key, or None."""
        for name in keywords:
            if name not in _KINDS:
                raise UnknownSetting(name, _KINDS)
        found = dict(keywords)
        for name, kind in _KINDS.items():
            text = spark_conf(SPARK_PREFIX + name)
            if text is None:
                text = environ.get(ENVIRONMENT_PREFIX + name.upper())
            if name not in found and text is not None:
                found[name] = _parsed(name, text, kind)
        return cls(**found)


_KINDS: dict[str, Any] = {
    name: kind for name, kind in get_type_hints(Settings).items() if name in {one.name for one in fields(Settings)}
}
_MAY_BE_ZERO = frozenset({"heavy_hitters", "step_timeout_seconds", "task_slots"})


def _parsed(name: str, text: str, kind: Any) -> Any:
    """A value from text; what cannot be one is left as it is, for the check to refuse."""
    if type(None) in get_args(kind):
        return text or None
    if kind not in (int, float):
        return text
    try:
        return kind(text)
    except ValueError:
        raise InvalidSetting(name, text, f"it is not {_EXPECTED[kind]}") from None


def _check(name: str, value: Any, kind: Any) -> None:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise InvalidSetting(name, value, f"it is none of {', '.join(map(repr, get_args(kind)))}")
    elif type(None) in get_args(kind):
        if value is not None and not (isinstance(value, str) and value):
            # A secret of a wrong type must not be shown either.
            raise InvalidSetting(name, "..." if name == "secret" else value, "it is not a text")
    else:
        _check_number(name, value, kind)


def _check_number(name: str, value: Any, kind: type[int | float]) -> None:
    allowed = (int, float) if kind is float else int
    if isinstance(value, bool) or not isinstance(value, allowed):
        raise InvalidSetting(name, value, f"it is not {_EXPECTED[kind]}")
    if not (0 <= value < float("inf")) or (value == 0 and name not in _MAY_BE_ZERO):
        raise InvalidSetting(name, value, "it must be above zero and finite" if value else "it must be above zero")


_EXPECTED = {int: "a whole number", float: "a number"}
_AS_PYTHON: Mapping[Any, Callable[[object], int | float | None]] = {int: as_whole, float: as_number}
