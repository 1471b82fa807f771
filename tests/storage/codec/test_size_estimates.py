"""Hints for memory budgets: near the truth where it is cheap to know, never an error."""

import numpy as np
import pyarrow as pa
import pytest

from storage.codec import Json, estimate_encoded_size, read_header
from tests.storage.codec.objects import KEY, SECRET, Visit, packed


class Window:
    """A user's state with a large array inside."""

    def __init__(self) -> None:
        self.sums = np.ones(50_000)
        self.names = [f"name-{index:06}" for index in range(20_000)]


@pytest.mark.parametrize(
    "value",
    [
        pa.table({"word": ["word"] * 50_000, "count": list(range(50_000))}),
        {"a": np.ones(50_000), "b": np.ones((10, 10))},
        {f"user-{index:06}": index for index in range(50_000)},
        {index: float(index) for index in range(50_000)},
        Json(list(range(50_000))),
        bytes(50_000),
        np.ones(50_000).data,
    ],
    ids=["arrow", "numpy", "text mapping", "number mapping", "json", "bytes", "memoryview"],
)
def test_the_estimate_is_near_the_size_before_compression(value: object) -> None:
    raw = read_header(packed(value), key=KEY, secret=SECRET).parts["state"].raw_size
    assert 0.75 * raw < estimate_encoded_size(value) < 1.25 * raw


@pytest.mark.parametrize(
    "value",
    [
        [f"name-{index:06}" for index in range(20_000)],
        {index: [index, index + 1] for index in range(20_000)},
        [Visit(f"/page-{index}", index / 7) for index in range(20_000)],
        Window(),
    ],
    ids=["list", "dict of lists", "objects", "object with an array"],
)
def test_the_estimate_of_a_pickle_is_within_a_factor_of_ten_and_not_too_small(value: object) -> None:
    raw = read_header(packed(value), key=KEY, secret=SECRET).parts["state"].raw_size
    assert 0.9 * raw < estimate_encoded_size(value) < 10 * raw


@pytest.mark.parametrize("value", [{}, [], None, 1, "", b"", int, len, np.zeros(0), pa.table({})], ids=repr)
def test_small_and_empty_values_have_a_small_estimate(value: object) -> None:
    assert 0 <= estimate_encoded_size(value) < 2_000


def test_a_value_that_contains_itself_has_an_estimate() -> None:
    knot: list[object] = [1]
    knot.append(knot)
    assert 0 < estimate_encoded_size(knot) < 2_000
