"""Heavy keys: exact while they fit, with bounded error afterwards."""

import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from elastic.errors import InvalidJob, MissingPackage
from elastic.routing import HeavyHitters, HeavyKey


def test_few_keys_are_counted_exactly() -> None:
    heavy = HeavyHitters(10)
    heavy.update([pa.array(["a", "b", "a"]), pa.array([1, 1, None])])
    heavy.update([pa.chunked_array([["a"], ["c"]]), pa.array([1, 2])])
    assert heavy.top(1) == [HeavyKey(("a", 1), 2, 2)]
    assert [found.key for found in heavy.top(10)] == [("a", 1), ("a", None), ("b", 1), ("c", 2)]
    assert heavy.rows == 5


def test_the_heavy_keys_of_many_are_found_within_their_bounds() -> None:
    keys = np.random.default_rng(3).zipf(1.3, 100_000) % 50_000
    heavy, exact = HeavyHitters(20), Counter(keys.tolist())
    for part in np.array_split(keys, 10):
        heavy.update([pa.array(part)])
    top = heavy.top(20)
    assert [found.key[0] for found in top[:5]] == [key for key, _ in exact.most_common(5)]
    for found in top:
        assert found.lower_bound <= exact[found.key[0]] <= found.estimate
        assert found.estimate - found.lower_bound <= heavy.rows / heavy.size / 2


def test_no_rows_have_no_heavy_keys() -> None:
    heavy = HeavyHitters(5)
    heavy.update([pa.array([], pa.int64())])
    assert (heavy.top(5), heavy.rows) == ([], 0)


def test_tracking_no_keys_is_refused() -> None:
    with pytest.raises(InvalidJob, match="at least one"):
        HeavyHitters(0)


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(MissingPackage, match=r"spark-elastic\[sketches\]"):
        HeavyHitters(5)
