"""The Kafka sink on a real broker: what readers see, refused records, and a broker that is killed and restarted."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from elastic.errors import InvalidSetting, MissingPackage
from elastic.results import UNIT, KafkaSink, ResultLog, SinkWriter, open_sink
from elastic.results.errors import RecordRefused, SinkTakenOver, SinkUnavailable
from scripts.kafka_broker import KafkaBroker
from storage.stores.memory import MemoryStore
from tests.elastic.results.world import SECRET, STAGE

_SECONDS = 60.0


def table(*values: object) -> pa.Table:
    return pa.table({"v": list(values)})


def open_on(broker: KafkaBroker, topic: str, **arguments: object) -> KafkaSink:
    sink = KafkaSink(topic, broker.bootstrap_servers, **arguments)  # type: ignore[arg-type]
    sink.open(f"job-of-{topic}")
    return sink


def values(broker: KafkaBroker, topic: str, *, committed: bool = True) -> list[object]:
    return [json.loads(record.value() or b"")["v"] for record in broker.read(topic, committed=committed)]


@pytest.fixture
def topic(broker: KafkaBroker) -> str:
    return broker.create_topic(f"topic-{uuid4().hex[:8]}", partitions=1)


@pytest.mark.server
class TestOnABroker:
    """Tests that need the broker."""

    def test_rows_of_a_key_are_in_one_partition_and_in_order(self, broker: KafkaBroker) -> None:
        topic = broker.create_topic(f"topic-{uuid4().hex[:8]}", partitions=4)
        with closing(open_on(broker, topic, key="k")) as sink:
            for batch in range(3):
                sink.deliver(
                    batch, pa.table({"k": [f"k{n % 7}" for n in range(70)], "n": range(batch * 70, batch * 70 + 70)})
                )
        places: dict[bytes | None, set[int | None]] = {}
        numbers: dict[bytes | None, list[int]] = {}
        for record in broker.read(topic):
            places.setdefault(record.key(), set()).add(record.partition())
            numbers.setdefault(record.key(), []).append(json.loads(record.value() or b"")["n"])
        assert set(places) == {f"k{n}".encode() for n in range(7)}
        assert all(len(partitions) == 1 for partitions in places.values())
        assert all(found == sorted(found) and len(found) == 30 for found in numbers.values())

    def test_a_reader_of_committed_records_sees_nothing_of_an_unfinished_batch(
        self, broker: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from elastic.results.kafka.transactions import Transactions

        def flush_only(transactions: Transactions) -> None:
            transactions._producer.flush(_SECONDS)

        with closing(open_on(broker, topic)) as sink:
            sink.deliver(0, table(0))
            with monkeypatch.context() as patched:
                patched.setattr(Transactions, "_commit", flush_only)  # as a driver that is killed before its commit
                sink.deliver(1, table(1))
            assert values(broker, topic) == [0]
            assert values(broker, topic, committed=False) == [0, 1]
            with closing(open_on(broker, topic)) as later:
                later.deliver(1, table(1))
                assert values(broker, topic) == [0, 1]
                assert values(broker, topic, committed=False) == [0, 1, 1]

    def test_an_earlier_run_is_fenced_off_in_the_middle_of_a_batch(self, broker: KafkaBroker, topic: str) -> None:
        with closing(open_on(broker, topic)) as sink, closing(open_on(broker, topic)) as later:
            with pytest.raises(SinkTakenOver, match="batch 0"):
                sink.deliver(0, table(1))
            later.deliver(0, table(2))
        assert values(broker, topic) == [2]

    def test_a_record_that_is_too_large_is_named(self, broker: KafkaBroker, topic: str) -> None:
        with closing(open_on(broker, topic, key="v")) as sink:
            sink.deliver(0, table("small"))
            with pytest.raises(RecordRefused) as refused:
                sink.deliver(1, table("one", "two" * 1_000_000, "three"))
        error = refused.value
        assert (error.topic, error.batch, error.row) == (topic, 1, 1)
        assert error.key is not None
        assert error.key.startswith(b"twotwo")
        assert len(str(error)) < 1_000
        assert values(broker, topic) == ["small"]

    def test_a_topic_with_a_larger_limit_takes_larger_records(self, broker: KafkaBroker) -> None:
        topic = broker.create_topic(f"topic-{uuid4().hex[:8]}", partitions=1, max_message_bytes="4000000")
        with closing(open_on(broker, topic)) as sink:
            sink.deliver(0, table("x" * 3_000_000))
        assert values(broker, topic) == ["x" * 3_000_000]

    def test_refused_records_are_described_in_the_topic_that_quarantines_them(
        self, broker: KafkaBroker, topic: str
    ) -> None:
        quarantine = broker.create_topic(f"{topic}-refused", partitions=1)
        with closing(open_on(broker, topic, quarantine=quarantine)) as sink:
            sink.deliver(0, table("one", "x" * 2_000_000, "three", "y" * 2_000_000))
            sink.deliver(0, table("one", "x" * 2_000_000, "three", "y" * 2_000_000))
            sink.deliver(1, table("four"))
        assert values(broker, topic) == ["one", "three", "four"]
        described = [json.loads(record.value() or b"") for record in broker.read(quarantine)]
        assert [(one["topic"], one["batch"], one["row"]) for one in described] == [(topic, 0, 1), (topic, 0, 3)]
        assert "arge" in described[0]["error"]

    def test_records_that_only_the_broker_refuses_are_found_among_the_others(self, broker: KafkaBroker) -> None:
        # A compacted topic takes no record without a key, and answers for the whole batch of records that holds one.
        topic = broker.create_topic(f"topic-{uuid4().hex[:8]}", partitions=1, cleanup_policy="compact")
        quarantine = broker.create_topic(f"{topic}-refused", partitions=1)
        rows = pa.table({"k": ["a", None, "b", None, "c"], "v": [1, 2, 3, 4, 5]})
        with closing(open_on(broker, topic, key="k")) as sink, pytest.raises(RecordRefused) as refused:
            sink.deliver(0, rows)
        assert refused.value.row == 1
        with closing(open_on(broker, topic, key="k", quarantine=quarantine)) as sink:
            sink.deliver(0, rows)
            sink.deliver(1, rows.slice(0, 1))
        assert values(broker, topic) == [1, 3, 5, 1]
        assert [json.loads(record.value() or b"")["row"] for record in broker.read(quarantine)] == [1, 3]

    def test_rows_choose_topic_partition_and_headers(self, broker: KafkaBroker, topic: str) -> None:
        other = broker.create_topic(f"{topic}-other", partitions=3)
        quarantine = broker.create_topic(f"{topic}-refused", partitions=1)
        headers = pa.array(
            [[{"key": "h", "value": b"1"}], None, None],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        )
        columns = {
            "value": [b"one", b"two", b"lost"],
            "headers": headers,
            "topic": [other, None, None],
            "partition": [2, 0, 9],
        }
        with closing(open_on(broker, topic, quarantine=quarantine)) as sink:
            sink.deliver(0, pa.table(columns))
        (one,) = broker.read(other)
        assert (one.partition(), one.value(), one.headers()) == (2, b"one", [("h", b"1")])
        assert [record.value() for record in broker.read(topic)] == [b"two"]
        assert [json.loads(record.value() or b"")["partition"] for record in broker.read(quarantine)] == [9]

    def test_a_batch_larger_than_the_queue_of_the_client_is_one_transaction(
        self, broker: KafkaBroker, topic: str
    ) -> None:
        with closing(open_on(broker, topic, config={"queue.buffering.max.messages": 500})) as sink:
            sink.deliver(0, table(*range(20_000)))
        assert values(broker, topic) == list(range(20_000))

    def test_a_topic_that_does_not_exist_is_waited_for(self, broker: KafkaBroker) -> None:
        topic = f"late-{uuid4().hex[:8]}"
        sink = KafkaSink(topic, broker.bootstrap_servers)
        with pytest.raises(SinkUnavailable, match=f"no topic '{topic}'; create it"):
            sink.open("results")
        broker.create_topic(topic)
        assert sink.open("results") is None

    def test_a_topic_of_positions_that_would_forget_them_is_refused(self, broker: KafkaBroker, topic: str) -> None:
        forgetful = broker.create_topic(f"{topic}-positions", partitions=1)
        with pytest.raises(InvalidSetting, match="forgets positions"):
            open_on(broker, topic, positions=forgetful)

    def test_a_position_behind_an_open_transaction_of_another_sink_is_waited_for(
        self, broker: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from elastic.results.kafka.transactions import Transactions

        other = broker.create_topic(f"{topic}-other", partitions=1)
        hold, held = threading.Event(), threading.Event()

        def commit_late(transactions: Transactions) -> None:
            transactions._producer.flush(_SECONDS)
            held.set()
            hold.wait(_SECONDS)
            transactions._producer.commit_transaction(_SECONDS)

        with closing(open_on(broker, topic)) as sink, closing(open_on(broker, other)) as slow:
            with monkeypatch.context() as patched:
                patched.setattr(Transactions, "_commit", commit_late)
                delivery = threading.Thread(target=slow.deliver, args=(0, table(1)))
                delivery.start()
                assert held.wait(_SECONDS)
            sink.deliver(0, table(1))  # its position is behind the open transaction, which hides it from readers
            threading.Timer(1.0, hold.set).start()
            with closing(KafkaSink(topic, broker.bootstrap_servers)) as later:
                assert later.open(f"job-of-{topic}") == 1
            delivery.join(_SECONDS)

    def test_a_broker_that_is_killed_and_restarted_gets_every_batch_once(self, broker: KafkaBroker, topic: str) -> None:
        batches = 40
        log = ResultLog(MemoryStore(), SECRET, "job")
        writer = SinkWriter(log, STAGE, KafkaSink(topic, broker.bootstrap_servers), poll_seconds=0.05).start()
        for batch in range(batches):
            _publish(log, batch)
            writer.notify()
            if batch == 10:
                assert writer.wait(5, _SECONDS)
                broker.kill()
            if batch == 30:
                broker.start()
            time.sleep(0.02)
        assert writer.wait(batches - 1, _SECONDS)
        assert writer.error is None
        assert writer.stop()
        assert values(broker, topic) == [batch * 100 + row for batch in range(batches) for row in range(100)]

    def test_a_writer_stops_within_its_time_while_the_broker_is_away(self, broker: KafkaBroker, topic: str) -> None:
        log = ResultLog(MemoryStore(), SECRET, "job")
        sink = KafkaSink(topic, broker.bootstrap_servers, timeout_seconds=3)
        writer = SinkWriter(log, STAGE, sink, poll_seconds=0.05).start()
        _publish(log, 0)
        assert writer.wait(0, _SECONDS)
        broker.kill()
        try:
            _publish(log, 1)
            writer.notify()
            began = time.monotonic()
            assert not writer.stop(timeout_seconds=1)
            assert time.monotonic() - began < 2
            writer._thread.join(15)
            assert not writer._thread.is_alive()
            assert time.monotonic() - began < 12
        finally:
            broker.start()
        assert values(broker, topic) == list(range(100))
        second = SinkWriter(log, STAGE, KafkaSink(topic, broker.bootstrap_servers)).start()
        assert second.stop(timeout_seconds=_SECONDS)
        assert values(broker, topic) == list(range(200))


def _publish(log: ResultLog, batch: int) -> None:
    rows = pa.table(
        {"v": pa.array(range(batch * 100, batch * 100 + 100), pa.int64()), UNIT: pa.array([0] * 100, pa.int64())}
    )
    log.publish(batch, [log.write(batch, 0, [0], {STAGE: rows})], timestamp_ms=0)


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("topic", "kafka://127.0.0.1:9092/topic"),
        ("//broker:9092", "name broker and topic"),
        ("//broker:9092/a/b", "name broker and topic"),
        ("//user:word@broker:9092/topic", "config=/run/secrets/kafka"),
        ("//broker:9092/topic?keys=word", "there is no option 'keys'; there are key, quarantine, config, positions"),
        ("//broker:9092/topic?config=/does/not/exist", "cannot be read"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_advice(address: str, advice: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        open_sink(f"kafka:{address}")
    assert advice in str(refused.value)
    assert "word@" not in str(refused.value)


@pytest.mark.parametrize(
    ("config", "advice"),
    [
        ({"acks": "1"}, "the sink sets it itself"),
        ({"securty.protocol": "ssl"}, 'No such configuration property: "securty'),
    ],
)
def test_properties_that_the_client_does_not_have_are_refused(config: dict[str, str], advice: str) -> None:
    with pytest.raises(InvalidSetting, match=advice):
        KafkaSink("topic", "127.0.0.1:1", config=config)


def test_properties_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("# of the client\nclient.id = elastic\n\nlinger.ms=7\n")
    (tmp_path / "bad").write_text("client.id\n")
    open_sink(f"kafka://127.0.0.1:1/topic?config={tmp_path / 'good'}").close()
    with pytest.raises(InvalidSetting, match="NAME=VALUE"):
        open_sink(f"kafka://127.0.0.1:1/topic?config={tmp_path / 'bad'}")


def test_a_broker_that_does_not_answer_makes_the_sink_unavailable_within_its_timeout() -> None:
    sink = KafkaSink("topic", "127.0.0.1:1", timeout_seconds=0.5)
    began = time.monotonic()
    with pytest.raises(SinkUnavailable):
        sink.open("results")
    assert time.monotonic() - began < 5
    sink.close()


@pytest.mark.parametrize(
    ("package", "make", "extra"),
    [
        ("confluent_kafka", lambda: open_sink("kafka://127.0.0.1:9092/topic"), "spark-elastic[kafka]"),
        ("deltalake", lambda: open_sink("delta:file:///table"), "spark-elastic[delta]"),
        ("pyiceberg", lambda: open_sink("iceberg:a.b"), "spark-elastic[iceberg]"),
    ],
)
def test_a_client_that_is_not_installed_is_named(
    package: str, make: Callable[[], object], extra: str, hide: Callable[[str], None]
) -> None:
    hide(package)
    with pytest.raises(MissingPackage) as missing:
        make()
    assert extra in str(missing.value)


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Hide a package, as if it were not installed, with all modules of ours that have imported it."""

    def hide(package: str) -> None:
        for name in [*sys.modules]:
            if name.partition(".")[0] == package or name.startswith("elastic.results.kafka."):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)

    return hide  # type: ignore[return-value]
