"""Texts become the words that the miner would see, in one form."""

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from elastic.errors import InvalidSetting
from examples.frequent_patterns.miner import words_of
from examples.frequent_patterns.words import STOP_WORDS, Vocabulary

TWEET = "@user Don't you LOVE flight delays?! I don\u2019t. Flight 42 &amp; more: http://t.co/x #delays \U0001f600"
# Letters whose lower case is one letter everywhere, digits, and all that stands between words.
texts = st.text("abcABC\u00e4\u00c4\u0436\u041612'\u2019 \t\n_-.,#@&;:/!\u4e2d\U0001f600", max_size=40)


def canonical(vocabulary: Vocabulary, *given: str | None) -> list[str | None]:
    found: list[str | None] = vocabulary.canonical(pa.array(given, pa.string())).to_pylist()
    return found


def test_links_mentions_and_case_do_not_count_and_words_are_in_order() -> None:
    assert canonical(Vocabulary(), TWEET) == ["42 delays flight love"]
    assert canonical(Vocabulary(stop_words=()), TWEET) == ["42 delays dont flight love more you"]


def test_a_text_without_words_that_count_is_null() -> None:
    assert canonical(Vocabulary(), "the and", None, "", "?!", "storm") == [None, None, None, None, "storm"]


def test_only_words_of_the_dictionary_count_if_there_is_one() -> None:
    assert canonical(Vocabulary(dictionary=["flight", "storm"]), TWEET, "apache storm") == ["flight", "storm"]


def test_only_the_first_different_words_of_a_text_count() -> None:
    assert canonical(Vocabulary(most_words=2), "zebra zebra apple mango", "one") == ["apple zebra", None]


def test_a_text_must_have_room_for_a_word() -> None:
    with pytest.raises(InvalidSetting, match="most_words"):
        Vocabulary(most_words=0)


def test_stop_words_are_written_as_they_are_looked_for() -> None:
    assert all(word == word.lower() and word.isalpha() for word in STOP_WORDS)


@given(
    st.lists(texts, max_size=8), st.integers(1, 4), st.none() | st.sets(st.sampled_from(["ab", "aa", "\u0436\u0436"]))
)
def test_words_are_those_of_the_miner(given: list[str], most: int, dictionary: set[str] | None) -> None:
    vocabulary = Vocabulary(most, stop_words=["bc", "\u00e4\u00e4"], dictionary=dictionary)
    expected = [" ".join(words_of(text, vocabulary)) or None for text in given]
    assert canonical(vocabulary, *given) == expected
    assert canonical(vocabulary, *(text for text in expected if text)) == [text for text in expected if text]
