"""Result objects: what one node made in one round of one batch, written once and read stage by stage."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from elastic.results.paths import ResultPaths
from elastic.results.refs import ResultRef
from elastic.routing.slots import SLOTS_PER_STAGE
from storage.codec import Secret, pack, unpack
from storage.stores.protocol import Store

SLOT = "_slot"  # the column by which nodes say which slot made a row
BATCH = "_batch"
TASK = "_task"
PLACE = pa.schema([(BATCH, pa.int64()), (TASK, pa.int32())])  # what readers get instead

_STAGE = "rows:"  # before the name of a stage, in the name of a part
_QUARANTINED = "quarantined"
_AHEAD = 8  # objects fetched at once: a store answers in milliseconds, and a batch has one object a node


class ResultObjects:
    """Writes and reads the result objects of one job; safe to use from many threads."""

    def __init__(self, store: Store, secret: Secret, paths: ResultPaths, compression: str = "auto") -> None:
        self._store = store
        self._secret = secret
        self._paths = paths
        self._compression = compression

    def write(
        self,
        batch: int,
        round_: int,
        slots: Sequence[int],
        tables: Mapping[str, pa.Table],
        quarantined: pa.Table | None,
    ) -> ResultRef:
        """One new object; none where there are no rows."""
        parts = {f"{_STAGE}{stage}": table for stage, table in tables.items() if table.num_rows}
        rows = sum(table.num_rows for table in parts.values())
        set_aside = quarantined.num_rows if quarantined is not None else 0
        if set_aside:
            parts[_QUARANTINED] = quarantined
        if not parts:
            return ResultRef("", batch, round_, tuple(slots), 0, 0)
        key = self._paths.new_data(batch)
        data = pack(parts, key=key, secret=self._secret, compression=self._compression)
        self._store.put(key, data)
        return ResultRef(key, batch, round_, tuple(slots), rows, len(data), set_aside)

    def rows(self, refs: Iterable[ResultRef], stage: str) -> pa.Table | None:
        """The rows of one stage in some objects of one batch, in order of slots, then rounds; None if there are none.

        `_slot` gives way to `_batch` and `_task`.
        """
        return _in_order(self._parts([ref for ref in refs if ref.rows], f"{_STAGE}{stage}"))

    def quarantined(self, refs: Iterable[ResultRef]) -> pa.Table | None:
        """The rows that were set aside, in the same order."""
        return _in_order(self._parts([ref for ref in refs if ref.quarantined], _QUARANTINED))

    def _parts(self, refs: Sequence[ResultRef], part: str) -> Iterator[tuple[ResultRef, pa.Table]]:
        in_rounds = sorted(refs, key=lambda ref: ref.round)
        if len(in_rounds) == 1:
            fetched: Iterator[Mapping[str, Any]] = map(self._fetch, in_rounds)
        else:
            fetched = self._fetched_ahead(iter(in_rounds))
        for ref, parts in zip(in_rounds, fetched, strict=True):
            if part in parts:
                yield ref, parts[part]

    def _fetched_ahead(self, refs: Iterator[ResultRef]) -> Iterator[Mapping[str, Any]]:
        with ThreadPoolExecutor(_AHEAD, thread_name_prefix="results") as executor:

            def start(count: int) -> Iterator[Future[Mapping[str, Any]]]:
                return (executor.submit(self._fetch, ref) for ref in islice(refs, count))

            under_way = deque(start(_AHEAD))
            while under_way:
                parts = under_way.popleft().result()
                under_way.extend(start(1))
                yield parts

    def _fetch(self, ref: ResultRef) -> Mapping[str, Any]:
        return unpack(self._store.get(ref.key).data, key=ref.key, secret=self._secret).parts


def _in_order(found: Iterable[tuple[ResultRef, pa.Table]]) -> pa.Table | None:
    """By slot; rows of one slot keep the order in which they come, which is that of rounds."""
    pieces = list(found)
    if not pieces:
        return None
    joined = pa.concat_tables([table for _, table in pieces], promote_options="permissive")
    slots = joined[SLOT].to_numpy()
    if np.any(slots[1:] < slots[:-1]):
        order = np.argsort(slots, kind="stable")
        joined, slots = joined.take(order), slots[order]
    batch = pieces[0][0].batch
    place = {
        BATCH: pa.array(np.full(len(slots), batch, np.int64)),
        TASK: pa.array((slots % SLOTS_PER_STAGE).astype(np.int32)),
    }
    rows = joined.drop_columns([SLOT])
    for name, column in place.items():
        rows = rows.append_column(PLACE.field(name), column)
    return rows
