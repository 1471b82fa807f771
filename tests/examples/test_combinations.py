"""Combinations equal those of itertools, compiled or not."""

import itertools
from types import ModuleType

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from examples.frequent_patterns import combinations as module
from examples.frequent_patterns import kernels
from examples.frequent_patterns.combinations import combinations, one_word_less

word_sets = st.lists(
    st.sets(st.sampled_from(["a", "bb", "ccc", "\u0436", "\u4e2d\u4e2d", "zz"]), min_size=1), max_size=5
)


def choose(words: set[str], shortest: int, longest: int) -> list[str]:
    sizes = range(shortest, longest + 1)
    return [" ".join(some) for size in sizes for some in itertools.combinations(sorted(words), size)]


@given(word_sets, st.integers(1, 3), st.integers(0, 4))
def test_patterns_are_all_combinations_of_words(texts: list[set[str]], shortest: int, more: int) -> None:
    column = pa.chunked_array([pa.array([" ".join(sorted(words)) for words in texts], pa.string())])
    patterns, origins = combinations(column, shortest, shortest + more)
    expected = [choose(words, shortest, shortest + more) for words in texts]
    assert patterns.to_pylist() == list(itertools.chain(*expected))
    assert origins.tolist() == [number for number, made in enumerate(expected) for _ in made]
    patterns.validate(full=True)


@given(word_sets)
def test_one_word_less_is_every_part_that_lacks_one_word(texts: list[set[str]]) -> None:
    patterns = pa.array([" ".join(sorted(words)) for words in texts], pa.string())
    parts, origins = one_word_less(patterns, 6)
    got = sorted(zip(origins.tolist(), parts.to_pylist(), strict=True))
    lacking = [(number, sorted(words - {word})) for number, words in enumerate(texts) for word in words]
    assert got == sorted((number, " ".join(left)) for number, left in lacking if left)


def test_a_column_that_is_part_of_another_gives_its_own_patterns() -> None:
    column = pa.array(["x y", "a b", "c"]).slice(1, 2)
    patterns, _ = combinations(column, 1, 2)
    assert patterns.to_pylist() == ["a", "b", "a b", "c"]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module with its loops as they are written, as where numba is not installed."""
    for name in ("_choices", "_starts", "_put", "_advance", "measure", "fill"):
        compiled = getattr(kernels, name)
        monkeypatch.setattr(kernels, name, getattr(compiled, "py_func", compiled))
    return module


def test_uncompiled_loops_give_the_same_patterns(plain: ModuleType) -> None:
    chance = np.random.default_rng(7)
    texts = [" ".join(sorted({f"w{number}" for number in chance.integers(0, 20, 9)})) for _ in range(20)]
    patterns, _ = plain.combinations(pa.array(texts), 1, 4)
    assert patterns.to_pylist() == [pattern for text in texts for pattern in choose(set(text.split()), 1, 4)]
