"""In which order the Kafka sink fences off, reads its position, sends and commits; the broker is a list here."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from elastic.results import KafkaSink
from elastic.results.errors import RecordRefused, SinkTakenOver, SinkUnavailable
from elastic.results.kafka.records import Record
from elastic.results.kafka.transactions import RefusedRecords, Transactions


def failure(code: int) -> KafkaException:
    return KafkaException(KafkaError(code, "the test says so"))


class ListedProducer:
    """The client's producer: notes its calls; `failures` are raised by calls, and `refuses` by the broker."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.calls: list[str] = []
        self.failures: dict[str, KafkaException | BufferError] = {}
        self.refuses: dict[bytes, int] = {}
        self.unreported: list[Any] = []
        self.left_unsent = 0

    def init_transactions(self, _: float) -> None:
        self.calls.append("init")

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def produce(self, topic: str, value: bytes, *_: Any, on_delivery: Any, **__: Any) -> None:
        self.calls.append(f"{topic} {value.decode()}")
        if value in self.refuses:
            self.unreported.append(lambda: on_delivery(KafkaError(self.refuses[value]), None))
        if error := self.failures.pop(value.decode(), None):
            raise error

    def poll(self, _: float) -> None:
        while self.unreported:
            self.unreported.pop(0)()

    def flush(self, timeout: float) -> int:
        self.calls.append("flush")
        self.poll(timeout)
        return self.left_unsent

    def commit_transaction(self, _: float) -> None:
        self.calls.append("commit")
        if error := self.failures.pop("commit", None):
            raise error

    def abort_transaction(self, _: float) -> None:
        self.calls.append("abort")


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> Transactions:
    monkeypatch.setattr("elastic.results.kafka.transactions.Producer", ListedProducer)
    return Transactions({}, 0.5, one_by_one=False)


def producer_of(transactions: Transactions) -> ListedProducer:
    producer: Any = transactions._producer
    return producer  # type: ignore[no-any-return]


POSITION = Record("positions", b"id", b"next")
RECORDS = [Record("topic", None, b"1"), Record("topic", None, b"2")]


def test_the_position_is_sent_when_all_records_are_stored_and_committed_with_them(transactions: Transactions) -> None:
    transactions.write(RECORDS, POSITION)
    assert producer_of(transactions).calls == ["begin", "topic 1", "topic 2", "flush", "positions next", "commit"]


def test_a_transaction_with_a_refused_record_is_aborted(transactions: Transactions) -> None:
    producer = producer_of(transactions)
    producer.refuses = {b"2": KafkaError.INVALID_RECORD}
    with pytest.raises(RefusedRecords) as refused:
        transactions.write(RECORDS, POSITION)
    assert list(refused.value.reasons) == [1]
    assert refused.value.are_in_doubt  # the broker may mean the first one, which it got in the same request
    assert producer.calls[-2:] == ["flush", "abort"]


def test_a_record_that_the_client_refuses_is_not_in_doubt(transactions: Transactions) -> None:
    producer_of(transactions).failures = {"1": failure(KafkaError.MSG_SIZE_TOO_LARGE)}
    with pytest.raises(RefusedRecords) as refused:
        transactions.write(RECORDS, POSITION)
    assert (list(refused.value.reasons), refused.value.are_in_doubt) == ([0], False)


def test_a_record_sent_alone_is_not_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastic.results.kafka.transactions.Producer", ListedProducer)
    transactions = Transactions({}, 0.5, one_by_one=True)
    producer_of(transactions).refuses = {b"2": KafkaError.INVALID_RECORD}
    with pytest.raises(RefusedRecords) as refused:
        transactions.write(RECORDS, POSITION)
    assert not refused.value.are_in_doubt
    assert producer_of(transactions).config["batch.num.messages"] == 1


@pytest.mark.parametrize("own", [True, False])
def test_an_unknown_topic_is_the_fault_of_a_record_that_names_it(transactions: Transactions, own: bool) -> None:
    producer_of(transactions).refuses = {b"1": KafkaError._UNKNOWN_TOPIC}
    with pytest.raises(RefusedRecords if own else KafkaException):
        transactions.write([Record("topic", None, b"1", names_topic=own)], POSITION)
    assert "commit" not in producer_of(transactions).calls


def test_a_record_that_is_lost_is_not_committed_around(transactions: Transactions) -> None:
    producer_of(transactions).refuses = {b"1": KafkaError._MSG_TIMED_OUT}
    with pytest.raises(KafkaException):
        transactions.write(RECORDS, POSITION)
    assert "commit" not in producer_of(transactions).calls


def test_a_broker_that_stores_nothing_ends_the_wait(transactions: Transactions) -> None:
    producer_of(transactions).left_unsent = 2
    with pytest.raises(KafkaException, match="has not stored all records"):
        transactions.write(RECORDS, POSITION)
    assert "positions next" not in producer_of(transactions).calls


def test_a_full_queue_is_waited_for(transactions: Transactions) -> None:
    producer_of(transactions).failures = {"1": BufferError()}
    transactions.write(RECORDS, POSITION)
    assert producer_of(transactions).calls[:3] == ["begin", "topic 1", "topic 1"]


