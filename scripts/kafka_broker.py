"""A Kafka broker on loopback for tests and development, from the jars that `scripts/kafka.sh` has downloaded."""

import argparse
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from scripts.server_process import ServerProcess, find_free_port

_CALL_SECONDS = 15.0
_CLUSTER_ID = "c3BhcmstZWxhc3RpYzEyMw"
# Tests start it often and give it little to do: compile quickly, and collect garbage with one thread.
_JAVA = ("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


def find_kafka() -> Path | None:
    """Return the folder of the broker's jars, or None if they are not downloaded."""
    folder = Path(_ask_script("--path"))
    return folder if folder.is_dir() else None


def connector_jars() -> str:
    """Return the jars of Spark's connector, as `spark.jars` wants them."""
    return _ask_script("--jars")


def connector_package() -> str:
    """Return the Maven coordinates of Spark's connector, as `spark.jars.packages` wants them."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_ask_script('--connector')}"


class KafkaBroker(ServerProcess):
    """A broker that is its own controller and keeps its records when it is restarted."""

    start_seconds = 60.0  # it takes 3 s, and several times that beside other tests
    stop_seconds = 15.0

    def __init__(self, jars: Path, folder: Path, port: int = 0, **properties: str) -> None:
        self._data = folder / "data"
        self._java = [_find_java(), *_JAVA, "-cp", f"{jars}/*"]
        self.port = port or find_free_port()
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self._properties = folder / "server.properties"
        super().__init__([*self._java, "kafka.Kafka", str(self._properties)], folder / "broker.log")
        settings = {**self._settings(find_free_port()), **properties}
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def __repr__(self) -> str:
        return f"<Kafka at {self.bootstrap_servers}>"

    def start(self) -> None:
        """Start the broker and wait until it responds; format its folder first if it is new."""
        if not (self._data / "meta.properties").exists():
            self._format()
        super().start()

    def create_topic(self, name: str, partitions: int = 2, **config: str) -> str:
        """Create a topic and return its name; names in `config` have underscores for dots."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        properties = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=properties)
        admin.create_topics([topic])[name].result(_CALL_SECONDS)
        return name

    def write(self, topic: str, records: Iterable[tuple[str | None, str]]) -> None:
        """Append records, given by key and value."""
        limit = {"message.max.bytes": 100_000_000}  # the topic's own limit decides
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "log_level": 0, **limit})
        for key, value in records:
            producer.produce(topic, value.encode(), None if key is None else key.encode())
            producer.poll(0)
        if producer.flush(_CALL_SECONDS):
            raise TimeoutError(f"timed out after {_CALL_SECONDS:g} s writing to topic {topic}.")

    def read(self, topic: str, *, committed: bool = True) -> list[Message]:
        """Return all records of a topic as a new consumer sees them, by partition and offset."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "reader",
                "log_level": 0,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        with closing(consumer):
            unread = set(consumer.list_topics(topic, _CALL_SECONDS).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, number, 0) for number in unread])
            records: list[Message] = []
            deadline = time.monotonic() + _CALL_SECONDS
            while unread:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"timed out after {_CALL_SECONDS:g} s reading topic {topic}.")
                for record in consumer.consume(1_000, 0.2):
                    error = record.error()
                    if error is None:
                        records.append(record)
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's own name
                        unread.discard(record.partition() or 0)
        return sorted(records, key=lambda record: (record.partition() or 0, record.offset() or 0))

    def _format(self) -> None:
        command = [*self._java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._properties)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=self.start_seconds)  # noqa: S603
        if done.returncode:
            raise RuntimeError(f"{self} could not format its folder: {(done.stdout + done.stderr)[-2000:]}")

    def _is_ready(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.5):
            admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
            with suppress(KafkaException):
                return bool(admin.list_topics(timeout=2).brokers)
        return False

    def _settings(self, controller_port: int) -> Mapping[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self._data),
            # One broker has one replica of everything, and few partitions of its own topics start faster.
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # The controller takes a killed broker for alive until its session ends, and its next life waits for that.
            "broker.heartbeat.interval.ms": "300",
            "broker.session.timeout.ms": "1500",
            "auto.create.topics.enable": "false",  # a misspelt topic is an error
        }


@contextmanager
def kafka_broker(folder: Path, port: int = 0, **properties: str) -> Iterator[KafkaBroker]:
    """Run a broker with its records in `folder`; `scripts/kafka.sh` must have downloaded it."""
    jars = find_kafka()
    if jars is None:
        raise RuntimeError("Kafka is not downloaded. Run scripts/kafka.sh, which needs Java and Maven.")
    with KafkaBroker(jars, folder, port, **properties).running() as broker:
        yield broker


def _ask_script(option: str) -> str:
    script = Path(__file__).with_name("kafka.sh")
    result = subprocess.run(["bash", script, option], capture_output=True, text=True, check=True)  # noqa: S603, S607
    return result.stdout.strip()


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a broker until Ctrl-C, and print how to use it."""
    parser = argparse.ArgumentParser(prog="python -m scripts.kafka_broker", description=main.__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="topics to create, with two partitions each")
    parser.add_argument("--folder", type=Path, help="folder of the records; by default temporary")
    parser.add_argument("--port", type=int, default=9092, help="by default 9092; 0 is a free one")
    options = parser.parse_args(arguments)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM stops the broker too
    with tempfile.TemporaryDirectory(prefix="kafka-") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with kafka_broker(folder, options.port) as broker:
                for topic in options.topics:
                    broker.create_topic(topic)
                _print_usage(broker, options.topics)
                signal.pause()
        except KeyboardInterrupt:
            print("stopped.")


def _print_usage(broker: KafkaBroker, topics: Sequence[str]) -> None:
    names = f", with the topics {' and '.join(topics)}" if topics else ""
    print(f"Kafka is running at {broker.bootstrap_servers}{names}; stop it with Ctrl-C.\n")
    print("Spark reads and writes it with the package", connector_package())
    print(f"or, without a download: --conf spark.jars={connector_jars()}", flush=True)


if __name__ == "__main__":
    main()
