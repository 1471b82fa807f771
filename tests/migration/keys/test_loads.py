"""Loads of keys are checked once, where they are made."""

import math
import pickle
from typing import Any

import numpy as np
import pytest

from migration import InvalidWorkload, KeyLoads

GOOD: dict[str, Any] = {
    "hashes": [5, -3, 2**63 - 1],
    "home": [0, 1, 1],
    "current": [0, 0, 1],
    "work": [1.0, 2.0, 0.0],
    "size": [4.0, 0.0, 1.0],
}


def test_loads_keep_their_columns_and_count_their_entries() -> None:
    loads = KeyLoads(**GOOD)
    assert (loads.keys, loads.entries, loads.total_work, loads.total_size) == (3, 1, 3.0, 5.0)
    assert [loads.hashes.dtype, loads.home.dtype, loads.work.dtype] == [np.int64, np.int32, np.float64]
    assert str(loads) == "3 keys (1 not at home), work 3, state 5"


def test_keys_are_at_home_and_as_large_as_their_work_unless_stated() -> None:
    loads = KeyLoads([1, 2], [0, 1], None, [3.0, 4.0])
    assert loads.current.tolist() == [0, 1]
    assert loads.size.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("work", [1.0, math.nan, 1.0], "work of key 1 is nan"),
        ("work", [1.0, 1.0, -1.0], r"work of key 2 is -1\.0"),
        ("work", [math.inf, 1.0, 1.0], "work of key 0 is inf"),
        ("work", [1e308, 1e308, 1e308], "the sum of work overflows"),
        ("work", ["a", "b", "c"], "work"),
        ("work", [1.0, 2.0], "work has 2 rows and hashes has 3"),
        ("work", [[1.0, 2.0, 3.0]], r"work has shape \(1, 3\)"),
        ("size", [1.0, math.nan, 1.0], "size of key 1 is nan"),
        ("size", [-0.5, 1.0, 1.0], r"size of key 0 is -0\.5"),
        ("size", None, None),
        ("home", [0, -1, 1], "home of key 1 is -1"),
        ("home", [0.0, 1.0, 1.0], "home has values that int32 cannot hold"),
        ("current", [0, 1, -7], "current of key 2 is -7"),
        ("current", [0, 1, 2**40], "current has values that int32 cannot hold"),
        ("hashes", [1, 2, 1], r"hash 1 is given twice, for keys \[0, 2\]"),
        ("hashes", [1.5, 2.5, 3.5], "hashes has values that int64 cannot hold"),
        ("hashes", [True, False, True], "hashes has values that int64 cannot hold"),
        ("hashes", [2**64, 1, 2], "hashes"),
        ("hashes", 7, "hashes is not a list of numbers"),
    ],
)
def test_bad_columns_are_refused_by_name(column: str, values: Any, message: str | None) -> None:
    if message is None:
        assert KeyLoads(**{**GOOD, column: values}).size.tolist() == GOOD["work"]
        return
    with pytest.raises(InvalidWorkload, match=message):
        KeyLoads(**{**GOOD, column: values})


def test_loads_without_keys_are_refused() -> None:
    with pytest.raises(InvalidWorkload, match="at least one key"):
        KeyLoads([], [], [], [])


def test_a_duplicate_hash_is_found_among_many() -> None:
    hashes = np.random.default_rng(1).permutation(10_000)
    KeyLoads(hashes, np.zeros(10_000, int), None, np.ones(10_000))
    hashes[9_000] = hashes[17]
    with pytest.raises(InvalidWorkload, match=r"given twice, for keys \[17, 9000\]"):
        KeyLoads(hashes, np.zeros(10_000, int), None, np.ones(10_000))


def test_the_callers_arrays_are_copied_unless_they_are_read_only() -> None:
    work, size = np.ones(3), np.ones(3)
    size.setflags(write=False)
    loads = KeyLoads(GOOD["hashes"], GOOD["home"], None, work, size)
    work[0] = 7
    assert loads.work.tolist() == [1, 1, 1]
    assert loads.size is size
    with pytest.raises(ValueError, match="read-only"):
        loads.work[0] = 2


def test_loads_are_equal_by_value_and_survive_pickling() -> None:
    loads = KeyLoads(**GOOD)
    other = pickle.loads(pickle.dumps(loads))  # noqa: S301
    assert other == loads
    assert hash(other) == hash(loads)
    assert not other.work.flags.writeable
    assert loads != KeyLoads(**{**GOOD, "size": [4.0, 0.0, 2.0]})
