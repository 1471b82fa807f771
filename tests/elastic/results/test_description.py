"""The description of a job survives its store, and is signed."""

import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from elastic.errors import UnserializableOperator
from elastic.results import Description, StageDescription, choose_stage, read_result_schemas
from elastic.results.errors import UnknownJob, UnknownStage
from storage.codec import Secret
from storage.errors import ForeignObject
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Store

INPUT = pa.schema([("word", pa.string()), ("at", pa.timestamp("us", "UTC"))])
OUTPUT = pa.schema([pa.field("word", pa.string(), nullable=False), ("count", pa.int64())])


def describe(operator: Any = None) -> Description:
    return Description(
        (
            StageDescription("split", ("word",), operator, INPUT),
            StageDescription("count", ("word", "at"), {"any": "object"}, INPUT, OUTPUT),
        ),
        tasks=64,
        version="1+2",
    )


def test_a_description_survives_a_round_trip(any_store: Store, secret: Secret) -> None:
    describe(operator=[1, 2]).save(any_store, secret, "job")
    assert Description.load(any_store, secret, "job") == describe(operator=[1, 2])


def test_an_operator_that_no_module_contains_is_restored(store: MemoryStore, secret: Secret) -> None:
    describe(operator=lambda word: word + "!").save(store, secret, "job")
    assert Description.load(store, secret, "job").stages[0].operator("hello") == "hello!"


class Exploding:
    """Fails when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _explode, ()


def _explode() -> None:
    raise AssertionError("unpickled")


def test_schemas_are_read_without_unpickling_anything(store: MemoryStore, secret: Secret) -> None:
    describe(operator=Exploding()).save(store, secret, "job")
    assert read_result_schemas(store, secret, "job") == {"count": OUTPUT}


def test_a_description_is_replaced_when_the_job_starts_again(store: MemoryStore, secret: Secret) -> None:
    for operator in (1, 2):
        describe(operator).save(store, secret, "job")
    assert Description.load(store, secret, "job").stages[0].operator == 2


def test_a_description_of_another_application_is_refused_and_never_unpickled(store: MemoryStore) -> None:
    describe(operator=Exploding()).save(store, Secret.random(), "job")
    with pytest.raises(ForeignObject):
        Description.load(store, Secret.random(), "job")


def test_an_operator_that_cannot_be_pickled_is_named(store: MemoryStore, secret: Secret) -> None:
    with pytest.raises(UnserializableOperator, match="'split'"):
        describe(operator=threading.Lock()).save(store, secret, "job")


def test_an_unknown_job_is_named(store: MemoryStore, secret: Secret) -> None:
    with pytest.raises(UnknownJob) as missing:
        read_result_schemas(store, secret, "wrod-count")
    assert missing.value.name == "wrod-count"


def test_the_only_stage_need_not_be_named() -> None:
    schemas = {"count": OUTPUT}
    assert choose_stage(schemas, None) == choose_stage(schemas, "count") == "count"
    assert describe().stage_number("count") == 1
    for choose in (
        lambda: choose_stage(schemas, "split"),
        lambda: choose_stage({"a": OUTPUT, "b": OUTPUT}, None),
        lambda: describe().stage_number(None),
        lambda: describe().stage_number("sort"),
    ):
        with pytest.raises(UnknownStage):
            choose()


def test_a_partial_stage_does_not_count_as_one_that_must_be_named() -> None:
    first, second = describe().stages
    for grouping in ("partial", "partial:head"):
        assert Description((replace(first, grouping=grouping), second), 8, "1").stage_number(None) == 1
    assert Description((replace(first, grouping="partial"), second), 8, "1").stage_number(first.name) == 0


def test_stage_names_must_be_unique() -> None:
    stage = StageDescription("count", (), None, INPUT)
    for stages in ((), (stage, stage)):
        with pytest.raises(ValueError, match="a unique name"):
            Description(stages, 64, "1")
