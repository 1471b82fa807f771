"""A job's results and state as Spark sees them: real planner processes, real tasks, real checkpoints."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.query import StreamingQuery

import storage
from elastic import register_sources
from elastic.operators.context import Moment
from elastic.operators.keyed import KeyedOperator
from elastic.operators.library import CountByKey
from elastic.operators.stage_runner import StageRunner
from elastic.results import Description, ParquetSink, ResultLog, StageDescription
from elastic.spark.sources import ResultsSource
from storage.codec import Secret
from storage.errors import ForeignObject
from storage.state import Manifest, Manifests, StateManager, UnitId
from storage.stores.protocol import Store

pytestmark = pytest.mark.spark

SECRET = Secret.of("a secret for tests only")
OUTPUT = pa.schema(
    [
        ("value", pa.int64()),
        ("text", pa.large_string()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
    ]
)
TASKS = (3, 0, 1)
ROWS = 2  # of a task in a batch

Rows = list[tuple[int, int, int]]  # value, batch, task
ReadOn = Callable[..., list[Rows]]


@pytest.fixture(scope="module", autouse=True)
def sources(spark: SparkSession) -> None:
    register_sources(spark, SECRET)
    register_sources(spark, SECRET)


class Job:
    """Publishes rows that are known in closed form."""

    def __init__(self, folder: Path) -> None:
        self.url = folder.as_uri()
        self.store: Store = storage.open(self.url)
        self.log = ResultLog(self.store, SECRET, "job")
        self.batches = 0
        stage = StageDescription(
            "count", ("value",), CountByKey(silent=True), pa.schema([("value", pa.int64())]), OUTPUT
        )
        Description((stage,), 64, "1").save(self.store, SECRET, "job")

    def publish(self, batches: int) -> None:
        for batch in range(self.batches, self.batches + batches):
            refs = [
                self.log.write(batch, 0, [task], {"count": _table(batch, task, ROWS)})
                for task in TASKS
                if batch % 3 != 2  # every third one is quiet
            ]
            self.log.publish(batch, refs, batch)
        self.batches += batches

    def expected(self, since: int = 0) -> Rows:
        return sorted(
            (_value(batch, task, n), batch, task)
            for batch in range(since, self.batches)
            for task in TASKS
            for n in range(ROWS)
            if batch % 3 != 2
        )


def _value(batch: int, task: int, n: int) -> int:
    return batch * 1_000 + task * 10 + n


def _table(batch: int, task: int, rows: int) -> pa.Table:
    values = [_value(batch, task, n) for n in range(rows)]
    columns = [values, [f"v{value}" for value in values], values, [["a", None]] * rows]
    made = pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, OUTPUT, strict=True)], schema=OUTPUT
    )
    return made.append_column("_slot", pa.array([task] * rows, pa.int64()))


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path / "store")
    yield made
    made.store.close()


def stream(spark: SparkSession, job: Job, **options: str) -> DataFrame:
    return spark.readStream.format("elastic").options(store=job.url, name="job", **options).load()


@pytest.fixture
def read_on(spark: SparkSession, job: Job, tmp_path: Path) -> ReadOn:
    """Runs one query over what is there, from its checkpoint; the rows of every micro-batch that has some."""

    def run(**options: str) -> list[Rows]:
        taken: list[Rows] = []

        def take(rows: DataFrame, _: int) -> None:
            found = sorted((row["value"], row["_batch"], row["_task"]) for row in rows.collect())
            taken.extend([found] if found else [])

        query = (
            stream(spark, job, **options)
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        _ended(query)
        return taken

    return run


def joined(taken: list[Rows]) -> Rows:
    return [row for rows in taken for row in rows]


def _ended(query: StreamingQuery) -> None:
    try:
        assert query.awaitTermination(60)
    finally:
        query.stop()


def test_a_stream_has_the_columns_of_the_stage_and_their_place(spark: SparkSession, job: Job) -> None:
    assert stream(spark, job).schema.simpleString() == (
        "struct<value:bigint,text:string,at:timestamp,tags:array<string>,_batch:bigint,_task:int>"
    )


def test_a_query_that_stops_and_restarts_reads_each_row_once(job: Job, read_on: ReadOn) -> None:
    job.publish(4)
    seen = read_on()
    assert joined(seen) == job.expected()
    assert read_on() == []
    job.publish(3)
    assert joined(read_on()) == job.expected(since=4)


def test_a_query_started_before_the_first_batch_reads_it(job: Job, read_on: ReadOn) -> None:
    assert read_on() == []
    job.publish(2)
    assert joined(read_on()) == job.expected()


def test_a_trigger_reads_at_most_the_batches_that_the_option_allows(job: Job, read_on: ReadOn) -> None:
    job.publish(7)
    seen = read_on(maxBatchesPerTrigger="2")
    assert [sorted({batch for _, batch, _ in rows}) for rows in seen] == [[0, 1], [3], [4], [6]]
    assert joined(seen) == job.expected()


def test_a_stream_may_start_later(job: Job, read_on: ReadOn) -> None:
    job.publish(6)
    assert joined(read_on(startingBatch="4")) == job.expected(since=4)


def test_a_running_query_gets_batches_as_they_are_published(spark: SparkSession, job: Job) -> None:
    query = stream(spark, job).writeStream.format("memory").queryName("live").outputMode("append").start()
    try:
        for _ in range(3):
            job.publish(2)
            query.processAllAvailable()
            live = [(row["value"], row["_batch"], row["_task"]) for row in spark.table("live").collect()]
            assert sorted(live) == job.expected()
    finally:
        query.stop()


def test_many_results_are_read_by_several_tasks_and_every_type_survives(spark: SparkSession, job: Job) -> None:
    job.publish(36)
    found = spark.read.format("elastic").options(store=job.url, name="job").load()
    assert found.rdd.getNumPartitions() == 2
    rows = found.collect()
    assert sorted((row["value"], row["_batch"], row["_task"]) for row in rows) == job.expected()
    for row in rows:
        assert (row["text"], row["tags"]) == (f"v{row['value']}", ["a", None])
        assert row["at"].timestamp() * 1_000_000 == pytest.approx(row["value"])


def test_without_results_there_is_an_empty_frame(spark: SparkSession, job: Job) -> None:
    assert spark.read.format("elastic").options(store=job.url, name="job").load().count() == 0


def test_a_query_whose_batches_have_expired_fails_with_the_reason(job: Job, read_on: ReadOn) -> None:
    job.publish(2)
    read_on()
    job.publish(8)
    job.log.expire(keep=3)
    with pytest.raises(PySparkException, match=r"ResultsExpired.*batch 2 have expired; the oldest batch kept is 7"):
        read_on()


def test_a_query_detects_that_its_job_was_started_anew(job: Job, read_on: ReadOn, tmp_path: Path) -> None:
    job.publish(2)
    read_on()
    job.store.delete([entry.key for entry in job.store.list()])
    anew = Job(tmp_path / "store")
    anew.publish(5)
    with pytest.raises(PySparkException, match="ResultsReplaced"):
        read_on()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"secret": "a secret that is long enough"}, "plans show options"),
        ({"maxBatchPerTrigger": "3"}, "UnknownSetting.*Did you mean 'maxBatchesPerTrigger'"),
        ({"name": "wrod-count"}, "UnknownJob"),
        ({"stage": "sort"}, "UnknownStage.*'count'"),
        ({"store": ""}, "InvalidSetting.*store"),
    ],
)
def test_a_wrong_option_is_refused_when_the_stream_is_made(
    spark: SparkSession, job: Job, options: dict[str, str], says: str
) -> None:
    with pytest.raises(PySparkException, match=f"(?s){says}"):
        spark.readStream.format("elastic").options(**{"store": job.url, "name": "job", **options}).load()


def test_without_a_registered_secret_the_environment_s_is_used(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ResultsSource(CaseInsensitiveDict({"store": job.url, "name": "job"}))
    monkeypatch.setenv("ELASTIC_SECRET", SECRET.reveal().decode())
    assert source.schema()["value"].dataType.simpleString() == "bigint"
    monkeypatch.setenv("ELASTIC_SECRET", "another secret, long enough")
    with pytest.raises(ForeignObject):
        source.schema()


def test_no_plan_shows_the_secret(spark: SparkSession, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.publish(1)
    spark.read.format("elastic").options(store=job.url, name="job").load().explain(extended=True)
    shown = capsys.readouterr().out
    assert "elastic" in shown
    assert SECRET.reveal().decode() not in shown


def test_spark_reads_a_folder_of_the_parquet_sink(spark: SparkSession, job: Job, tmp_path: Path) -> None:
    job.publish(4)
    sink = ParquetSink((tmp_path / "out").as_uri())
    sink.open(job.log.read_identity())
    for batch in job.log.poll():
        sink.deliver(batch, job.log.read(batch, "count"))
    sink.close()
    found = spark.read.parquet(str(tmp_path / "out")).select("value", "_batch", "_task").collect()
    assert sorted(tuple(row) for row in found) == job.expected()


WORDS = pa.schema([("word", pa.string()), ("n", pa.int64())])


class Totals(KeyedOperator):
    """A value per key, of a class of the user's own."""

    output_schema = "word string, total long"

    def handle_key(self, key: Any, rows: Any, state: Any, context: Any) -> Any:  # noqa: ARG002 - the protocol's
        total = (state.get() or 0) + sum(row["n"] for row in rows)
        state.update(total)
        yield {"word": key, "total": total}


