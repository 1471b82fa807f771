"""A processor that comes back with other variables, or other schemas of them, finds what it stored."""

from typing import Any

import pytest

from elastic.errors import InvalidStateCall
from elastic.spark.processors.handle import ProcessorHandle
from elastic.spark.processors.variables import Entry


def declare(*variables: tuple[Any, ...], deleted: tuple[str, ...] = ()) -> tuple[ProcessorHandle, list[Any]]:
    handle = ProcessorHandle("Test", "processing")
    states = [getattr(handle, f"get{kind}State")(*arguments) for kind, *arguments in variables]
    for name in deleted:
        handle.deleteIfExists(name)
    handle.end_init()
    return handle, states


def write(*variables: tuple[Any, ...]) -> Entry:
    """Return what a key holds once every variable is written with its last entry."""
    handle, states = declare(*(variable[:-1] for variable in variables))
    handle.enter(None, 0)
    for state, (kind, *_, value) in zip(states, variables, strict=True):
        {"Value": lambda s, v: s.update(v), "List": lambda s, v: s.put(v), "Map": lambda s, v: s.updateValue(*v)}[kind](
            state, value
        )
    return handle.leave()


def read(entry: Entry, *variable: Any) -> Any:
    handle, (state,) = declare(variable)
    handle.enter(entry, 0)
    return (
        list(state.iterator()) if variable[0] == "Map" else list(state.get()) if variable[0] == "List" else state.get()
    )


OLD = ("Value", "state", "id int, name string")
STORED = write((*OLD, (7, "seven")))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("id int, name string", (7, "seven")),
        ("id int, name string, count int, active boolean, score double", (7, "seven", None, None, None)),
        ("id int", (7,)),
        ("name string, id int", ("seven", 7)),
        ("name string, id long", ("seven", 7)),
        ("id double, other string", (7.0, None)),
    ],
)
def test_columns_of_a_value_may_be_added_removed_reordered_and_widened(schema: str, expected: Any) -> None:
    assert read(STORED, "Value", "state", schema) == expected
    assert type(read(STORED, "Value", "state", schema)[0]) is type(expected[0])


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (("Value", "state", "id short, name string"), "stored as int and cannot be read as smallint"),
        (("Value", "state", "id string, name string"), "stored as int and cannot be read as string"),
        (("Value", "state", "id int, name string, n int not null"), "'n' must be nullable"),
        (
            ("List", "state", "id int, name string"),
            "stored as a value without a time to live and now declared as another",
        ),
        (("Value", "state", "id int, name string", 5), "stored as a value without a time to live"),
    ],
)
def test_other_changes_of_a_variable_are_refused(variable: Any, message: str) -> None:
    with pytest.raises(InvalidStateCall, match=message):
        read(STORED, *variable)


def test_lists_and_maps_change_their_columns_too() -> None:
    items = write(("List", "items", "n int", 50, [(1,), (2,)]), ("Map", "map", "k string", "n int", (("a",), (1,))))
    assert read(items, "List", "items", "n long, more string", 50) == [(1, None), (2, None)]
    assert read(items, "Map", "map", "k string", "more string, n int") == [(("a",), (None, 1))]
    with pytest.raises(InvalidStateCall, match="cannot change their schema"):
        read(items, "Map", "map", "k int", "n int")


def test_a_deleted_variable_may_be_declared_as_another() -> None:
    handle, (new,) = declare(("List", "state", "n int"))
    handle.enter(write(), 0)
    handle = ProcessorHandle("Test", "processing")
    handle.deleteIfExists("state")
    new = handle.getListState("state", "n int")
    handle.end_init()
    handle.enter(STORED, 0)
    assert list(new.get()) == []
    new.appendValue((1,))
    changed = handle.leave()
    assert read(changed, "List", "state", "n int") == [(1,)]
    handle.enter(changed, 0)  # deleted before, not now
    assert list(new.get()) == [(1,)]


def test_variables_may_come_and_go_and_a_missing_one_keeps_its_state() -> None:
    entry = write(("Value", "old", "n int", (1,)), ("Value", "kept", "n int", (2,)))
    handle, (new, kept) = declare(("Value", "new", "n int"), ("Value", "kept", "n int"))
    handle.enter(entry, 0)
    assert (new.get(), kept.get()) == (None, (2,))
    new.update((3,))
    changed = handle.leave()
    assert read(changed, "Value", "old", "n int") == (1,)
    assert read(changed, "Value", "new", "n int") == (3,)
    handle, _ = declare(("Value", "kept", "n int"), deleted=("old", "never"))
    handle.enter(changed, 0)
    assert read(handle.leave(), "Value", "old", "n int") is None
