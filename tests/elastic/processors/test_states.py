"""Value, list and map state: what a processor reads is what it wrote, on whatever node."""

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import ArrayType, IntegerType, MapType, StringType, StructField, StructType

from tests.elastic.processors.samples import COUNTED, CountAbove, Processor, World, in_order, readings

MakeWorld = Callable[..., World]
KEYS = ("0", "1")
FIRST = readings(("0", 123), ("0", 46), ("1", 146), ("1", 346))
SECOND = readings(("0", 123), ("0", 223), ("0", 323), ("1", 246), ("1", 6))


def test_a_value_is_kept_from_batch_to_batch(world: MakeWorld, form: str) -> None:
    run = world(CountAbove(form), COUNTED)
    assert run.run(FIRST) == [{"id": "0", "n": 2, "violations": 1}, {"id": "1", "n": 2, "violations": 2}]
    assert run.run(SECOND, KEYS) == [{"id": "0", "n": 3, "violations": 4}, {"id": "1", "n": 2, "violations": 3}]
    assert run.state("0", "violations") == {"count": 4}
    assert run.run(readings(("0", 1), ("2", 500)), KEYS) == [
        {"id": "0", "n": 1, "violations": 4},
        {"id": "2", "n": 1, "violations": 1},
    ]


class ReadOnly(Processor):
    """Reads a value that nobody writes."""

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", "count int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        list(rows)
        yield self.emit(id=key[0], found=str((self.value.exists(), self.value.get())))


def test_a_value_that_was_never_written_is_none(world: MakeWorld, form: str) -> None:
    run = world(ReadOnly(form), "id string, found string")
    for _ in range(2):
        assert run.run(readings(("0", 1)), KEYS) == [{"id": "0", "found": "(False, None)"}]
    assert run.state("0", "value") is None


class Commands(Processor):
    """Does what the rows say, one after the other."""

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", "n int")
        self.list = handle.getListState("list", StructType([StructField("text", StringType())]))
        self.map = handle.getMapState("map", "name string", StructType([StructField("n", IntegerType())]))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for command in self.values(rows, "command"):
            yield self.emit(id=key[0], result=f"{command}: {getattr(self, command)()}")

    def value_exists(self) -> Any:
        return self.value.exists()

    def value_set(self) -> Any:
        return self.value.update((42,))

    def value_get(self) -> Any:
        return self.value.get()

    def value_clear(self) -> Any:
        return self.value.clear()

    def list_exists(self) -> Any:
        return self.list.exists()

    def list_append(self) -> Any:
        return self.list.appendValue(("a",)), self.list.appendValue(("b",))

    def list_append_list(self) -> Any:
        return self.list.appendList([("c",), ("d",)])

    def list_put(self) -> Any:
        return self.list.put([("z",), ("y",)])

    def list_get(self) -> Any:
        return list(self.list.get())

    def list_clear(self) -> Any:
        return self.list.clear()

    def map_exists(self) -> Any:
        return self.map.exists()

    def map_fill(self) -> Any:
        return [self.map.updateValue((name,), (n,)) for n, name in enumerate("xyz")]

    def map_change(self) -> Any:
        return self.map.updateValue(("x",), (7,)), self.map.getValue(("x",))

    def map_look(self) -> Any:
        return self.map.getValue(("y",)), self.map.containsKey(("y",)), self.map.containsKey(("q",))

    def map_all(self) -> Any:
        return list(self.map.keys()), list(self.map.values()), list(self.map.iterator())

    def map_remove(self) -> Any:
        return self.map.removeKey(("y",)), self.map.removeKey(("unknown",))

    def map_remove_all(self) -> Any:
        return [self.map.removeKey(name) for name in list(self.map.keys())]

    def map_clear(self) -> Any:
        return self.map.clear()


STEPS = [
    ("value_exists", False),
    ("value_set", None),
    ("value_exists", True),
    ("value_get", (42,)),
    ("value_clear", None),
    ("value_clear", None),
    ("value_exists", False),
    ("value_get", None),
    ("list_exists", False),
    ("list_get", []),
    ("list_append", (None, None)),
    ("list_exists", True),
    ("list_append_list", None),
    ("list_get", [("a",), ("b",), ("c",), ("d",)]),
    ("list_put", None),
    ("list_get", [("z",), ("y",)]),
    ("list_clear", None),
    ("list_exists", False),
    ("map_exists", False),
    ("map_fill", [None] * 3),
    ("map_exists", True),
    ("map_all", ([("x",), ("y",), ("z",)], [(0,), (1,), (2,)], [(("x",), (0,)), (("y",), (1,)), (("z",), (2,))])),
    ("map_change", (None, Row(n=7))),
    ("map_look", (Row(n=1), True, False)),
    ("map_remove", (None, None)),
    ("map_look", (None, False, False)),
    ("map_all", ([("x",), ("z",)], [(7,), (2,)], [(("x",), (7,)), (("z",), (2,))])),
    ("map_remove_all", [None] * 2),
    ("map_exists", False),
    ("map_fill", [None] * 3),
    ("map_clear", None),
    ("map_exists", False),
]