def save_snapshot(job: Job, operators: dict[str, Any], tasks: int, words: int) -> None:
    """What a job leaves behind that has counted each word once in its first stage, and twice in the second."""
    stages = tuple(StageDescription(name, ("word",), operator, WORDS) for name, operator in operators.items())
    Description(stages, tasks, "1").save(job.store, SECRET, "job")
    units = [UnitId(stage, task) for stage in range(len(stages)) for task in range(tasks)]
    controller = Manifests(job.store, SECRET, "job")
    controller.recover(Manifest.first(units))
    controller.commit_batch(0, [])
    controller.commit_batch(1, [])
    states = {}
    for number, stage in enumerate(stages):
        runner = StageRunner(stage.operator, key=stage.key, input_schema=WORDS, stage=number, name=stage.name)
        for task in range(tasks - 1):  # the last one never had any rows
            mine = [f"word-{n}" for n in range(words) if n % (tasks - 1) == task]
            state = runner.new_state()
            for _ in range(number + 1):
                rows = pa.table({"word": mine, "n": [7] * len(mine)}, WORDS)
                runner.step(state, [runner.combine(rows)], Moment(UnitId(number, task), 0, 0, 0, None, None))
            states[UnitId(number, task)] = runner.capture(state)
    with StateManager(job.store, SECRET, "job") as manager, controller.leases.open("snapshot") as lease:
        saved = [manager.save(unit, state, batch=0, lease=lease) for unit, state in states.items()]
        unchanged = {UnitId(0, 0): 1}  # nothing came for it in batch 1
        controller.commit(lambda now: now.with_states(saved, unchanged))


