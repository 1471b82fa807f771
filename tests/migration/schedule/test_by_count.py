"""Unit phases: one transfer at a time for every node and direction, in the fewest phases there can be."""

import random
from itertools import pairwise

import networkx as nx
from hypothesis import given

from migration.model import Move
from migration.schedule import Transfer, schedule_by_count
from migration.schedule.transfers import group_by_pair
from tests.migration.schedule.move_lists import brisk, move_lists, tasks_per_direction


@brisk
@given(move_lists())
def test_no_node_sends_or_receives_twice_in_a_phase(moves: list[Move]) -> None:
    for phase in schedule_by_count(moves):
        assert set(tasks_per_direction(phase.moves).values()) == {1}


@brisk
@given(move_lists())
def test_there_are_as_many_phases_as_the_busiest_node_has_moves(moves: list[Move]) -> None:
    assert len(list(schedule_by_count(moves))) == max(tasks_per_direction(moves).values(), default=0)


@brisk
@given(move_lists())
def test_phases_colour_the_transfer_graph_with_as_many_colours_as_its_largest_degree(moves: list[Move]) -> None:
    """König's theorem, by networkx: moves that share a sender or a receiver are neighbours in the line graph."""
    graph: nx.MultiGraph[tuple[str, str]] = nx.MultiGraph()
    for move in moves:
        graph.add_edge(("sends", move.source), ("receives", move.target), move.task)
    colours = {move.task: colour for colour, phase in enumerate(schedule_by_count(moves)) for move in phase.moves}
    assert all(colours[one[2]] != colours[other[2]] for one, other in nx.line_graph(graph).edges())
    assert len(set(colours.values())) == max((degree for _, degree in graph.degree), default=0)


@brisk
@given(move_lists())
def test_every_move_travels_whole(moves: list[Move]) -> None:
    for phase in schedule_by_count(moves):
        assert phase.transfers == tuple(Transfer(move, 0, move.size) for move in phase.moves)


@brisk
@given(move_lists())
def test_a_pair_sends_its_larger_states_first(moves: list[Move]) -> None:
    sent = [move for phase in schedule_by_count(moves) for move in phase.moves]
    for queue in group_by_pair(sent).values():
        assert all(before.size >= after.size for before, after in pairwise(queue))


def test_a_ring_of_nodes_moves_in_one_phase() -> None:
    moves = [Move(0, "a", "b", 1.0), Move(1, "b", "c", 2.0), Move(2, "c", "a", 3.0)]
    (phase,) = schedule_by_count(moves)
    assert set(phase.moves) == set(moves)
    assert phase.duration == 3


def test_five_thousand_moves_over_a_hundred_nodes_reach_the_lower_bound() -> None:
    rng = random.Random(7)  # noqa: S311
    pairs = [rng.sample([f"node-{index}" for index in range(100)], 2) for _ in range(5_000)]
    moves = [Move(task, sender, receiver, rng.random()) for task, (sender, receiver) in enumerate(pairs)]
    made = list(schedule_by_count(moves))
    assert len(made) == max(tasks_per_direction(moves).values())
    assert sorted(move for phase in made for move in phase.moves) == moves
