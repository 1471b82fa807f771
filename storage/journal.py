"""The job journal: what was decided about a job and what came of it, in all its runs.

The one place for the keys and the schema of its records. `elastic.control` appends them; the API and the command line
show them; `mdp` learns transition matrices from them.

Each record is a JSON object of its own, `operators/<job>/journal/<number>.json`, which never changes. It has `at_ms`,
`kind` and the fields of one of the record classes below. Records of older versions may lack fields that have a default.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Self

from storage.errors import AlreadyExists, DamagedObject, InvalidStorageInput
from storage.stores.keys import to_key_segment
from storage.stores.protocol import Store

_MAX_RACES = 100  # lost in a row to other writers


class JournalRecord:
    """Base of all records: dataclasses whose fields are the record's, in the order in which they are stored."""

    kind: ClassVar[str]
    json_names: ClassVar[Mapping[str, str]] = {}  # of fields that are stored under another name

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **{self.json_names.get(name, name): value for name, value in vars(self).items()}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the record in a document; fields that this version does not know are ignored."""
        values = {}
        for known in fields(cls):  # type: ignore[arg-type] # all subclasses are dataclasses
            name = cls.json_names.get(known.name, known.name)
            if name in document:
                values[known.name] = document[name]
            elif known.default is MISSING and known.default_factory is MISSING:
                raise InvalidStorageInput(
                    f"the record {dict(document)} of the journal has no {name!r}. Remove it from the journal."
                )
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class MigrationBegan(JournalRecord):
    """A migration began, with this plan, made for this workload (`Plan.to_dict`, `Workload.to_dict`)."""

    kind: ClassVar[str] = "began"
    mode: str = ""
    transfer: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class MigrationEnded(JournalRecord):
    """A migration is over; `outcome` is "done", "cancelled" or "failed".

    `background_bytes` are the plan's: the copies that its standbys need, which no result waits for.
    """

    kind: ClassVar[str] = "ended"
    outcome: str
    mode: str = ""
    transfer: str = ""
    strategy: str = ""
    nodes_before: int
    nodes_after: int
    seconds: float = 0.0
    tasks_moved: int = 0
    state_bytes: float = 0
    stored_bytes: int = 0
    direct_bytes: int = 0
    background_bytes: float = 0
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class KeysBegan(JournalRecord):
    """A migration of keys of one stage began; the overload is the most work of a node over the mean, less 1.

    Bytes are those of the plan: the states that pass through the log, with their records.
    """

    kind: ClassVar[str] = "keys began"
    stage: int
    strategy: str
    keys: int
    state_bytes: float
    entries: int  # of the key table when it is done
    theta: float
    overload_before: float
    overload_after: float
    reason: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class KeysEnded(JournalRecord):
    """A migration of keys is over; `outcome` as of a migration of tasks."""

    kind: ClassVar[str] = "keys ended"
    outcome: str
    stage: int
    strategy: str = ""
    seconds: float = 0.0
    keys_moved: int = 0
    state_bytes: float = 0
    stored_bytes: int = 0
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class ScalingDecided(JournalRecord):
    """The autoscaler decided for another number of nodes, from the load over the last `seconds`."""

    kind: ClassVar[str] = "decided"
    json_names: ClassVar[Mapping[str, str]] = {
        "pending_steps": "waiting_steps",
        "pending_batches": "batches_ahead",
        "max_pending_batches": "batches_allowed",
    }
    policy: str
    floor: int
    ceiling: int
    nodes: int
    target: int
    reason: str
    mean_utilisation: float = 0.0
    seconds: float = 0.0
    utilisation: Mapping[str, float] = field(default_factory=dict)
    pending_steps: Mapping[str, int] = field(default_factory=dict)
    pending_batches: float = 0.0
    max_pending_batches: int = 0
    queue_growth: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ScalingRecommended(ScalingDecided):
    """The autoscaler, which only recommends, would have decided so."""

    kind: ClassVar[str] = "recommended"


@dataclass(frozen=True, kw_only=True)
class ScalingRefused(JournalRecord):
    """A scale request of the autoscaler was refused."""

    kind: ClassVar[str] = "refused"
    policy: str
    floor: int
    ceiling: int
    nodes: int
    target: int | None
    error: str


@dataclass(frozen=True, kw_only=True)
class ScalingFailed(ScalingRefused):
    """A migration of the autoscaler failed (`target` says to how many nodes), or it could not decide (None)."""

    kind: ClassVar[str] = "failed"


RECORD_KINDS: Mapping[str, type[JournalRecord]] = {
    record.kind: record
    for record in (
        MigrationBegan,
        MigrationEnded,
        KeysBegan,
        KeysEnded,
        ScalingDecided,
        ScalingRecommended,
        ScalingRefused,
        ScalingFailed,
    )
}


class JournalPage(NamedTuple):
    """Some records, newest first, each with its number; `before` leads to older ones, None if there are none."""

    total: int
    records: list[dict[str, Any]]
    before: int | None


class JobJournal:
    """The numbered records of one job. `clock_ns` tells the time in nanoseconds since 1970."""

    def __init__(self, store: Store, job: str, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._store = store
        self.folder = f"operators/{to_key_segment(job)}/journal/"  # the prefix of its keys
        self._clock_ns = clock_ns
        self._next: int | None = None

    def append(self, record: JournalRecord) -> int:
        """Store a record durably and return its number."""
        document = json.dumps({"at_ms": self._clock_ns() // 1_000_000, **record.to_json()}).encode()
        for _ in range(_MAX_RACES):
            number = max(self._numbers(), default=0) + 1 if self._next is None else self._next
            try:
                self._store.put_if_absent(self._key(number), document)
            except AlreadyExists:
                self._next = None  # another driver's: list again
            else:
                self._next = number + 1
                return number
        raise AlreadyExists(self._store.url, self.folder)

    def read(self, executor: Executor | None = None) -> Iterator[dict[str, Any]]:
        """Iterate over all records as stored, oldest first; with an executor, several are fetched at a time."""
        return self._read_all(sorted(self._numbers()), executor)

    def read_newest_first(self) -> Iterator[dict[str, Any]]:
        """Iterate over all records as stored, newest first, each fetched when the caller asks for it."""
        return self._read_all(sorted(self._numbers(), reverse=True))

    def page(self, limit: int, before: int | None = None) -> JournalPage:
        """Return the newest records, or the newest before a number: at most `limit`. Lists all, fetches only those."""
        numbers = sorted(self._numbers())
        older = [number for number in numbers if before is None or number < before]
        chosen = older[-limit:]
        records = [{**self._read(number), "number": number} for number in reversed(chosen)]
        return JournalPage(len(numbers), records, chosen[0] if len(older) > len(chosen) else None)

    def _read_all(self, numbers: Iterable[int], executor: Executor | None = None) -> Iterator[dict[str, Any]]:
        return map(self._read, numbers) if executor is None else executor.map(self._read, numbers)

    def _numbers(self) -> list[int]:
        names = [found.key.removeprefix(self.folder) for found in self._store.list(self.folder)]
        return [int(name.partition(".")[0]) for name in names]

    def _read(self, number: int) -> dict[str, Any]:
        key = self._key(number)
        advice = "Remove it from the journal."
        try:
            record = json.loads(bytes(self._store.get(key)))
        except ValueError as error:
            raise DamagedObject(key, f"it is not JSON: {error}", advice) from error
        if not isinstance(record, dict):
            raise DamagedObject(key, "it is not a JSON object", advice)
        return record

    def _key(self, number: int) -> str:
        return f"{self.folder}{number:012d}.json"