def state_of(spark: SparkSession, job: Job, **options: str) -> DataFrame:
    return spark.read.format("elastic-state").options(store=job.url, name="job", **options).load()


def test_the_state_of_a_stage_is_a_frame(spark: SparkSession, job: Job) -> None:
    save_snapshot(job, {"first": CountByKey(), "second": CountByKey()}, tasks=5, words=40)
    found = state_of(spark, job, stage="second")
    assert found.schema.simpleString() == "struct<word:string,count:bigint,_batch:bigint,_task:int>"
    assert sorted(tuple(row) for row in found.collect()) == sorted((f"word-{n}", 2, 0, n % 4) for n in range(40))
    first = state_of(spark, job, stage="first").where("_task = 0").collect()
    assert {(row["count"], row["_batch"]) for row in first} == {(1, 1)}


def test_an_operator_of_the_user_s_own_travels_with_the_job(spark: SparkSession, job: Job) -> None:
    local = type("LocalTotals", (Totals,), {})  # no module has it, so it can only come from the store
    save_snapshot(job, {"totals": local()}, tasks=3, words=10)
    found = {row["word"]: row["value"] for row in state_of(spark, job).collect()}
    assert found == {f"word-{n}": 7 for n in range(10)}


def test_an_empty_state_is_an_empty_frame(spark: SparkSession, job: Job) -> None:
    save_snapshot(job, {"count": CountByKey()}, tasks=1, words=0)
    found = state_of(spark, job)
    assert found.count() == 0
    assert found.columns == ["word", "count", "_batch", "_task"]


def test_many_states_are_read_by_several_tasks(spark: SparkSession, job: Job) -> None:
    save_snapshot(job, {"count": CountByKey()}, tasks=130, words=1_000)
    found = state_of(spark, job)
    assert found.rdd.getNumPartitions() > 1
    assert found.select("word").distinct().count() == found.count() == 1_000


def test_a_stage_must_be_named_where_there_are_several(spark: SparkSession, job: Job) -> None:
    save_snapshot(job, {"first": CountByKey(), "second": CountByKey()}, tasks=2, words=2)
    with pytest.raises(PySparkException, match=r"UnknownStage.*'first', 'second'"):
        state_of(spark, job)


def test_a_job_without_a_snapshot_yet_is_named(spark: SparkSession, job: Job) -> None:
    with pytest.raises(PySparkException, match="UnknownJob"):
        state_of(spark, job)
