"""Finding out what is published, cheaply."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.results.frontier import Frontier


class Batches:
    """What is published, and how often somebody asked."""

    def __init__(self, there: range = range(0)) -> None:
        self.there = set(there)
        self.looks = 0
        self.listings = 0
        self.now = 0.0

    def frontier(self) -> Frontier:
        return Frontier(self._is_there, self._listed, lambda: self.now)

    def _is_there(self, batch: int) -> bool:
        self.looks += 1
        return batch in self.there

    def _listed(self) -> list[range]:
        self.listings += 1
        return [range(batch, batch + 1) for batch in self.there]


def test_before_the_first_batch_nothing_is_published() -> None:
    assert Batches().frontier().look() == range(0)


@pytest.mark.parametrize(("new", "looks"), [(0, 1), (1, 2), (2, 4)])
def test_a_look_costs_little(new: int, looks: int) -> None:
    batches = Batches(range(100))
    frontier = batches.frontier()
    frontier.look()
    batches.there |= set(range(100, 100 + new))
    assert frontier.look() == range(100 + new)
    assert (batches.looks, batches.listings) == (looks, 1)


@given(st.integers(1, 20_000))
def test_catching_up_costs_a_logarithm(new: int) -> None:
    batches = Batches(range(10))
    frontier = batches.frontier()
    frontier.look()
    batches.there |= set(range(10, 10 + new))
    assert frontier.look() == range(10 + new)
    assert batches.looks <= 2 * log2(new) + 3
    assert batches.listings == 1


def test_a_reader_that_knows_where_it_was_needs_no_listing() -> None:
    batches = Batches(range(5_000))
    assert batches.frontier().look(since=4_990)[-1] == 4_999
    assert batches.listings == 0


def test_a_reader_whose_place_has_expired_lists_what_is_there() -> None:
    assert Batches(range(50, 60)).frontier().look(since=10) == range(50, 60)


def test_a_reader_that_retention_has_overtaken_notices_within_seconds() -> None:
    batches = Batches(range(10))
    frontier = batches.frontier()
    frontier.look()
    batches.there = set(range(500, 510))
    assert frontier.look() == range(10)  # for all it knows, batch 10 is still to come
    batches.now = 11.0
    assert frontier.look() == range(500, 510)


def test_certainty_costs_one_more_look_every_ten_seconds() -> None:
    batches = Batches(range(10))
    frontier = batches.frontier()
    frontier.look()
    for second in range(100):
        batches.now = float(second)
        frontier.look()
    assert batches.looks <= 100 + 10
    assert batches.listings == 1


def test_a_batch_that_was_published_in_sleep_below_the_range_does_not_count() -> None:
    batches = Batches(range(50, 60))
    batches.there.add(7)
    assert batches.frontier().look() == range(50, 60)


@given(st.lists(st.tuples(st.sampled_from(["publish", "expire", "look", "publish here"]), st.integers(1, 40))))
def test_a_look_always_ends_at_the_newest_batch(steps: list[tuple[str, int]]) -> None:
    batches = Batches()
    frontier = batches.frontier()
    oldest = newest = 0
    for what, count in steps:
        batches.now += 60  # so that every look is certain
        if what == "publish":
            batches.there |= set(range(newest, newest + count))
            newest += count
        elif what == "publish here":
            frontier.look()
            batches.there.add(newest)
            frontier.published(newest)
            newest += 1
        elif what == "expire":
            oldest = max(oldest, newest - count)
            batches.there = {batch for batch in batches.there if batch >= oldest}
        else:
            found = frontier.look()
            assert found.stop == newest
            assert found.start <= oldest
            assert frontier.known == found
            assert frontier.look_at_all() == range(oldest, newest)