class ListedConnection:
    """A cluster in this process: `topic` and `position` are what is committed."""

    def __init__(self) -> None:
        self.bootstrap_servers = "here"
        self.topic: list[Record] = []
        self.position: dict[str, Any] | None = None
        self.calls: list[str] = []
        self.failure: tuple[str, Exception] | None = None

    def has_topic(self, _: str) -> bool:
        return True

    def create_positions(self, _: str) -> None: ...

    def read_limit(self, _: str) -> int | None:
        return None

    def begin(self, *_: Any, one_by_one: bool) -> "ListedConnection":
        self.calls.append("fence one by one" if one_by_one else "fence")
        return self

    def read_position(self, *_: str) -> dict[str, Any] | None:
        self.calls.append("read position")
        return self.position

    def write(self, records: Iterable[Record], position: Record) -> None:
        """Commit, or fail before it or after it."""
        self.calls.append("write")
        when, error = self.failure or ("", None)
        self.failure = None
        if error is not None and when == "before":
            raise error
        self.topic += records
        self.position = {"next": int((position.value or b"").decode().partition('"next": ')[2].partition(",")[0])}
        if error is not None:
            raise error


@pytest.fixture
def cluster() -> ListedConnection:
    return ListedConnection()


@pytest.fixture
def sink(cluster: ListedConnection) -> KafkaSink:
    made = KafkaSink("topic", "127.0.0.1:1")
    made._connection = cluster  # type: ignore[assignment]
    made.open("results")
    return made


def rows(*values: int) -> pa.Table:
    return pa.table({"value": pa.array([str(value) for value in values])})


def values(cluster: ListedConnection) -> list[bytes | None]:
    return [record.value for record in cluster.topic]


def test_earlier_producers_are_fenced_off_before_a_position_is_read(cluster: ListedConnection, sink: KafkaSink) -> None:
    assert cluster.calls == ["fence", "read position"]
    assert repr(sink) == "KafkaSink('topic', 'here', next=0)"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_without_an_answer_is_repeated_only_if_it_did_not_happen(
    cluster: ListedConnection, sink: KafkaSink, when: str
) -> None:
    cluster.failure = when, failure(KafkaError._TIMED_OUT)
    with pytest.raises(SinkUnavailable, match="the test says so"):
        sink.deliver(0, rows(1))
    sink.deliver(0, rows(1))
    sink.deliver(1, rows(2))
    assert values(cluster) == [b"1", b"2"]
    assert cluster.calls[3:5] == ["fence", "read position"]


def test_a_fenced_driver_does_not_fence_off_the_later_one(cluster: ListedConnection, sink: KafkaSink) -> None:
    cluster.failure = "before", failure(KafkaError._FENCED)
    with pytest.raises(SinkTakenOver, match="batch 0"):
        sink.deliver(0, rows(1))
    assert cluster.calls.count("fence") == 1


def test_a_transaction_that_took_too_long_is_repeated(cluster: ListedConnection) -> None:
    sink = KafkaSink("topic", "127.0.0.1:1", transaction_seconds=1e-9)
    sink._connection = cluster  # type: ignore[assignment]
    sink.open("results")
    cluster.failure = "before", failure(KafkaError._FENCED)
    with pytest.raises(SinkUnavailable, match="longer than transaction_seconds"):
        sink.deliver(0, rows(1))


def test_records_in_doubt_are_sent_one_by_one_before_one_is_blamed(cluster: ListedConnection, sink: KafkaSink) -> None:
    cluster.failure = "before", RefusedRecords({0: "no", 1: "no"}, are_in_doubt=True)
    sink.deliver(0, rows(1, 2))
    assert cluster.calls[2:] == ["write", "fence one by one", "read position", "write"]
    assert values(cluster) == [b"1", b"2"]


def test_a_refused_record_is_described_where_it_is_quarantined(cluster: ListedConnection) -> None:
    sink = KafkaSink("topic", "127.0.0.1:1", quarantine="refused")
    sink._connection = cluster  # type: ignore[assignment]
    sink.open("results")
    cluster.failure = "before", RefusedRecords({1: "too large"}, are_in_doubt=False)
    sink.deliver(0, rows(1, 2, 3))
    assert [record.topic for record in cluster.topic] == ["topic", "refused", "topic"]
    assert b"too large" in (cluster.topic[1].value or b"")


def test_a_refused_record_is_named_where_nothing_is_quarantined(cluster: ListedConnection, sink: KafkaSink) -> None:
    cluster.failure = "before", RefusedRecords({1: "too large"}, are_in_doubt=False)
    with pytest.raises(RecordRefused, match="row 1 of batch 0"):
        sink.deliver(0, rows(1, 2, 3))
    assert cluster.topic == []


def test_batches_without_rows_cost_a_transaction_in_a_hundred(cluster: ListedConnection, sink: KafkaSink) -> None:
    for batch in range(250):
        sink.deliver(batch, rows())
    assert cluster.calls.count("write") == 2
    sink.close()
    assert cluster.position == {"next": 250}
