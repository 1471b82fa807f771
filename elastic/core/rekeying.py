"""The life of a rekeying: single keys leave the units that they are in and join others, while the stream runs.

Keys move as records, in the last two rounds of a batch, so that the log, replay and commits do for them what they do
for rows. A rekeying is a sequence of portions, and a batch takes one:

    RekeyRequested                          the batch in flight takes the first portion, or the next batch does
    no more rows can come in this batch ->  CommitRound with orders to the units that the keys leave, together with the
                                            new groupings: from here on the keys have moved
    StepApplied by every unit           ->  CommitRound with the parts that these units emitted, which ends the batch
    StepApplied by every unit           ->  the portion is done; the next batch takes the next one

The next batch is sent by the new groupings. If the driver is lost before the first commit, nothing has happened; after
it, the two rounds are repeated as any others are.

Protected keys that are not among guests yet, after a restart that protects other keys than before, move in the same
way, before a portion of a rekeying. That follows from the committed groupings, so there is no request to be lost.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from elastic.core import events
from elastic.core.commands import Regrouping
from elastic.core.ids import Batch
from elastic.routing import Groupings, KeyTargets

_STORY_LENGTH = 1_000
_PROTECTED_PER_BATCH = 256  # keys that a change of the protected keys moves with one batch: their sizes are not known


@dataclass(frozen=True)
class RekeyingView:
    """A rekeying at one moment. Sizes are the plan's, `stored_bytes` is what the states took in the log."""

    id: str
    batch: Batch | None = None  # that takes the portion in flight
    awaited: tuple[str, ...] = ()  # nodes that have to take a round of it
    is_paused: bool = False
    is_cancelled: bool = False
    portions_done: int = 0
    portions: int = 0
    keys_done: int = 0
    keys: int = 0
    size_done: float = 0.0
    size: float = 0.0
    stored_bytes: int = 0
    story: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line; its fields have everything."""
        return f"RekeyingView({self.id!r}, {self.keys_done} of {self.keys} keys, batch={self.batch})"

    @property
    def is_over(self) -> bool:
        return self.is_idle and (self.is_cancelled or self.portions_done == self.portions)

    @property
    def is_idle(self) -> bool:
        """Whether no portion is in flight."""
        return self.batch is None


@dataclass
class _Rekeying:
    """The rekeying under way."""

    spec: events.RekeyRequested
    is_paused: bool
    is_cancelled: bool = False
    done: int = 0  # portions
    batch: Batch | None = None  # that takes the portion after these
    is_committed: bool = False  # whether the orders of that portion are
    stored_bytes: int = 0
    story: list[str] = field(default_factory=list)

    @property
    def portion(self) -> KeyTargets:
        """The portion in flight, or the next one."""
        return self.spec.portions[self.done]

    @property
    def is_due(self) -> bool:
        is_held = self.is_paused or self.is_cancelled
        return self.batch is None and not is_held and self.done < len(self.spec.portions)


class Rekeyings:
    """At most one rekeying at a time; requests that concern another one change nothing.

    A pause or a cancellation takes effect between two portions; a portion that has begun is completed.
    """

    def __init__(self, groupings: Callable[[], Groupings] | None = None) -> None:
        self._groupings = groupings
        self._checked: tuple[Groupings, KeyTargets | None] | None = None  # the displaced keys of these groupings
        self._rekeying: _Rekeying | None = None
        self._view: RekeyingView | None = None

    # What is requested.

    def begin(self, spec: events.RekeyRequested) -> None:
        """Move the first portion with the next commit; refused, and nothing changes, while another one is in flight."""
        if self._rekeying is None or self._rekeying.batch is None:
            self._rekeying, self._view = _Rekeying(spec, spec.paused), None

    def pause(self, rekeying_id: str) -> None:
        if (rekeying := self._find(rekeying_id)) is not None:
            rekeying.is_paused = True
            self._view = None

    def resume(self, rekeying_id: str) -> None:
        if (rekeying := self._find(rekeying_id)) is not None:
            rekeying.is_paused = False
            self._view = None

    def cancel(self, rekeying_id: str) -> None:
        """Skip the portions that have not begun."""
        if (rekeying := self._find(rekeying_id)) is not None:
            rekeying.is_cancelled = True
            self._view = None

    def note(self, rekeying_id: str, line: str) -> None:
        """Add a line to the story of the rekeying."""
        if (rekeying := self._find(rekeying_id)) is not None:
            self._record(rekeying, line)

    # What the batches ask and tell.

    @property
    def is_due(self) -> bool:
        """Whether a batch should take a portion when no more rows can come in it."""
        return (self._rekeying is not None and self._rekeying.is_due) or self._find_displaced() is not None

    @property
    def is_committing(self) -> bool:
        """Whether orders are being committed, so that senders will get other groupings in a moment."""
        rekeying = self._rekeying
        return rekeying is not None and rekeying.batch is not None and not rekeying.is_committed

    def start_portion(self, batch: Batch, groupings: Groupings) -> Regrouping | None:
        """Return what to commit with the next round of a batch, so that it takes the portion that is due.

        None if all keys are where they should be: then the portion, and those after it that are alike, are done.
        """
        if (displaced := self._find_displaced()) is not None:
            return Regrouping(displaced.regroup(groupings), displaced.orders(groupings))
        rekeying = self._rekeying
        while rekeying is not None and rekeying.is_due:
            orders = rekeying.portion.orders(groupings)
            if orders:
                rekeying.batch, rekeying.is_committed = batch, False
                self._record(rekeying, f"batch {batch} moves {len(rekeying.portion)} keys out of {len(orders)} units")
                return Regrouping(rekeying.portion.regroup(groupings), orders)
            self._end_portion(rekeying)
        return None

    def round_committed(self, batch: Batch, *, is_regrouped: bool, log_bytes: int) -> None:
        """Note a committed round of the batch that takes the portion in flight: its orders, then its parts."""
        rekeying = self._rekeying
        if rekeying is None or rekeying.batch != batch:
            return
        if is_regrouped:
            rekeying.is_committed = True
            self._record(rekeying, "the new groupings are committed")
        elif rekeying.is_committed:
            rekeying.stored_bytes += log_bytes
            self._record(rekeying, f"the states of the keys are committed: {log_bytes} bytes")

    def batch_applied(self, batch: Batch) -> None:
        """Note that every unit has taken all rounds of a batch: with it the portion in flight is done."""
        rekeying = self._rekeying
        if rekeying is not None and rekeying.batch == batch:
            rekeying.batch = None
            self._end_portion(rekeying)

    @property
    def batch(self) -> Batch | None:
        """The batch that takes the portion in flight."""
        return None if self._rekeying is None else self._rekeying.batch

    def view(self, awaited: Iterable[str]) -> RekeyingView | None:
        """Return the latest rekeying as other threads may see it, with the nodes that it waits for."""
        if self._rekeying is None:
            return None
        if self._view is None:
            self._view = _view(self._rekeying)
        names = tuple(sorted(awaited))
        if self._view.awaited != names:
            self._view = replace(self._view, awaited=names)
        return self._view

    def _find_displaced(self) -> KeyTargets | None:
        """Return keys that are to move because of a change of the protected keys; None while all are in place."""
        if self._groupings is None:
            return None
        groupings = self._groupings()
        if self._checked is None or self._checked[0] is not groupings:
            self._checked = groupings, KeyTargets.of_displaced(groupings, _PROTECTED_PER_BATCH)
        return self._checked[1]

    def _find(self, rekeying_id: str) -> _Rekeying | None:
        rekeying = self._rekeying
        return rekeying if rekeying is not None and rekeying.spec.id == rekeying_id else None

    def _end_portion(self, rekeying: _Rekeying) -> None:
        rekeying.done += 1
        self._record(rekeying, f"{rekeying.done} of {len(rekeying.spec.portions)} portions are done")

    def _record(self, rekeying: _Rekeying, line: str) -> None:
        rekeying.story.append(line)
        self._view = None


def _view(rekeying: _Rekeying) -> RekeyingView:
    portions, sizes, done = rekeying.spec.portions, rekeying.spec.sizes, rekeying.done
    return RekeyingView(
        rekeying.spec.id,
        rekeying.batch,
        (),
        rekeying.is_paused,
        rekeying.is_cancelled,
        done,
        len(portions),
        sum(map(len, portions[:done])),
        sum(map(len, portions)),
        sum(sizes[:done]),
        sum(sizes),
        rekeying.stored_bytes,
        tuple(rekeying.story[-_STORY_LENGTH:]),
    )
