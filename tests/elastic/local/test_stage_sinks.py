"""A sink for each stage: in whole jobs, through failures, restarts and stops."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import storage
from elastic.core.pipeline import describe_pipeline
from elastic.errors import ElasticError, InvalidJob, InvalidSetting, SinkFailed
from elastic.job.job import Job
from elastic.local.run import local_run
from elastic.operators import Aggregate, CountByKey, Stage, stateless, window, with_late_rows
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from elastic.operators.stages import build_stages
from elastic.results import MemorySink, ResultLog
from elastic.results.errors import SinkUnavailable, UnknownStage
from elastic.results.stage_sinks import StageSinks
from storage import Secret

SECRET = Secret.of("a secret of these tests")
SCHEMA = pa.schema([("key", pa.int64()), ("n", pa.int64())])
FAST = {"heartbeat_seconds": 0.05, "retain_result_batches": 1}
BATCHES = [pa.table({"key": [batch % 3, 7], "n": [batch, 100 + batch]}, SCHEMA) for batch in range(6)]


def stages() -> list[Stage]:
    """A stage that drops nothing, one that counts, and one whose results are the rows themselves."""
    return [
        Stage(stateless(lambda rows: rows, SCHEMA), name="all"),
        Stage(CountByKey(), name="counts", inputs=["all"]),
        Stage(stateless(lambda rows: rows.select(["n"]), "n long"), name="plain", key="key", inputs=["all"]),
    ]


def run(batches: list[pa.Table], sink: Any, **options: Any) -> Job:
    return local_run(
        batches,
        key="key",
        operator=stages(),
        schema=SCHEMA,
        sink=sink,
        **{"secret": SECRET, "tasks": 4, "settings": FAST, **options},
    )


def numbers(table: pa.Table) -> list[int]:
    return sorted(table["n"].to_pylist())


def counted(table: pa.Table) -> Counter[int]:
    """How many rows of counts there are for each key: one for each batch in which it came."""
    assert "n" not in table.column_names
    return Counter(table["key"].to_pylist())


def expect(batches: range, sinks: Mapping[str, MemorySink]) -> None:
    rows = [row for batch in batches for row in BATCHES[batch].to_pylist()]
    assert numbers(sinks["plain"].table()) == sorted(row["n"] for row in rows)
    assert counted(sinks["counts"].table()) == Counter(row["key"] for row in rows)


class Unavailable(MemorySink):
    """Cannot be reached until `is_up`."""

    is_up = False

    def deliver(self, batch: int, rows: pa.Table) -> None:
        if not self.is_up:
            raise SinkUnavailable("the queue is away", "a test says so")
        super().deliver(batch, rows)


class Full(MemorySink):
    def deliver(self, _batch: int, _rows: pa.Table) -> None:
        raise OSError("no space left")


def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "timed out"
        time.sleep(0.01)


def test_each_sink_gets_the_results_of_its_stage_and_only_these_in_both_lives_of_a_job(tmp_path: Path) -> None:
    sinks = {"counts": MemorySink(), "plain": MemorySink()}
    store = tmp_path.as_uri()
    with run(BATCHES[:3], sinks, store=store) as job:
        job.process_all_available()
        expect(range(3), sinks)
        assert job.collected("plain") == sinks["plain"].table()
        with pytest.raises(UnknownStage, match="counts"):
            job.collected()
    with run(BATCHES, sinks, store=store) as job:
        job.process_all_available()
        expect(range(6), sinks)


def test_a_sink_that_fails_stops_no_other_and_gets_what_it_missed_in_the_next_life(tmp_path: Path) -> None:
    store = tmp_path.as_uri()
    taken = MemorySink()
    job = run(BATCHES[:3], {"plain": taken, "counts": Full()}, store=store)
    with pytest.raises(SinkFailed, match=r"stage 'counts': OSError: no space left"):
        job.process_all_available()
    assert job.status().problems == ("results no longer reach the sink: stage 'counts': OSError: no space left",)
    assert len(taken.table()) == 6
    job.snapshot()  # old results expire behind it, those that a sink lacks do not
    job.stop()

    sinks = {"plain": taken, "counts": MemorySink()}
    with run(BATCHES, sinks, store=store) as job:
        job.process_all_available()
        expect(range(6), sinks)


def test_results_are_kept_for_the_slowest_sink(tmp_path: Path) -> None:
    slow = Unavailable()
    sinks = {"plain": MemorySink(), "counts": slow}
    with run(BATCHES, sinks, store=tmp_path.as_uri()) as job:
        until(lambda: len(sinks["plain"].table()) == 12)
        job.snapshot()
        time.sleep(0.2)  # results expire in a thread of their own
        assert ResultLog(storage.open(tmp_path.as_uri()), SECRET, "local").poll() == range(6)
        slow.is_up = True
        job.process_all_available()
        expect(range(6), sinks)
        job.snapshot()


def test_a_stop_ends_within_one_bound_and_names_the_stages_whose_sinks_lack_results(tmp_path: Path) -> None:
    sinks = {"plain": Unavailable(), "counts": Unavailable()}
    job = run(BATCHES, sinks, store=tmp_path.as_uri())
    until(lambda: job.batches()[1] == 5)
    began = time.monotonic()
    report = job.stop(timeout_seconds=2)
    assert time.monotonic() - began < 3
    assert [sentence.partition(" has not")[0] for sentence in report.unfinished] == [
        "The sink of stage 'plain'",
        "The sink of stage 'counts'",
    ]


def test_a_stage_may_have_a_sink_of_the_store_and_another_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = (tmp_path / "plain").as_uri()
    with run(BATCHES, {"plain": f"parquet:{folder}", "counts": "store"}) as job:
        job.process_all_available()
        assert job.graph().sinks == {"plain": "parquet: plain"}
        with pytest.raises(ElasticError, match="only the memory sink"):
            job.collected("counts")
    assert numbers(ds.dataset(tmp_path / "plain", format="parquet").to_table()) == numbers(pa.concat_tables(BATCHES))


def test_a_folder_with_the_results_of_one_stage_is_refused_for_those_of_another(tmp_path: Path) -> None:
    store, folder = (tmp_path / "store").as_uri(), f"parquet:{(tmp_path / 'results').as_uri()}"
    with run(BATCHES[:3], {"counts": folder}, store=store) as job:
        job.process_all_available()
    with run(BATCHES, {"plain": folder}, store=store) as job, pytest.raises(SinkFailed, match="ForeignFolder"):
        job.process_all_available()


def test_late_rows_may_have_a_sink_besides_that_of_the_windows() -> None:
    times = [[0, 5_000], [100_000], [10], [200_000], [300_000]]
    batches = [pa.table({"key": [1] * len(some), "t": some}) for some in times]
    windows = Aggregate(rows=F.count()).over(window("1 second"), time="t", late="sink")
    sinks = {"late-rows": MemorySink(), "results": MemorySink()}
    operator = with_late_rows(windows)
    with local_run(batches, key="key", event_time="t", operator=operator, sink=sinks, settings=FAST) as job:
        job.process_all_available()
        assert sinks["late-rows"].table()["t"].to_pylist() == [10]
        assert set(job.graph().sinks) == set(job.graph().emits_results) == {"late-rows", "results"}
        until(lambda: len(sinks["results"].table()) == 4)


def test_two_stages_may_append_to_one_table(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    store, table = (tmp_path / "store").as_uri(), f"delta:{(tmp_path / 'table').as_uri()}"
    for batches in (BATCHES[:3], BATCHES):
        with run(batches, {"plain": table, "counts": table}, store=store) as job:
            job.process_all_available()
    found = pa.table(deltalake.DeltaTable(str(tmp_path / "table")).to_pyarrow_table()).to_pylist()
    assert sorted(row["n"] for row in found if row["n"] is not None) == numbers(pa.concat_tables(BATCHES))
    assert Counter(row["key"] for row in found if row["key"] is not None) == Counter([0, 1, 2] * 2 + [7] * 6)


def test_a_sink_for_the_last_stage_by_name_continues_that_of_a_job_with_one_sink(tmp_path: Path) -> None:
    store, folder = (tmp_path / "store").as_uri(), f"parquet:{(tmp_path / 'results').as_uri()}"
    with run(BATCHES[:3], folder, store=store) as job:
        job.process_all_available()
    with run(BATCHES, {"plain": folder}, store=store) as job:
        job.process_all_available()
    assert numbers(ds.dataset(tmp_path / "results", format="parquet").to_table()) == numbers(pa.concat_tables(BATCHES))


ONE = MemorySink()


@pytest.mark.parametrize(
    ("sink", "error", "match"),
    [
        ({}, InvalidSetting, "name a sink"),
        ({"other": "memory"}, UnknownStage, "other"),
        ({"all": "memory"}, InvalidJob, r"'all' has a sink and emits no results.*'counts', 'plain'"),
        ({"counts": ONE, "plain": ONE}, InvalidJob, "'counts' and 'plain' have the same sink"),
        ({"counts": "parquet:file:///a", "plain": "parquet:file:///a"}, InvalidJob, "have the same sink"),
        ({"counts": "memory", "plain": "none"}, InvalidSetting, "Leave stage 'plain' out"),
        ({"counts": "memory", "plain": "heap"}, InvalidSetting, "use one of"),
    ],
)
def test_sinks_that_would_deliver_nothing_or_too_much_are_refused_before_anything_starts(
    sink: Any, error: type[Exception], match: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=match):
        run(BATCHES, sink, store=tmp_path.as_uri())
    assert not list(tmp_path.iterdir())


def test_the_graph_shows_a_sink_behind_its_stage() -> None:
    sinks = {"plain": MemorySink(), "counts": "memory"}
    with run(BATCHES[:1], sinks) as job:
        graph = job.graph()
        assert graph.sinks == {"plain": "memory", "counts": "memory"}
        assert graph.to_mermaid().count('[("memory")]') == 2
        assert set(graph.to_networkx().successors(("stage", "counts"))) == {("sink", "counts")}
        assert job._repr_html_().count(">memory</text>") == 2
    with run(BATCHES[:1], {"counts": MemorySink()}) as job:
        assert '[("results of plain")]' in job.graph().to_mermaid()


def test_the_name_of_a_sink_has_no_secrets(tmp_path: Path) -> None:
    (tmp_path / "hidden").write_text("sasl.password=hidden")
    pipeline = describe_pipeline(build_stages(stages(), "key"), SCHEMA, 4)
    urls = {
        "counts": f"kafka://127.0.0.1:1/topic-a?key=key&config={tmp_path}/hidden",
        "plain": "delta:s3://user:hidden@bucket/table?token=hidden",
    }
    assert StageSinks.choose(urls, pipeline).drawn == {"counts": "kafka: topic-a", "plain": "delta: table"}
    assert StageSinks.choose(Full(), pipeline).drawn == {"plain": "Full"}
    assert StageSinks.choose("store", pipeline).drawn == {}
