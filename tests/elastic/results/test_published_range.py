"""Polling finds the published batches with few requests."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.results.published_range import PublishedRange


class Batches:
    """Published batches, with counts of the requests."""

    def __init__(self, published: range = range(0)) -> None:
        self.published = set(published)
        self.probes = 0
        self.listings = 0
        self.now = 0.0

    def published_range(self) -> PublishedRange:
        return PublishedRange(self._is_published, self._list_ranges, lambda: self.now)

    def _is_published(self, batch: int) -> bool:
        self.probes += 1
        return batch in self.published

    def _list_ranges(self) -> list[range]:
        self.listings += 1
        return [range(batch, batch + 1) for batch in self.published]


def test_before_the_first_batch_nothing_is_published() -> None:
    assert Batches().published_range().poll() == range(0)


@pytest.mark.parametrize(("new", "probes"), [(0, 1), (1, 2), (2, 4)])
def test_a_poll_costs_few_probes(new: int, probes: int) -> None:
    batches = Batches(range(100))
    published_range = batches.published_range()
    published_range.poll()
    batches.published |= set(range(100, 100 + new))
    assert published_range.poll() == range(100 + new)
    assert (batches.probes, batches.listings) == (probes, 1)


@given(st.integers(1, 20_000))
def test_catching_up_costs_a_logarithm(new: int) -> None:
    batches = Batches(range(10))
    published_range = batches.published_range()
    published_range.poll()
    batches.published |= set(range(10, 10 + new))
    assert published_range.poll() == range(10 + new)
    assert batches.probes <= 2 * log2(new) + 3
    assert batches.listings == 1


def test_a_reader_that_knows_where_it_was_needs_no_listing() -> None:
    batches = Batches(range(5_000))
    assert batches.published_range().poll(since=4_990)[-1] == 4_999
    assert batches.listings == 0


def test_a_reader_whose_position_has_expired_lists_the_batches() -> None:
    assert Batches(range(50, 60)).published_range().poll(since=10) == range(50, 60)


def test_a_reader_behind_the_retention_notices_within_seconds() -> None:
    batches = Batches(range(10))
    published_range = batches.published_range()
    published_range.poll()
    batches.published = set(range(500, 510))
    assert published_range.poll() == range(10)  # for all it knows, batch 10 is still to come
    batches.now = 11.0
    assert published_range.poll() == range(500, 510)


def test_rechecking_costs_one_more_probe_every_ten_seconds() -> None:
    batches = Batches(range(10))
    published_range = batches.published_range()
    published_range.poll()
    for second in range(100):
        batches.now = float(second)
        published_range.poll()
    assert batches.probes <= 100 + 10
    assert batches.listings == 1


def test_a_batch_that_was_published_late_below_the_range_is_skipped() -> None:
    batches = Batches(range(50, 60))
    batches.published.add(7)
    assert batches.published_range().poll() == range(50, 60)


@given(st.lists(st.tuples(st.sampled_from(["publish", "expire", "poll", "publish here"]), st.integers(1, 40))))
def test_a_poll_always_ends_at_the_newest_batch(steps: list[tuple[str, int]]) -> None:
    batches = Batches()
    published_range = batches.published_range()
    oldest = newest = 0
    for what, count in steps:
        batches.now += 60  # so that every poll rechecks
        if what == "publish":
            batches.published |= set(range(newest, newest + count))
            newest += count
        elif what == "publish here":
            published_range.poll()
            batches.published.add(newest)
            published_range.note_published(newest)
            newest += 1
        elif what == "expire":
            oldest = max(oldest, newest - count)
            batches.published = {batch for batch in batches.published if batch >= oldest}
        else:
            found = published_range.poll()
            assert found.stop == newest
            assert found.start <= oldest
            assert published_range.known == found
            assert published_range.refresh() == range(oldest, newest)
