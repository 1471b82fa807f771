"""What is true about an operator: which state every unit has, which batches count, who owns which tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from storage.errors import InvalidStorageInput
from storage.state.batch_time import BatchTime, SourceBatch
from storage.state.refs import BEFORE_FIRST_BATCH, LogRef, StateRef
from storage.state.unit import Unit
from storage.state.units import Units


class OpenRound(NamedTuple):
    """A batch whose records still make records: rounds up to this one are committed, the batch is not complete."""

    batch: int
    round: int


@dataclass(frozen=True)
class Manifest:
    """One version of the truth. Its `number` says which; 0 is a draft that is not committed.

    Invariant: no unit's state includes a batch that is not committed, and the log holds the input of all committed
    batches above the low-water mark, in the order of replay; `times` holds the clocks of these batches, where they were
    given. `units` must name every unit of the operator (None: its state is still empty), for input is kept as long as
    the unit with the oldest state needs it.

    `latest_time`, `source` and `published` outlive the log: a driver that restarts with all state saved continues from
    the watermark, the source batch and the results of the run before.
    """

    units: Units
    assignment: Any = None  # JSON that means nothing here
    epoch: int = 0  # version of the assignment
    last_batch: int = BEFORE_FIRST_BATCH
    open_round: OpenRound | None = None
    log: tuple[LogRef, ...] = ()
    times: tuple[BatchTime, ...] = ()
    latest_time: BatchTime | None = None  # of the newest batch that had one
    source: SourceBatch | None = None  # the newest batch of the source
    published: int = BEFORE_FIRST_BATCH  # results up to this batch are published, or were not wanted; may lag behind
    meta: Mapping[str, Any] = field(default_factory=dict)  # JSON of the user's own
    number: int = 0
    controller: str = ""
    whole: int = 0  # number of the object that holds all this; those after it, up to `number`, are batch commits
    previous_whole: int = 0  # number of the whole object before that; 0 if there is none

    def __post_init__(self) -> None:
        if self.units.newest_batch > self.last_batch:
            raise InvalidStorageInput(
                f"a state includes batch {self.units.newest_batch}, and batch {self.last_batch} is the last one that "
                "counts. Commit the batch before the state."
            )

    @classmethod
    def first(cls, units: Iterable[Unit], assignment: Any = None, **fields: Any) -> Self:
        """A draft for an operator that starts: all units exist, with empty state."""
        return cls(Units(dict.fromkeys(units)), assignment, **fields)

    @property
    def low_water_mark(self) -> int:
        """The newest batch that the states of all units include: input up to it is no longer needed."""
        return self.units.oldest_batch

    def with_states(
        self, refs: Iterable[StateRef], unchanged: Mapping[Unit, int] = MappingProxyType({}), **fields: Any
    ) -> Self:
        """With newer states for some units, and other `fields` replaced.

        The state of a unit in `unchanged` is right as of that batch too, because none of its input came since; so it
        no longer holds the log back, and need not be saved again.
        """
        return replace(self, units=self.units.with_states(refs, unchanged), **fields)

    def with_batch(
        self,
        batch: int,
        round_: int,
        complete: bool,
        logs: Iterable[LogRef],
        time: BatchTime | None = None,
        source: SourceBatch | None = None,
        published: int = BEFORE_FIRST_BATCH,
    ) -> Self:
        """With one more round of a batch, and the newest batch whose results were published when it was committed."""
        return replace(
            self,
            last_batch=batch if complete else self.last_batch,
            open_round=None if complete else OpenRound(batch, round_),
            log=(*self.log, *sorted(logs)),
            times=self.times if time is None else (*self.times, time),
            latest_time=time or self.latest_time,
            source=source or self.source,
            published=max(self.published, published),
        )

    def without_old_log(self) -> Self:
        """Without the input, and its times, that all states include."""
        return replace(
            self,
            log=tuple(ref for ref in self.log if ref.batch > self.low_water_mark),
            times=tuple(time for time in self.times if time.batch > self.low_water_mark),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _PLAIN_FIELDS},
            "open_round": list(self.open_round) if self.open_round else None,
            "meta": dict(self.meta),
            "units": self.units.to_json(),
            "log": [ref.to_json() for ref in self.log],
            "times": [time.to_json() for time in self.times],
            "latest_time": self.latest_time and self.latest_time.to_json(),
            "source": self.source and self.source.to_json(),
            "published": self.published,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Manifests of version 0.1 lack what outlives the log; most of it follows from the log that is left."""
        times = tuple(map(BatchTime.from_json, document["times"]))
        latest, source = document.get("latest_time"), document.get("source")
        return cls(
            **{name: document[name] for name in _PLAIN_FIELDS},
            open_round=OpenRound(*document["open_round"]) if document["open_round"] else None,
            meta=document["meta"],
            units=Units.from_json(document["units"]),
            log=tuple(map(LogRef.from_json, document["log"])),
            times=times,
            latest_time=BatchTime.from_json(latest) if latest else max(times, default=None),
            source=SourceBatch.from_json(source) if source else None,
            published=document.get("published", BEFORE_FIRST_BATCH),
        )


# Those that are JSON as they are.
_PLAIN_FIELDS = ("assignment", "epoch", "last_batch", "number", "controller", "whole", "previous_whole")
