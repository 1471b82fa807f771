"""Codecs "json", "bytes" and "pickle", and which values go where."""

import threading
from collections import deque
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from storage import errors
from storage.codec import CODECS, Json, pack, unpack
from tests.storage.codec.objects import KEY, SECRET, VALUES, Visit, codec_of, packed, round_trip

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
COMPRESSIONS = st.sampled_from(["auto", "none", "lz4", "zstd"])
PICKLED: st.SearchStrategy[Any] = st.recursive(
    SCALARS | st.binary() | st.builds(Visit, st.text(), st.floats(allow_nan=False)),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.lists(inner, max_size=3).map(deque),
    max_leaves=8,
)


def test_the_codecs_are_tried_in_order() -> None:
    assert list(CODECS) == list(VALUES)
    assert [codec_of(value) for value in VALUES.values()] == list(VALUES)


@given(DOCUMENTS, COMPRESSIONS)
def test_a_document_is_decoded_without_its_wrapper(document: Any, compression: str) -> None:
    assert round_trip(Json(document), compression) == document


@pytest.mark.parametrize("document", [(1, 2), {1: "a"}, float("nan"), {"a": {1}}, {"a": b"b"}], ids=repr)
def test_a_document_that_json_would_change_is_refused(document: Any) -> None:
    with pytest.raises(errors.UnstorableState, match=r"json_documents\.Json, cannot become bytes"):
        packed(Json(document))


@given(st.binary(), COMPRESSIONS)
def test_bytes_keep_their_type(data: bytes, compression: str) -> None:
    for kind in (bytes, bytearray, memoryview):
        back = round_trip(kind(data), compression)
        assert codec_of(kind(data)) == "bytes"
        assert (type(back), bytes(back)) == (kind, data)


def test_any_memoryview_is_decoded_flat_and_read_only() -> None:
    grid = np.arange(12, dtype=np.int32).reshape(3, 4)
    for view in (grid.data, grid[:, ::2].data, grid.data[::2]):
        back = round_trip(view)
        assert (back.format, back.readonly, back.tobytes()) == ("B", True, view.tobytes())


@given(PICKLED, COMPRESSIONS)
def test_any_other_value_is_decoded_equal(value: Any, compression: str) -> None:
    assert round_trip(value, compression) == value


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("length", [10, 100_000])
def test_arrays_inside_a_users_object_can_be_written_to_again(length: int, compression: str) -> None:
    frozen = np.arange(length)
    frozen.flags.writeable = False
    value = [np.arange(length), np.asfortranarray(np.ones((length, 2))), frozen]
    first, second, third = round_trip(value, compression)
    first += 1
    assert first[0] == 1
    assert second.flags.f_contiguous
    assert third.tolist() == frozen.tolist()


def test_functions_and_local_classes_can_be_stored() -> None:
    class Local:
        def twice(self, number: int) -> int:
            return 2 * number

    assert round_trip([Local()])[0].twice(4) == 8
    assert round_trip(lambda number: number + 1)(1) == 2


class Unwilling:
    def __reduce__(self) -> str:
        raise KeyError("not today")


@pytest.mark.parametrize("inside", [threading.Lock(), (number for number in range(3)), Unwilling()], ids=type)
def test_a_state_that_cannot_be_pickled_is_named_with_what_to_do(inside: object) -> None:
    with pytest.raises(errors.UnstorableState) as caught:
        pack({"pending": [], "state": {"inside": inside}}, key=KEY, secret=SECRET)
    assert (caught.value.key, caught.value.part, caught.value.kind) == (KEY, "state", "builtins.dict")
    assert f"part 'state' of {KEY!r}, a builtins.dict, cannot become bytes: " in str(caught.value)
    assert str(caught.value).endswith("give its class __getstate__ and __setstate__.")


def test_a_state_whose_class_is_gone_is_not_called_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed([Visit("/", 1.0)])
    monkeypatch.delattr("tests.storage.codec.objects.Visit")
    parts = unpack(data, key=KEY, secret=SECRET).parts
    with pytest.raises(errors.UnloadableState, match=r"part 'state'.*AttributeError.*same application code") as caught:
        parts["state"]
    assert not isinstance(caught.value, errors.BadObject)