def test_every_method_of_every_state_works_within_a_batch(form: str, world: MakeWorld) -> None:
    run = world(Commands(form), "id string, result string", schema="id string, command string")
    rows = [{"id": "k", "command": command} for command, _ in STEPS]
    expected = [{"id": "k", "result": f"{command}: {result}"} for command, result in STEPS]
    assert run.tester.run([rows]) == expected
    assert run.tester.tester.state("k") is None


def test_every_method_of_every_state_works_across_batches(form: str, world: MakeWorld) -> None:
    run = world(Commands(form), "id string, result string", schema="id string, command string")
    for command, result in STEPS:
        assert run.run([{"id": "k", "command": command}], ["k"]) == [{"id": "k", "result": f"{command}: {result}"}]


class LongLists(Processor):
    """Appends to a list while it reads it."""

    def init(self, handle: Any) -> None:
        self.list = handle.getListState("numbers", "n int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        list(rows)
        before = []
        for (number,) in self.list.get():
            before.append(number)
            if len(before) <= 10:
                self.list.appendValue((1_000,))
        self.list.appendList([(number,) for number in range(len(before), len(before) + 90)])
        yield self.emit(id=key[0], before=len(before), after=len(list(self.list.get())))


def test_a_list_may_be_changed_while_it_is_read(world: MakeWorld, form: str) -> None:
    run = world(LongLists(form), "id string, before long, after long")
    assert run.run(FIRST) == [{"id": key, "before": 0, "after": 90} for key in KEYS]
    assert run.run(SECOND, KEYS) == [{"id": key, "before": 90, "after": 190} for key in KEYS]
    assert run.run(FIRST, KEYS) == [{"id": key, "before": 190, "after": 290} for key in KEYS]


class Nested(Processor):
    """States of arrays, maps and structs; changes what it reads, which must not change the state."""

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", StructType([StructField("all", ArrayType(IntegerType()))]))
        self.list = handle.getListState("list", "a array<int>, s struct<x: int, y: string>")
        nested = MapType(StringType(), MapType(StringType(), IntegerType()))
        self.map = handle.getMapState("map", "name string, kinds array<int>", StructType([StructField("m", nested)]))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        temperatures = self.values(rows, "temperature")
        known = self.value.get()
        numbers = [] if known is None else known[0]
        numbers += temperatures
        self.value.update((numbers,))
        numbers.append(-1)
        self.list.appendValue((temperatures, {"x": len(temperatures), "y": "z"}))
        place = ("n", [1, 2])
        inner = self.map.getValue(place)
        inner = {"e": {}} if inner is None else inner[0]
        inner["e"][str(len(inner["e"]))] = sum(temperatures)
        self.map.updateValue(place, (inner,))
        structs = [(list(array), struct.x, struct.y) for array, struct in self.list.get()]
        yield self.emit(id=key[0], all=str((self.value.get(), structs, dict(self.map.iterator().__next__()[1:][0][0]))))


def test_arrays_maps_and_structs_are_values_not_references(world: MakeWorld, form: str) -> None:
    run = world(Nested(form), "id string, all string")
    assert run.run(readings(("0", 1), ("0", 2))) == [
        {"id": "0", "all": "(([1, 2],), [([1, 2], 2, 'z')], {'e': {'0': 3}})"}
    ]
    assert run.run(readings(("0", 5)), ["0"]) == [
        {"id": "0", "all": "(([1, 2, 5],), [([1, 2], 2, 'z'), ([5], 1, 'z')], {'e': {'0': 3, '1': 5}})"}
    ]


class LargeValues(Processor):
    """Keeps half a megabyte in each kind of state."""

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", "text string")
        self.list = handle.getListState("list", "text string")
        self.map = handle.getMapState("map", "name string", "text string")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        list(rows)
        text = "a" * (512 * 1024)
        self.value.update((text,))
        self.list.put([(text,), (text + "b",)])
        self.list.appendValue((text + "c",))
        self.map.updateValue(("k",), (text,))
        lengths = [len(self.value.get()[0]), *(len(entry) for (entry,) in self.list.get())]
        yield self.emit(id=key[0], lengths=str([*lengths, len(self.map.getValue(("k",))[0])]))


def test_large_values_are_kept(world: MakeWorld, form: str) -> None:
    run = world(LargeValues(form), "id string, lengths string")
    lengths = str([524288, 524288, 524289, 524289, 524288])
    for _ in range(2):
        assert run.run(FIRST, KEYS) == [{"id": key, "lengths": lengths} for key in KEYS]


class TwoKeys(Processor):
    """Adds up by a key of two columns."""

    def init(self, handle: Any) -> None:
        self.sum = handle.getValueState("sum", "total int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        total = sum(self.values(rows, "temperature")) + (self.sum.get() or (0,))[0]
        self.sum.update((total,))
        yield self.emit(id1=key[0], id2=key[1], value=str(total))


def test_key_columns_may_be_apart_and_of_different_types(world: MakeWorld, form: str) -> None:
    run = world(
        TwoKeys(form),
        "id1 string, id2 int, value string",
        key=("id1", "id2"),
        schema="id1 string, temperature int, id2 int",
    )
    rows = [{"id1": a, "id2": b, "temperature": t} for a, b, t in (("0", 1, 123), ("0", 1, 46), ("1", 2, 146))]
    keys = [("0", 1), ("1", 2)]
    first = [{"id1": "0", "id2": 1, "value": "169"}, {"id1": "1", "id2": 2, "value": "146"}]
    assert run.run(rows, keys) == first
    assert run.run(rows, keys) == in_order(
        [{"id1": "0", "id2": 1, "value": "338"}, {"id1": "1", "id2": 2, "value": "292"}]
    )


def test_null_is_a_key_like_any_other(world: MakeWorld, form: str) -> None:
    run = world(CountAbove(form), COUNTED)
    assert run.run(readings((None, 200), ("a", 1))) == in_order(
        [{"id": None, "n": 1, "violations": 1}, {"id": "a", "n": 1, "violations": 0}]
    )
    assert run.run(readings((None, 300), (None, 5)), ["a"]) == [{"id": None, "n": 2, "violations": 2}]


class TopTwo(Processor):
    """Keeps the two largest scores."""

    def init(self, handle: Any) -> None:
        self.top = handle.getListState("top", "double")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        scores = [score for (score,) in self.top.get()] + self.values(rows, "score")
        best = sorted(scores, reverse=True)[:2]
        self.top.put([(score,) for score in best])
        for score in best:
            yield self.emit(id=key[0], score=score)


def test_a_list_can_be_replaced_by_the_best(world: MakeWorld, form: str) -> None:
    run = world(TopTwo(form), "id string, score double", schema="id string, score double")
    rows = [{"id": key, "score": score} for key, score in (("a", 2.0), ("a", 3.0), ("a", 1.0), ("b", 9.5))]
    assert run.run(rows) == in_order([{"id": "a", "score": 3.0}, {"id": "a", "score": 2.0}, {"id": "b", "score": 9.5}])
    assert run.run([{"id": "a", "score": 2.5}], ["a", "b"]) == [{"id": "a", "score": 2.5}, {"id": "a", "score": 3.0}]
    assert run.state("a", "top") == [{"value": 3.0}, {"value": 2.5}]
    assert run.state("nobody", "top") is None


class Words(Processor):
    """Counts words, in a map."""

    def init(self, handle: Any) -> None:
        self.counts = handle.getMapState("counts", "word string", "n int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for word in self.values(rows, "word"):
            count = (self.counts.getValue((word,)) or (0,))[0] + 1
            self.counts.updateValue((word,), (count,))
            yield self.emit(id=key[0], word=word, n=count)


def test_a_map_counts_within_and_across_batches(world: MakeWorld, form: str) -> None:
    run = world(Words(form), "id string, word string, n int", schema="id string, word string")
    rows = [{"id": "u", "word": word} for word in ("hello", "world", "hello")]
    assert run.run(rows) == in_order(
        [{"id": "u", "word": w, "n": n} for w, n in (("hello", 1), ("world", 1), ("hello", 2))]
    )
    assert run.run([{"id": "u", "word": "hello"}], ["u"]) == [{"id": "u", "word": "hello", "n": 3}]
    assert run.state("u", "counts") == [
        {"key": {"word": "hello"}, "value": {"n": 3}},
        {"key": {"word": "world"}, "value": {"n": 1}},
    ]
