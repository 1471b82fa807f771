"""Matchings decompose traffic without a rest and without waste; networkx is the oracle."""

from collections import Counter
from itertools import combinations

import hypothesis.strategies as st
import networkx as nx
from hypothesis import given

from migration.schedule.decomposition import _augment, matchings
from migration.schedule.transfers import Pair
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
    edges = {pair: (("sends", pair[0]), ("receives", pair[1])) for pair in traffic}
    graph = nx.Graph(edges.values())
    for matching in matchings(traffic):
        assert nx.is_matching(graph, {edges[pair] for pair in matching.shares})


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


@brisk
@given(st.sets(st.tuples(st.integers(0, 7), st.integers(8, 15)), max_size=40))
def test_augmenting_paths_lead_to_a_matching_of_the_largest_size(edges: set[tuple[int, int]]) -> None:
    graph, partner = nx.Graph(sorted(edges)), dict[int, int]()
    graph.add_nodes_from(range(16))
    matched = [sender for sender in range(8) if _augment(graph, partner, sender)]
    assert len(matched) == len(nx.bipartite.hopcroft_karp_matching(graph, range(8))) // 2
    assert nx.is_matching(graph, {(sender, partner[sender]) for sender in matched})


def test_three_partners_in_turn_make_a_latin_square() -> None:
    traffic = {(sender, receiver): 5 for sender in "abc" for receiver in "xyz"}
    turns = list(matchings(traffic))
    assert [turn.weight for turn in turns] == [5, 5, 5]
    assert [len(turn.shares) for turn in turns] == [3, 3, 3]
