"""Results as records of a Kafka topic, exactly once for readers with `isolation.level=read_committed`.

A batch is one transaction: its records, and the position of the sink behind it. `open` registers the transactional id,
which ends what an earlier producer left open and fences it off, and only then reads the position. Hence whatever
crashes, a batch is either readable and before the position, or neither. The same is done after every failure: a commit
whose answer got lost has happened or not, and the position tells which.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa

from elastic import threads
from elastic.errors import InvalidSetting, MissingPackage
from elastic.results.errors import RecordRefused, SinkTakenOver, SinkUnavailable
from elastic.results.kafka.records import Record, describe, encode

if TYPE_CHECKING:
    from confluent_kafka import KafkaException

    from elastic.results.kafka.connection import Connection
    from elastic.results.kafka.transactions import Transactions

_POSITIONS = "elastic-sink-positions"
_MARK_EVERY = 100  # batches without rows: few transactions, and far below the retention of the log
_LIMIT_BYTES = 1_000_000  # of a record where the broker does not tell, as in Kafka's clients
_URL_OPTIONS = ("key", "quarantine", "config", "positions")

_logger = logging.getLogger(__name__)


class KafkaSink:
    """Writes to a topic, which must exist.

    `key` names the columns whose values are the record's key, so that their rows stay in order in one partition. A
    record that Kafka refuses ends the sink with `RecordRefused`; with `quarantine`, its description goes to the topic
    of that name, in the same transaction. `config` holds properties of the client, by librdkafka's names, or names a
    file with them. `positions` is the compacted topic of positions, which sinks share. A call waits for the broker for
    at most `timeout_seconds`; the broker aborts a transaction that is open for longer than `transaction_seconds`.
    """

    needs_log: ClassVar = True
    needs_writer: ClassVar = True

    def __init__(
        self,
        topic: str,
        bootstrap_servers: str,
        *,
        key: str | Sequence[str] = (),
        quarantine: str | None = None,
        config: str | Mapping[str, Any] | None = None,
        positions: str = _POSITIONS,
        timeout_seconds: float = 20.0,
        transaction_seconds: float = 120.0,
    ) -> None:
        for name, seconds in (("timeout_seconds", timeout_seconds), ("transaction_seconds", transaction_seconds)):
            if not seconds > 0:
                raise InvalidSetting(name, seconds, "it must be above zero")
        self._topic = topic
        self._key = (key,) if isinstance(key, str) else tuple(key)
        self._quarantine = quarantine
        self._positions = positions
        self._transaction_seconds = transaction_seconds
        self._connection = _connect(bootstrap_servers, config, timeout_seconds)
        self._transactions: Transactions | None = None  # None: not registered, or failed since
        self._id = ""
        self._next = 0  # first batch that the sink does not have
        self._recorded = 0  # the same as its position says; batches without rows may be in between

    @classmethod
    def from_url(cls, url: str, **settings: Any) -> "KafkaSink":
        """Return the sink of a URL such as //127.0.0.1:9092/topic?key=word&quarantine=refused."""
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise InvalidSetting("sink", "kafka://...@...", "URLs are printed; name a file: ?config=/run/secrets/kafka")
        topic, options = parts.path.strip("/"), parse_qs(parts.query)
        if not parts.netloc or not topic or "/" in topic:
            raise InvalidSetting("sink", f"kafka:{url}", "name broker and topic, as in kafka://127.0.0.1:9092/topic")
        if unknown := sorted(options.keys() - set(_URL_OPTIONS)):
            known = ", ".join(_URL_OPTIONS)
            raise InvalidSetting("sink", f"kafka:{url}", f"there is no option {unknown[0]!r}; there are {known}")
        single = {name: values[-1] for name, values in options.items() if name != "key"}
        return cls(topic, parts.netloc, **{"key": options.get("key", ()), **single, **settings})

    def open(self, results: str) -> int | None:
        """Fence off earlier producers of these results, and return the position that they left."""
        self._id = f"elastic-{results}-{self._topic}"
        self._register()
        return self._next or None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        if self._transactions is None:
            self._register()
        if batch < self._next:
            return
        if rows.num_rows or batch + 1 - self._recorded >= _MARK_EVERY:
            self._write(batch, rows)
        self._next = batch + 1

    def close(self) -> None:
        if self._transactions is not None and self._next > self._recorded:
            try:
                self._commit(self._next - 1, ())
            except (SinkUnavailable, SinkTakenOver) as cause:
                _logger.info("%r closes with its position behind some batches without rows: %s", self, cause)
        self._transactions = None

    def __repr__(self) -> str:
        return f"KafkaSink({self._topic!r}, {self._connection.bootstrap_servers!r}, next={self._next})"

    def _register(self, *, one_by_one: bool = False) -> None:
        """Begin anew: fence off, then learn what is committed."""
        from confluent_kafka import KafkaException

        self._transactions = None
        connection = self._connection
        try:
            for topic in (self._topic, self._quarantine):
                if topic is not None and not connection.has_topic(topic):
                    raise SinkUnavailable(repr(self), f"there is no topic {topic!r}; create it")
            connection.create_positions(self._positions)
            limit = connection.read_limit(self._topic) or _LIMIT_BYTES
            begun = connection.begin(self._id, self._transaction_seconds, limit, one_by_one=one_by_one)
            position = connection.read_position(self._positions, self._id)
        except KafkaException as error:
            raise self._explain(error, None) from error
        self._next = self._recorded = 0 if position is None else int(position["next"])
        self._transactions = begun

    def _write(self, batch: int, rows: pa.Table) -> None:
        """Commit a batch. What Kafka refuses ends it with `RecordRefused`, or is replaced by its description."""
        from elastic.results.kafka.transactions import RefusedRecords

        refused: dict[int, str] = {}
        while True:
            try:
                self._commit(batch, self._make_records(batch, rows, refused))
                break
            except RefusedRecords as found:
                if found.are_in_doubt:  # a record is refused, and with it those that were sent beside it
                    self._register(one_by_one=True)
                else:
                    self._check_refusals(batch, rows, refused, found.reasons)
                    refused |= found.reasons
        if refused:
            _logger.warning(
                "Kafka refused %d records of batch %d; topic %r describes them", len(refused), batch, self._quarantine
            )
            self._transactions = None  # the next batch is sent at full speed again

    def _make_records(self, batch: int, rows: pa.Table, refused: Mapping[int, str]) -> Iterator[Record]:
        for number, record in enumerate(encode(rows, self._topic, self._key)):
            if number in refused:
                yield Record(
                    self._quarantine, record.key and record.key[:100], describe(record, batch, number, refused[number])
                )
            else:
                yield record

    def _check_refusals(
        self, batch: int, rows: pa.Table, refused: Mapping[int, str], reasons: Mapping[int, str]
    ) -> None:
        """Raise for the first record that is not to be described, or whose description is refused as well."""
        for number, record in enumerate(self._make_records(batch, rows, refused)):
            if number in reasons and (self._quarantine is None or number in refused):
                size = len(record.key or b"") + len(record.value or b"")
                raise RecordRefused(record.topic, batch, number, record.key, size, reasons[number])

    def _commit(self, batch: int, records: Iterable[Record]) -> None:
        from confluent_kafka import KafkaException

        if self._transactions is None:
            raise SinkUnavailable(repr(self), "it is not registered")
        position = json.dumps({"next": batch + 1, "topic": self._topic}).encode()
        began = threads.monotonic()
        try:
            self._transactions.write(records, Record(self._positions, self._id.encode(), position))
        except KafkaException as error:
            self._transactions = None  # the next delivery registers anew, and learns what is committed
            raise self._explain(error, batch, threads.monotonic() - began) from error
        self._recorded = batch + 1

    def _explain(self, error: "KafkaException", batch: int | None, seconds: float = 0.0) -> Exception:
        """Return the error of this package: to be repeated, unless a later run has fenced this one off."""
        from elastic.results.kafka.transactions import FENCED, code_of

        if code_of(error) not in FENCED:
            return SinkUnavailable(repr(self), error.args[0].str())
        if seconds < self._transaction_seconds:
            return SinkTakenOver(repr(self), batch)
        why = f"batch {batch} took {seconds:.0f} s, longer than transaction_seconds={self._transaction_seconds:g}"
        return SinkUnavailable(repr(self), f"{why}; raise it")


def _connect(bootstrap_servers: str, config: str | Mapping[str, Any] | None, timeout_seconds: float) -> "Connection":
    try:
        from elastic.results.kafka.connection import Connection, read_config
    except ModuleNotFoundError as missing:
        if missing.name != "confluent_kafka":
            raise
        raise MissingPackage("the Kafka sink", "confluent-kafka", "kafka") from missing
    return Connection(
        bootstrap_servers, read_config(config) if isinstance(config, str) else config or {}, timeout_seconds
    )
