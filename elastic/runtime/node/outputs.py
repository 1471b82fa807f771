"""What units put out becomes durable, then is reported: results for readers, emitted records as the next log."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from elastic.operators.execution import StageRunner
from elastic.results import ResultLog
from elastic.routing import Routing, split
from elastic.routing.hashing import key_hash
from elastic.runtime.protocol import Applied
from elastic.runtime.protocol.host import Taken
from storage.state import InputLog, LogRef


class Outputs:
    """Makes the outputs of one node durable. Every call writes new objects; only reported ones count."""

    def __init__(
        self, runners: Sequence[StageRunner], routing: Routing, log: InputLog, results: ResultLog, keeps_results: bool
    ) -> None:
        self._runners = runners
        self._routing = routing
        self._log = log
        self._results = results
        self._keeps_results = keeps_results

    def store(self, taken: Taken, node: str, incarnation: str) -> Applied:
        """The report to send; safe to repeat."""
        emitted = self._emit(taken) if taken.emitted else None
        results = None
        if self._keeps_results and (taken.results or taken.quarantined):
            tables = {self._runners[stage].name: pa.concat_tables(rows) for stage, rows in taken.results.items()}
            quarantined = pa.concat_tables(taken.quarantined) if taken.quarantined else None
            results = self._results.write(*taken.position, taken.slots, tables, quarantined)
        return Applied(
            node,
            incarnation,
            taken.position,
            taken.slots,
            emitted=emitted,
            emitted_stages=tuple(sorted(taken.emitted)),
            results=results,
            rows=taken.rows,
        )

    def _emit(self, taken: Taken) -> LogRef:
        slices: dict[int, pa.Table] = {}
        for stage, tables in taken.emitted.items():
            slices.update(self._routed(stage, tables))
        batch, round_ = taken.position
        return self._log.append(batch, min(taken.slots), slices, round=round_ + 1)

    def _routed(self, stage: int, tables: Sequence[pa.Table]) -> Mapping[int, pa.Table]:
        runner = self._runners[stage]
        rows = runner.combined(pa.concat_tables(tables))
        hashes = key_hash([rows[name] for name in runner.key])
        return split(rows, self._routing.slots_of(hashes, stage)).slices()
