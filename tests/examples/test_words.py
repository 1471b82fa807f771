"""Texts are reduced to the words of the miner, in canonical form."""

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from elastic.errors import InvalidSetting
from examples.frequent_patterns.miner import split_words
from examples.frequent_patterns.words import STOP_WORDS, Vocabulary

TWEET = "@user Don't you LOVE flight delays?! I don\u2019t. Flight 42 &amp; more: http://t.co/x #delays \U0001f600"
# Letters whose lower case is one letter everywhere, digits, and all that stands between words.
texts = st.text("abcABC\u00e4\u00c4\u0436\u041612'\u2019 \t\n_-.,#@&;:/!\u4e2d\U0001f600", max_size=40)


def to_canonical(vocabulary: Vocabulary, *given: str | None) -> list[str | None]:
    found: list[str | None] = vocabulary.to_canonical(pa.array(given, pa.string())).to_pylist()
    return found


def test_links_mentions_and_case_are_ignored_and_words_are_sorted() -> None:
    assert to_canonical(Vocabulary(), TWEET) == ["42 delays flight love"]
    assert to_canonical(Vocabulary(stop_words=()), TWEET) == ["42 delays dont flight love more you"]


def test_a_text_without_relevant_words_is_null() -> None:
    assert to_canonical(Vocabulary(), "the and", None, "", "?!", "storm") == [None, None, None, None, "storm"]


def test_with_a_dictionary_only_its_words_are_relevant() -> None:
    assert to_canonical(Vocabulary(dictionary=["flight", "storm"]), TWEET, "apache storm") == ["flight", "storm"]


def test_only_the_first_different_words_of_a_text_are_relevant() -> None:
    assert to_canonical(Vocabulary(max_words=2), "zebra zebra apple mango", "one") == ["apple zebra", None]


def test_a_text_must_have_at_least_one_word() -> None:
    with pytest.raises(InvalidSetting, match="max_words"):
        Vocabulary(max_words=0)


def test_stop_words_are_written_as_they_are_looked_for() -> None:
    assert all(word == word.lower() and word.isalpha() for word in STOP_WORDS)


@given(
    st.lists(texts, max_size=8), st.integers(1, 4), st.none() | st.sets(st.sampled_from(["ab", "aa", "\u0436\u0436"]))
)
def test_words_are_those_of_the_miner(given: list[str], most: int, dictionary: set[str] | None) -> None:
    vocabulary = Vocabulary(most, stop_words=["bc", "\u00e4\u00e4"], dictionary=dictionary)
    expected = [" ".join(split_words(text, vocabulary)) or None for text in given]
    assert to_canonical(vocabulary, *given) == expected
    assert to_canonical(vocabulary, *(text for text in expected if text)) == [text for text in expected if text]
