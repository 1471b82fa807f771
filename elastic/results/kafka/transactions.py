"""Records written in one transaction, all or none, with the position of the sink among them."""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from elastic import threads
from elastic.results.kafka.records import Record

_POLL_SECONDS = 0.1
_ANY = -1  # partition: the client chooses
_POSITION = -1  # in place of a record number: the record with the position
_POLL_EVERY = 1_000  # records between two looks for errors

# What a broker or the client says of a single record, which would fail again however often it is sent.
_OF_RECORD = frozenset(
    (
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.POLICY_VIOLATION,
    )
)
# The same where the record itself names its topic or its partition.
_OF_PLACE = frozenset(
    (
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - the client's own names
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    )
)
FENCED = frozenset(
    (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)  # noqa: SLF001
)

_logger = logging.getLogger(__name__)


class RefusedRecords(Exception):  # an outcome inside this package: the sink makes an error of it, or descriptions
    """Some records of a transaction were refused, and the transaction is aborted; reasons by the record's number.

    They `are_in_doubt` if the broker refused them together with others.
    """

    def __init__(self, reasons: dict[int, str], *, are_in_doubt: bool) -> None:
        self.reasons = reasons
        self.are_in_doubt = are_in_doubt
        super().__init__(f"{len(reasons)} records were refused")


class Transactions:
    """Writes transactions with a producer of its own, one after the other; every wait ends after `timeout_seconds`.

    `one_by_one` sends every record alone, so that what the broker says of it is about no other record.
    """

    def __init__(self, config: Mapping[str, Any], timeout_seconds: float, *, one_by_one: bool) -> None:
        alone = {"batch.num.messages": 1} if one_by_one else {}
        # Without a callback the client raises fatal errors in the middle of any call.
        self._producer = Producer({**config, **alone, "delivery.report.only.error": True, "error_cb": self._note_error})
        self._timeout = timeout_seconds
        self._one_by_one = one_by_one
        self._refused: dict[int, str] = {}
        self._in_doubt = False
        self._failure: KafkaError | None = None

    def register(self) -> None:
        """Abort what an earlier producer of this transactional id has left open, and fence it off."""
        self._producer.init_transactions(self._timeout)

    def write(self, records: Iterable[Record], position: Record) -> None:
        """Commit all records and the position, or none and raise `RefusedRecords` or `KafkaException`."""
        self._refused, self._in_doubt, self._failure = {}, False, None
        self._producer.begin_transaction()
        for number, record in enumerate(records):
            self._send(number, record)
            if number % _POLL_EVERY == 0:
                self._producer.poll(0)
        # The position is sent when all else is stored: readers of the topic of positions wait for whatever is open on
        # it, so nothing is open there for longer than a commit takes.
        self._flush()
        if self._refused:
            self._producer.abort_transaction(self._timeout)
            raise RefusedRecords(dict(self._refused), are_in_doubt=self._in_doubt)
        self._send(_POSITION, position)
        self._commit()

    def _flush(self) -> None:
        """Wait until the broker has stored all records, or has refused one, after which it takes no more."""
        deadline = threads.monotonic() + self._timeout
        while self._producer.flush(_POLL_SECONDS) and not self._refused:
            if self._failure is not None:
                break
            if threads.monotonic() > deadline:
                raise create_timeout_error(f"the broker has not stored all records within {self._timeout:g} s")
        if self._failure is not None and not self._refused:
            raise KafkaException(self._failure)

    def _commit(self) -> None:
        self._producer.commit_transaction(self._timeout)

    def _send(self, number: int, record: Record) -> None:
        deadline = threads.monotonic() + self._timeout
        partition = _ANY if record.partition is None else record.partition
        note = partial(self._note_delivery, number, record)
        while True:
            try:
                self._producer.produce(
                    record.topic or "",
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    on_delivery=note,
                    partition=partition,
                )
            except BufferError:
                if threads.monotonic() > deadline:
                    raise create_timeout_error(f"the broker takes no records for {self._timeout:g} s") from None
                self._producer.poll(_POLL_SECONDS)
            except KafkaException as error:
                if not self._note(number, record, error.args[0]):
                    raise
                return
            else:
                return

    def _note_delivery(self, number: int, record: Record, error: KafkaError | None, _: Message | None) -> None:
        if error is None:
            return
        if self._note(number, record, error):
            self._in_doubt = not self._one_by_one
        elif self._failure is None or not self._failure.fatal():
            self._failure = error

    def _note_error(self, error: KafkaError) -> None:
        _logger.info("Kafka's client reports: %s", error.str())
        if error.fatal():
            self._failure = error

    def _note(self, number: int, record: Record, error: KafkaError) -> bool:
        """Note the record as refused if the error is its own; return whether it is."""
        names_place = record.partition is not None or record.names_topic
        is_refused = error.code() in _OF_RECORD or (names_place and error.code() in _OF_PLACE)
        if is_refused:
            self._refused[number] = error.str()
        return is_refused


def create_timeout_error(why: str) -> KafkaException:
    """Return the error of a wait that reached its bound."""
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, why))  # noqa: SLF001 - the client's own name


def code_of(error: KafkaException) -> int:
    """Return the code of an error of the client."""
    found: KafkaError = error.args[0]
    return found.code()
