"""Whole jobs of processors, with the real driver and nodes in threads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import elastic
from elastic.errors import OperatorFailed
from elastic.local.network import LocalNetwork
from elastic.local.run import TableSource
from elastic.operators import Stage
from elastic.spark.processors import ProcessorOperator
from storage import Secret
from tests.elastic.processors.samples import COUNTED, CountAbove, Processor, readings

KEYS = [f"k{number}" for number in range(40)]


def table(*pairs: tuple[str, int]) -> pa.Table:
    return pa.Table.from_pylist(readings(*pairs), schema=pa.schema([("id", pa.string()), ("temperature", pa.int32())]))


ROUND = table(*((key, 200) for key in KEYS))


class Versioned(Processor):
    """Counts rows; later versions have other columns in their state."""

    def __init__(self, schema: str) -> None:
        super().__init__()
        self.schema = schema

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", self.schema)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        known = self.value.get() or (0,)
        self.value.update((known[0] + len(list(rows)), *known[1:], *[None] * (self.schema.count(",") + 1 - len(known))))
        yield self.emit(id=key[0], state=str(self.value.get()))


def counts(job: elastic.Job, column: str = "violations") -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in job.collected().to_pylist():
        found.setdefault(row["id"], []).append(row[column])
    return found


@pytest.mark.parametrize("form", ["row", "pandas"])
def test_a_job_counts_exactly_while_it_scales_and_answers_queries(form: str) -> None:
    network = LocalNetwork()
    source = TableSource(network, [ROUND])
    operator = Stage(ProcessorOperator(CountAbove(form), COUNTED, pandas=form == "pandas"), grouping="table")
    with elastic.local_run(source, key="id", operator=operator, network=network) as job:
        job.process_all_available()
        for number in (4, 1, 3):
            job.scale(number).wait()
            source.append(ROUND)
            job.process_all_available()
        assert counts(job) == {key: [1, 2, 3, 4] for key in KEYS}
        assert job.state("k7") == {"violations": {"count": 4}}


def test_a_job_continues_with_a_processor_whose_state_has_more_columns(tmp_path: Path) -> None:
    def run(schema: str, rounds: int) -> "elastic.Job":
        return elastic.local_run(
            [ROUND] * rounds,
            key="id",
            operator=ProcessorOperator(Versioned(schema), "id string, state string"),
            store=tmp_path.as_uri(),
            secret=SECRET,
        )

    with run("n int", 1) as job:
        job.process_all_available()
        assert counts(job, "state")["k1"] == ["(1,)"]
    with run("n long, more string", 2) as job:
        job.process_all_available()
        assert counts(job, "state")["k1"][-1] == "(2, None)"
    with run("n short", 3) as job, pytest.raises(OperatorFailed, match="cannot be read as smallint"):
        job.process_all_available()


SECRET = Secret.random()


class ByMinute(Processor):
    """Emits the minute of each event, for the next stage."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for temperature in self.values(rows, "temperature"):
            yield self.emit(id=str(temperature % 3), temperature=temperature)


def test_processors_can_be_chained() -> None:
    first = ProcessorOperator(ByMinute(), "id string, temperature int")
    last = ProcessorOperator(CountAbove(), COUNTED)
    with elastic.local_run([table(*((key, n) for n, key in enumerate(KEYS)))], key="id", operator=[first, last]) as job:
        job.process_all_available()
        rows = sorted(row["n"] for row in job.collected().to_pylist())
    assert rows == [13, 13, 14]
