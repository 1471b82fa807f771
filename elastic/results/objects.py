"""Result objects: what one node emitted in one round of one batch, written once and read stage by stage."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from elastic import threads
from elastic.results.paths import ResultPaths
from elastic.results.refs import ResultRef
from storage.codec import Secret, pack, unpack
from storage.state import TASKS_PER_STAGE
from storage.stores.protocol import Store

UNIT = "_slot"  # column with the number of the unit that emitted a row; the stored name is older than the constant
BATCH = "_batch"
TASK = "_task"
ORIGIN = pa.schema([(BATCH, pa.int64()), (TASK, pa.int32())])  # the columns that readers get instead

_STAGE = "rows:"  # prefix of a stage in the name of a part
_QUARANTINED = "quarantined"
_PREFETCH = 8  # objects fetched concurrently: a batch has one object per node


class ResultObjects:
    """Writes and reads the result objects of one job; thread-safe."""

    def __init__(self, store: Store, secret: Secret, paths: ResultPaths, compression: str = "auto") -> None:
        self._store = store
        self._secret = secret
        self._paths = paths
        self._compression = compression

    def write(
        self,
        batch: int,
        round_: int,
        unit_numbers: Sequence[int],
        tables: Mapping[str, pa.Table],
        quarantined: pa.Table | None,
    ) -> ResultRef:
        """Write one new object, or none without rows; return its ref."""
        parts = {f"{_STAGE}{stage}": table for stage, table in tables.items() if table.num_rows}
        rows = sum(table.num_rows for table in parts.values())
        quarantined_rows = quarantined.num_rows if quarantined is not None else 0
        if quarantined_rows:
            parts[_QUARANTINED] = quarantined
        if not parts:
            return ResultRef("", batch, round_, tuple(unit_numbers), 0, 0)
        key = self._paths.new_data(batch)
        data = pack(parts, key=key, secret=self._secret, compression=self._compression)
        self._store.put(key, data)
        return ResultRef(key, batch, round_, tuple(unit_numbers), rows, len(data), quarantined_rows)

    def read_rows(self, refs: Iterable[ResultRef], stage: str) -> pa.Table | None:
        """Read the rows of a stage in some objects of one batch, in order of units, then rounds; None without rows.

        The columns `BATCH` and `TASK` replace `UNIT`.
        """
        return _merge(self._read_parts([ref for ref in refs if ref.rows], f"{_STAGE}{stage}"))

    def read_quarantined(self, refs: Iterable[ResultRef]) -> pa.Table | None:
        """Read the quarantined rows, in the same order; None without rows."""
        return _merge(self._read_parts([ref for ref in refs if ref.quarantined], _QUARANTINED))

    def _read_parts(self, refs: Sequence[ResultRef], part: str) -> Iterator[tuple[ResultRef, pa.Table]]:
        by_round = sorted(refs, key=lambda ref: ref.round)
        if len(by_round) == 1:
            fetched: Iterator[Mapping[str, Any]] = map(self._fetch, by_round)
        else:
            fetched = self._prefetch(iter(by_round))
        for ref, parts in zip(by_round, fetched, strict=True):
            if part in parts:
                yield ref, parts[part]

    def _prefetch(self, refs: Iterator[ResultRef]) -> Iterator[Mapping[str, Any]]:
        with threads.ThreadPool(_PREFETCH, "results") as executor:

            def start(count: int) -> Iterator[Future[Mapping[str, Any]]]:
                return (executor.submit(self._fetch, ref) for ref in islice(refs, count))

            pending = deque(start(_PREFETCH))
            while pending:
                parts = pending.popleft().result()
                pending.extend(start(1))
                yield parts

    def _fetch(self, ref: ResultRef) -> Mapping[str, Any]:
        return unpack(self._store.get(ref.key), key=ref.key, secret=self._secret).parts


def _merge(found: Iterable[tuple[ResultRef, pa.Table]]) -> pa.Table | None:
    """Merge tables in order of units; rows of one unit keep their order, which is that of rounds."""
    pieces = list(found)
    if not pieces:
        return None
    joined = pa.concat_tables([table for _, table in pieces], promote_options="permissive")
    numbers = joined[UNIT].to_numpy()
    if np.any(numbers[1:] < numbers[:-1]):
        order = np.argsort(numbers, kind="stable")
        joined, numbers = joined.take(order), numbers[order]
    batch = pieces[0][0].batch
    origin = {
        BATCH: pa.array(np.full(len(numbers), batch, np.int64)),
        TASK: pa.array((numbers % TASKS_PER_STAGE).astype(np.int32)),
    }
    rows = joined.drop_columns([UNIT])
    for name, column in origin.items():
        rows = rows.append_column(ORIGIN.field(name), column)
    return rows
