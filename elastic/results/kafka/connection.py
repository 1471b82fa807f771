"""Connections to Kafka: the configuration of its client, its errors, and the positions of sinks.

The position of a sink is a record in a compacted topic, written in the transaction that writes the batch. Offsets of a
consumer group would do the same until the broker expires them, a week after the job has stopped; a compacted topic
keeps the newest record of a key for ever.
"""

import json
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from elastic import threads
from elastic.errors import InvalidSetting
from elastic.results.kafka.transactions import Transactions, code_of, create_timeout_error

_RESERVED = frozenset(
    ("bootstrap.servers", "transactional.id", "enable.idempotence", "acks", "isolation.level", "enable.partition.eof")
)
_POLL_SECONDS = 0.2
_POLL_RECORDS = 1_000
_QUEUE_KILOBYTES = 64 << 10  # of records that wait for the broker: enough to keep it busy
_FRAMING_BYTES = 1_000  # of a batch of records, generously
_BATCH_BYTES = 1_000_000
_LEAST_BYTES = 1_000  # the least that the client accepts as a limit
_UNKNOWN_TOPIC_MS = 5_000  # until a record for a topic that does not exist has failed
_ROLL_MS = 3_600_000  # a segment is compacted after it is closed, so that opening a sink reads an hour of positions
_POSITIONS_CONFIG = {"cleanup.policy": "compact", "segment.ms": str(_ROLL_MS), "min.cleanable.dirty.ratio": "0.1"}

_Answer = TypeVar("_Answer")

_logger = logging.getLogger(__name__)


def read_config(path: str) -> dict[str, str]:
    """Read the properties of a client from a file with lines NAME=VALUE."""
    try:
        lines = [line.strip() for line in Path(path).read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as cause:
        raise InvalidSetting("config", path, f"it cannot be read: {cause}") from cause
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    if any(not equals for _, equals, _ in pairs):
        raise InvalidSetting("config", path, "write one property per line, as NAME=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}


class Connection:
    """The calls of a sink to a Kafka cluster. Each ends within `timeout_seconds`, or raises `KafkaException`."""

    def __init__(self, bootstrap_servers: str, config: Mapping[str, Any], timeout_seconds: float) -> None:
        if taken := sorted(_RESERVED & config.keys()):
            raise InvalidSetting("config", taken[0], "the sink sets it itself; leave it out")
        self.bootstrap_servers = bootstrap_servers
        self._timeout = timeout_seconds
        self._config = {"logger": _logger, **config, "bootstrap.servers": bootstrap_servers}
        try:
            Producer(self._config)  # connects in the background, if at all; checks all names and values
        except KafkaException as cause:
            # Its text names the property, and the value only where that is none of a few choices.
            raise InvalidSetting("config", sorted(config), cause.args[0].str()) from None

    def begin(self, transactional_id: str, transaction_seconds: float, limit: int, *, one_by_one: bool) -> Transactions:
        """Register a producer; this aborts what an earlier one of the same id has left open, and fences it off.

        `limit` is the number of bytes that a record may have: the client refuses a larger one at once, and sends no
        batch of records that is larger.
        """
        transactions = Transactions(
            {
                # As Kafka's own client, so that a key has the same partition whichever program writes it.
                "partitioner": "murmur2_random",
                "queue.buffering.max.kbytes": _QUEUE_KILOBYTES,
                "linger.ms": 5,
                "compression.type": "zstd",
                "topic.metadata.propagation.max.ms": _UNKNOWN_TOPIC_MS,
                **self._config,
                "message.max.bytes": max(_LEAST_BYTES, limit),
                "batch.size": max(_LEAST_BYTES, min(_BATCH_BYTES, limit - _FRAMING_BYTES)),
                "transactional.id": transactional_id,
                "transaction.timeout.ms": int(transaction_seconds * 1_000),
            },
            self._timeout,
            one_by_one=one_by_one,
        )
        transactions.register()
        return transactions

    def has_topic(self, name: str) -> bool:
        """Return whether the topic exists; does not create it, even if the broker creates topics automatically."""
        return name in self._admin.list_topics(timeout=self._timeout).topics

    def read_limit(self, topic: str) -> int | None:
        """Return the number of bytes that a record of the topic may have; None if the broker does not tell."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        described = self._admin.describe_configs([resource], request_timeout=self._timeout)
        try:
            return int(self._wait_for(described[resource])["max.message.bytes"].value)
        except (KafkaException, KeyError, TypeError) as cause:
            _logger.info("topic %s: the limit of its records is unknown: %s", topic, cause)
            return None

    def create_positions(self, topic: str) -> None:
        """Create the topic of positions unless it exists; refuse one that would forget them."""
        if self.has_topic(topic):
            resource = ConfigResource(ResourceType.TOPIC, topic)
            found = self._wait_for(self._admin.describe_configs([resource], request_timeout=self._timeout)[resource])
            if (policy := found["cleanup.policy"].value) != "compact":
                raise InvalidSetting(
                    "positions",
                    topic,
                    f"its cleanup.policy is {policy!r}, which forgets positions; set it to 'compact'",
                )
            return
        new = NewTopic(topic, num_partitions=1, replication_factor=-1, config=_POSITIONS_CONFIG)
        try:
            self._wait_for(self._admin.create_topics([new], request_timeout=self._timeout)[topic])
        except KafkaException as error:
            if code_of(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def read_position(self, topic: str, key: str) -> dict[str, Any] | None:
        """Return the newest committed position of that key, None if there is none.

        Reads the whole topic. Waits for transactions of other sinks that are open on it, because a position behind
        them is not readable yet, and an older one would deliver batches twice.
        """
        ends = self._list_ends(topic)
        consumer = Consumer(
            {
                **self._config,
                "group.id": key,  # the client asks for one; nothing is committed for it
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        found: dict[str, Any] | None = None
        deadline = threads.monotonic() + self._timeout
        with closing(consumer):
            consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
            while ends:
                if threads.monotonic() > deadline:
                    raise create_timeout_error(
                        f"topic {topic!r} could not be read to its end within {self._timeout:g} s"
                    )
                for record in consumer.consume(_POLL_RECORDS, _POLL_SECONDS):
                    error = record.error()
                    if error is None and record.key() == key.encode():
                        position = json.loads(record.value() or b"{}")
                        found = position if found is None or position["next"] > found["next"] else found
                    elif error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                        partition, offset = record.partition() or 0, record.offset() or 0
                        if offset >= ends.get(partition, 0):
                            ends.pop(partition, None)
                    elif error is not None:
                        raise KafkaException(error)
        return found

    def _list_ends(self, topic: str) -> dict[int, int]:
        """Return the ends of the partitions, with records of open transactions."""
        partitions = self._admin.list_topics(topic, self._timeout).topics[topic].partitions
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}  # type: ignore[no-untyped-call]
        answers = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=self._timeout
        )
        return {asked_for.partition: self._wait_for(answer).offset for asked_for, answer in answers.items()}

    def _wait_for(self, answer: "Future[_Answer]") -> _Answer:
        try:
            return answer.result(self._timeout)
        except TimeoutError:
            raise create_timeout_error(f"no answer within {self._timeout:g} s") from None

    @cached_property
    def _admin(self) -> AdminClient:
        """Kept for the life of the sink: the answers of one that is gone never arrive."""
        return AdminClient(self._config)
