"""What ends Spark's query is one typed line, whichever call reports it."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.logger import PySparkLogger

from elastic.errors import NullKey, SparkRefused, StreamFailed
from elastic.spark.failures import explain_refusal, find_root_cause, to_stream_error
from elastic.spark.stream import SparkStream

KAFKA = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: \
Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage 3.0 (TID 9) (10.0.0.7 executor 1): \
org.apache.spark.SparkException: Malformed records are detected in record parsing.
\tat org.apache.spark.sql.Parser.parse(Parser.scala:94)
Caused by: org.apache.spark.sql.catalyst.util.BadRecordException: bad
\tat org.apache.spark.sql.Reader.read(Reader.scala:12)
\t... 14 more
Caused by: org.apache.kafka.common.errors.SerializationException: Size of data received is not 8.
\tat org.apache.kafka.LongDeserializer.deserialize(LongDeserializer.java:40)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2856)"""
PYTHON = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost \
task 0.0 in stage 3.0 (TID 5) (127.0.0.1 executor driver): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "job.py", line 3, in parse
    return int(text)
ValueError: invalid literal for int() with base 10: 'x'

\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:572)"""
ONE_LINE = """Lost task 0.0 in stage 1.0 (TID 1) (host executor driver): org.apache.spark.SparkRuntimeException: poison
\tat x"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (KAFKA, "SerializationException: Size of data received is not 8"),
        (PYTHON, "ValueError: invalid literal for int() with base 10: 'x'"),
        (ONE_LINE, "SparkRuntimeException: poison"),
        ("[CAST_INVALID_INPUT] The value 'x' cannot be cast. SQLSTATE: 22018\n== SQL ==\ncast(a)", None),
        ("", "no reason was given"),
        ("long " * 1000, "long " * 59 + "lo..."),
    ],
)
def test_the_reason_is_the_innermost_one_in_one_line(text: str, reason: str | None) -> None:
    found = find_root_cause(text)
    assert "\n" not in found
    assert found.rstrip(".") == (reason or text.splitlines()[0]).rstrip(".")


class Query:
    """A query that an error has ended."""

    isActive = False  # noqa: N815 - Spark's name

    def __init__(self, error: StreamingQueryException) -> None:
        self._error = error

    def exception(self) -> StreamingQueryException:
        return self._error

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        raise self._error


def failed_stream(text: str, raised_in_batch: BaseException | None = None) -> SparkStream:
    ingest: Any = SimpleNamespace(failure=raised_in_batch, ingest=None)
    frame: Any = None
    stream = SparkStream("words", frame, ingest, "", {})
    stream._query = Query(StreamingQueryException(text))  # type: ignore[assignment]
    stream._running.set()
    return stream


def test_every_way_to_hear_of_a_failed_stream_gives_the_same_short_error() -> None:
    stream = failed_stream(KAFKA)
    for ask in (stream.process_all_available, stream.raise_failure):
        with pytest.raises(StreamFailed) as caught:
            ask()
        assert caught.value.reason == "SerializationException: Size of data received is not 8"
        assert "\n" not in str(caught.value)
    assert isinstance(stream.failure, StreamFailed)
    assert isinstance(stream.query_error, StreamFailed)


def test_what_a_batch_raised_keeps_its_type_and_its_facts() -> None:
    stream = failed_stream("batch 3: elastic.errors.NullKey: 2 rows ...", NullKey("word", 2, 3))
    for ask in (stream.process_all_available, stream.raise_failure):
        with pytest.raises(NullKey) as caught:
            ask()
        assert (caught.value.column, caught.value.rows, caught.value.batch) == ("word", 2, 3)
    assert isinstance(stream.failure, NullKey)


def test_an_error_that_is_not_from_spark_stays_what_it_is() -> None:
    error = RuntimeError("anything")
    assert to_stream_error("words", error) is error


def test_a_refusal_is_one_line_and_its_stack_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    def select() -> None:
        PySparkLogger.getLogger("SQLQueryContextLogger").exception("the stack of the JVM")
        raise StreamingQueryException(KAFKA)

    with pytest.raises(SparkRefused) as refused, explain_refusal("read the source", "Check --select."):
        select()
    assert str(refused.value) == (
        "Spark could not read the source: SerializationException: Size of data received is not 8. Check --select."
    )
    assert "the stack of the JVM" not in capsys.readouterr().err


def test_errors_that_are_not_of_spark_pass_an_explanation_unchanged() -> None:
    with pytest.raises(NullKey), explain_refusal("read the source", "Check --select."):
        raise NullKey("word", 3, 17)


def test_a_refusal_that_spark_explains_names_no_class_that_was_not_found() -> None:
    def load() -> None:
        error = AnalysisException(
            errorClass="INVALID_TIMEOUT_TIMESTAMP", messageParameters={"timestamp": "nosuch", "watermark": "7"}
        )
        error._cause = AnalysisException("java.lang.ClassNotFoundException: nosuch.DefaultSource")  # type: ignore[attr-defined]
        raise error

    with pytest.raises(SparkRefused, match="nosuch") as refused, explain_refusal("read the source", "Check --source."):
        load()
    assert "DefaultSource" not in str(refused.value)
