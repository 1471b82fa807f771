"""Kafka in and Kafka out, with a real broker: every record exactly once for a reader of committed records."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner

from elastic.__main__ import main
from examples import kafka_words
from scripts.kafka_broker import KafkaBroker, connector_jars

pytestmark = pytest.mark.spark

_SECONDS = 180.0
_WORDS = ("hello", "world", "spark", "kafka", "state", "node", "key")


@pytest.fixture
def topics(broker: KafkaBroker) -> tuple[str, str, str]:
    """Topics for texts, numbers and refused records."""
    tag = uuid4().hex[:8]
    large = broker.create_topic(f"texts-{tag}", max_message_bytes="4000000")
    return large, broker.create_topic(f"numbers-{tag}"), broker.create_topic(f"refused-{tag}", partitions=1)


def arguments(broker: KafkaBroker, topics: tuple[str, str, str], store: Path, operator: str) -> list[str]:
    """Return the command line of docs/kafka.md."""
    texts, numbers, refused = topics
    return [
        *("run", operator, "--name", "words", "--key", "word", "--store", store.as_uri()),
        *("--source", "kafka", "--option", f"kafka.bootstrap.servers={broker.bootstrap_servers}"),
        *("--option", f"subscribe={texts}", "--option", "startingOffsets=earliest"),
        *("--select", "explode(split(CAST(value AS STRING), ' ')) AS word", "--select", "timestamp"),
        *("--event-time", "timestamp", "--watermark", "10 seconds", "--checkpoint", (store / "offsets").as_uri()),
        *("--sink", f"kafka://{broker.bootstrap_servers}/{numbers}?key=word&quarantine={refused}"),
        *("--nodes", "2", "--tasks", "16", "--set", "snapshot_seconds=1"),
    ]


def numbers_of(broker: KafkaBroker, topic: str) -> dict[str, list[int]]:
    """Return the numbers of each word as a new reader of committed records sees them."""
    found: dict[str, list[int]] = {}
    for record in broker.read(topic):
        row = json.loads(record.value() or b"")
        assert record.key() == row["word"].encode()
        found.setdefault(row["word"], []).append(row["number"])
    return found


def expected(words: Counter[str]) -> dict[str, list[int]]:
    return {word: list(range(1, count + 1)) for word, count in words.items()}


@pytest.mark.usefixtures("spark_of_programs")
def test_a_run_from_topic_to_topic_continues_where_it_ended(
    broker: KafkaBroker, topics: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ELASTIC_SECRET", "a secret of this test")
    texts, numbers, refused = topics
    command = arguments(broker, topics, tmp_path / "store", "tests.spark.numbering:NumberRecords")
    words: Counter[str] = Counter()
    poison = "x" * 2_000_000
    for sent in (["hello world hello", "spark"], ["hello", poison, "kafka world"]):
        broker.write(texts, [(None, text) for text in sent])
        words.update(word for text in sent for word in text.split(" ") if word != poison)
        done = CliRunner().invoke(main, [*command, "--once"])
        assert done.exit_code == 0, done.output
        assert numbers_of(broker, numbers) == expected(words)
    (described,) = [json.loads(record.value() or b"") for record in broker.read(refused)]
    assert described["topic"] == numbers
    assert described["key"].startswith("xxx")


@pytest.mark.usefixtures("spark_of_programs")
def test_the_example_counts_the_words_of_a_topic(
    broker: KafkaBroker, topics: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    texts, counts, _ = topics
    broker.write(texts, [(None, "To be, or not to be")])
    options = ["--brokers", broker.bootstrap_servers, "--store", str(tmp_path / "store"), "--once"]
    done = CliRunner().invoke(kafka_words.main, [texts, counts, *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    newest = {record.key(): json.loads(record.value() or b"")["count"] for record in broker.read(counts)}
    assert newest == {b"to": 2, b"be": 2, b"or": 1, b"not": 1}


class Texts(threading.Thread):
    """Writes texts all the time, also while the broker is away; `words` counts what the broker has acknowledged."""

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        super().__init__(daemon=True)
        self.words: Counter[str] = Counter()
        self._broker = broker
        self._topic = topic
        self._done = threading.Event()
        self._chance = random.Random(7)  # noqa: S311 - any texts will do

    def run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {"bootstrap.servers": self._broker.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        )
        while not self._done.wait(0.05):
            text = self._chance.choices(_WORDS, k=20)
            producer.produce(self._topic, " ".join(text).encode())
            producer.poll(0)
            self.words.update(text)
        assert not producer.flush(_SECONDS)

    def stop(self) -> None:
        self._done.set()
        self.join(_SECONDS)
        assert not self.is_alive()


@contextmanager
def running(command: list[str], log: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a driver until it says that the job is running, and kill it in the end."""
    with log.open("a") as errors:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "elastic", *command], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        assert "running" in process.stdout.readline(), log.read_text()[-3000:]
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def call(*command: str) -> Any:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "elastic", *command, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_until(holds: Any, what: str) -> None:
    ends = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < ends, what
        time.sleep(0.1)


@pytest.mark.long
def test_every_record_is_there_once_through_scaling_a_killed_driver_and_a_killed_broker(
    broker: KafkaBroker, topics: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ELASTIC_SECRET", "a secret of this test")
    texts, numbers, refused = topics
    operator = "tests.spark.numbering:NumberRecordsSlowly"
    command = arguments(broker, topics, tmp_path / "store", operator)
    command += ["--conf", f"spark.jars={connector_jars()}", "--set", "stop_seconds=30"]
    log = tmp_path / "driver.log"
    stream = Texts(broker, texts)
    stream.start()
    with running(command, log) as driver:
        wait_until(lambda: call("status")["published_batch"] >= 2, "batches")
        assert not call("scale", "--nodes", "4", "--relax", "--detach", "--tasks-per-node", "1")["is_over"]
        driver.send_signal(signal.SIGKILL)  # in the middle of the migration
        driver.wait(30)
    broker.write(texts, [(None, "y" * 2_000_000)])
    with running(command, log) as driver:
        wait_until(lambda: len(call("status")["nodes"]) >= 2, "nodes")
        if len(call("status")["nodes"]) != 4:
            call("scale", "--nodes", "4", "--relax")
        broker.kill()
        time.sleep(5)
        assert driver.poll() is None
        broker.start()
        call("scale", "--nodes", "3", "--relax")
        stream.stop()
        total = sum(stream.words.values())
        wait_until(lambda: sum(map(len, numbers_of(broker, numbers).values())) >= total, "all results")
        assert len(call("status")["nodes"]) == 3
        broker.kill()
        driver.send_signal(signal.SIGINT)  # ends in its time though the broker is away
        assert driver.wait(60) == 0
    broker.start()
    assert numbers_of(broker, numbers) == expected(stream.words)
    (described,) = [json.loads(record.value() or b"") for record in broker.read(refused)]
    assert described["key"].startswith("yyy")
    assert os.environ["ELASTIC_SECRET"] not in log.read_text()
