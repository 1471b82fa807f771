"""Matchings take traffic apart without a rest and without waste."""

from collections import Counter
from itertools import combinations

import hypothesis.strategies as st
from hypothesis import given

from migration.schedule.decomposition import matchings
from migration.schedule.traffic import Pair
from tests.migration.schedule.move_lists import NODES, brisk

amounts = st.one_of(st.integers(0, 3), st.integers(0, 1000), st.integers(0, 2**59))
nodes = st.sampled_from(NODES)
traffics = st.dictionaries(st.tuples(nodes, nodes), amounts, max_size=25)


def busiest(traffic: dict[Pair, int]) -> int:
    sums: Counter[tuple[str, str]] = Counter()
    for (sender, receiver), amount in traffic.items():
        sums["sends", sender] += amount
        sums["receives", receiver] += amount
    return max(sums.values(), default=0)


@brisk
@given(traffics)
def test_the_shares_add_up_to_the_traffic(traffic: dict[Pair, int]) -> None:
    shares: Counter[Pair] = Counter()
    for matching in matchings(traffic):
        shares.update(matching.shares)
    assert shares == {pair: amount for pair, amount in traffic.items() if amount}


@brisk
@given(traffics)
def test_the_weights_add_up_to_the_busiest_direction_of_the_busiest_node(traffic: dict[Pair, int]) -> None:
    assert sum(matching.weight for matching in matchings(traffic)) == busiest(traffic)


@brisk
@given(traffics)
def test_a_matching_gives_every_node_at_most_one_partner_in_each_direction(traffic: dict[Pair, int]) -> None:
    for matching in matchings(traffic):
        for side in zip(*matching.shares, strict=True):
            assert len(set(side)) == len(side)


@brisk
@given(traffics)
def test_every_share_is_sent_within_the_weight(traffic: dict[Pair, int]) -> None:
    for matching in matchings(traffic):
        assert matching.shares
        assert all(0 < share <= matching.weight for share in matching.shares.values())


@brisk
@given(traffics)
def test_there_are_no_more_matchings_than_entries_of_the_padded_matrix(traffic: dict[Pair, int]) -> None:
    order = max((len({pair[side] for pair in traffic}) for side in (0, 1) if traffic), default=0)
    assert len(list(matchings(traffic))) <= max(len(traffic) + 2 * order - 1, 0)


@brisk
@given(traffics)
def test_no_matching_weighs_more_than_twice_an_earlier_one(traffic: dict[Pair, int]) -> None:
    weights = [matching.weight for matching in matchings(traffic)]
    assert all(later <= 2 * earlier for earlier, later in combinations(weights, 2))


def test_three_partners_in_turn_make_a_latin_square() -> None:
    traffic = {(sender, receiver): 5 for sender in "abc" for receiver in "xyz"}
    turns = list(matchings(traffic))
    assert [turn.weight for turn in turns] == [5, 5, 5]
    assert [len(turn.shares) for turn in turns] == [3, 3, 3]
