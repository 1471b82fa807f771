"""The manifest of an operator: the state of every unit, the committed batches, the assignment of tasks to nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from storage.errors import InvalidStorageInput
from storage.state.batch_time import BatchTime, SourceBatch
from storage.state.refs import BEFORE_FIRST_BATCH, LogRef, StateRef
from storage.state.unit_id import UnitId
from storage.state.unit_states import UnitStates

RELEASED_BY = "released by"  # in `meta`: the driver that has ended


class OpenRound(NamedTuple):
    """A batch that is not complete: its rounds up to this one are committed, and their records emit further records."""

    batch: int
    round: int


@dataclass(frozen=True)
class Manifest:
    """One version of the manifest. `number` says which; 0 is a draft that is not committed.

    Invariant: no unit's state includes a batch that is not committed, and the log holds the input of all committed
    batches above the low-water mark, in the order of replay; `times` holds the clocks of these batches, if they have
    one. `units` must name every unit of the operator (None: its state is still empty), because input is kept
    as long as the unit with the oldest state needs it.

    `latest_time`, `source` and `published` outlive the log: a driver that restarts with all state saved continues from
    the watermark, the source batch and the results of the run before.
    """

    units: UnitStates
    assignment: Any = None  # JSON, opaque here
    epoch: int = 0  # version of the assignment
    last_batch: int = BEFORE_FIRST_BATCH
    open_round: OpenRound | None = None
    log: tuple[LogRef, ...] = ()
    times: tuple[BatchTime, ...] = ()
    latest_time: BatchTime | None = None  # of the newest batch that had one
    source: SourceBatch | None = None  # the newest batch of the source
    published: int = BEFORE_FIRST_BATCH  # results up to this batch are published, or are not kept; may lag behind
    meta: Mapping[str, Any] = field(default_factory=dict)  # JSON of the user
    number: int = 0
    driver_id: str = ""  # of the driver that committed it
    whole: int = 0  # number of the object that holds all this; those after it, up to `number`, are batch commits
    previous_whole: int = 0  # number of the whole object before that; 0 if there is none

    def __post_init__(self) -> None:
        if self.units.newest_batch > self.last_batch:
            raise InvalidStorageInput(
                f"a state includes batch {self.units.newest_batch}, and batch {self.last_batch} is the last "
                "committed one. Commit the batch before the state."
            )

    @classmethod
    def first(cls, units: Iterable[UnitId], assignment: Any = None, **fields: Any) -> Self:
        """Return a draft for an operator that starts: all units exist, with empty state."""
        return cls(UnitStates(dict.fromkeys(units)), assignment, **fields)

    @property
    def is_released(self) -> bool:
        """Whether the driver that committed it has ended and said so; one that was killed has not."""
        return bool(self.number) and self.meta.get(RELEASED_BY) == self.driver_id

    @property
    def low_water_mark(self) -> int:
        """The newest batch that the states of all units include: input up to it is no longer needed."""
        return self.units.oldest_batch

    def with_states(
        self, refs: Iterable[StateRef], unchanged: Mapping[UnitId, int] = MappingProxyType({}), **fields: Any
    ) -> Self:
        """Return a copy with newer states for some units, and other `fields` replaced.

        The state of a unit in `unchanged` includes that batch too, because the unit had no input since; so the log up
        to it is no longer needed, and the state is not saved again.
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
        """Return a copy with one more round of a batch, and with the newest batch whose results are published."""
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
        """Return a copy without the input, and its times, that all states include."""
        return replace(
            self,
            log=tuple(ref for ref in self.log if ref.batch > self.low_water_mark),
            times=tuple(time for time in self.times if time.batch > self.low_water_mark),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _PLAIN_FIELDS},
            "controller": self.driver_id,
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
        """Return the manifest; one of version 0.1 lacks what outlives the log, which mostly follows from the log."""
        times = tuple(map(BatchTime.from_json, document["times"]))
        latest, source = document.get("latest_time"), document.get("source")
        return cls(
            **{name: document[name] for name in _PLAIN_FIELDS},
            driver_id=document["controller"],
            open_round=OpenRound(*document["open_round"]) if document["open_round"] else None,
            meta=document["meta"],
            units=UnitStates.from_json(document["units"]),
            log=tuple(map(LogRef.from_json, document["log"])),
            times=times,
            latest_time=BatchTime.from_json(latest) if latest else max(times, default=None),
            source=SourceBatch.from_json(source) if source else None,
            published=document.get("published", BEFORE_FIRST_BATCH),
        )


_PLAIN_FIELDS = ("assignment", "epoch", "last_batch", "number", "whole", "previous_whole")  # stored as they are
