"""Random moves, nasty on purpose, and how busy they make the nodes."""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from itertools import permutations

import hypothesis.strategies as st
from hypothesis import settings

from migration.model import Move
from migration.schedule import Transfer

# Many laws, most of them repeated for every schedule: a fifth of the usual examples each keeps the suite in seconds.
brisk = settings(max_examples=max(40, settings().max_examples // 5))

NODES = ("a", "b", "c", "d", "e", "f")
PAIRS = tuple(permutations(NODES, 2))

# Multiples of 1/8 whose sums are exact floats: with ties, zeros, and one that outweighs all others.
exact_sizes = st.one_of(st.just(0.0), st.just(1.0), st.integers(0, 80).map(lambda eighths: eighths / 8), st.just(1e6))
any_sizes = st.one_of(exact_sizes, st.floats(0, 1), st.floats(0, 1e300))


@st.composite
def move_lists(
    draw: st.DrawFn, sizes: st.SearchStrategy[float] = any_sizes, min_size: int = 0, most_moves: int = 40
) -> list[Move]:
    """Few pairs, so that many moves are parallel; a node may send and receive; every task of 0..m-1 moves once."""
    pairs = st.sampled_from(draw(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=12)))
    travelling = draw(st.lists(st.tuples(pairs, sizes), min_size=min_size, max_size=most_moves))
    return [Move(task, *pair, size) for task, (pair, size) in enumerate(travelling)]


def tasks_per_direction(moves: Iterable[Move]) -> dict[tuple[str, str], int]:
    """How many tasks every node sends, and how many it receives."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for move in moves:
        counts["sends", move.source] += 1
        counts["receives", move.target] += 1
    return counts


def size_per_direction(transfers: Iterable[Transfer]) -> dict[tuple[str, str], Fraction]:
    """How much every node sends, and how much it receives, without any rounding."""
    sizes: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for transfer in transfers:
        part = Fraction(transfer.stop) - Fraction(transfer.start)
        sizes["sends", transfer.move.source] += part
        sizes["receives", transfer.move.target] += part
    return sizes
