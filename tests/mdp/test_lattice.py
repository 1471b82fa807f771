"""All balanced partitions, numbered."""

import pickle
from math import comb
from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from mdp.errors import UnknownPartition
from mdp.kernels.paths import advance
from mdp.lattice import Lattice
from mdp.process import DecisionProcess
from migration import Workload
from migration.planning.balance import cap, earliest_starts
from migration.planning.partitions import all_partitions
from tests.mdp.instances import edge_numbers, processes, skewed


def lattice_of(workload: Workload, nodes: int, tau: float) -> Lattice:
    return Lattice(nodes, earliest_starts(workload, cap(workload, nodes, tau)))


@given(processes())
def test_ranks_number_all_balanced_partitions_in_lexicographic_order(process: DecisionProcess) -> None:
    for nodes in process.nodes:
        lattice = Lattice(nodes, process.first[nodes])
        rows = [tuple(row) for row in all_partitions(process.first[nodes], nodes).tolist()]
        assert lattice.count == len(rows)
        assert [lattice.partition(rank) for rank in range(lattice.count)] == rows == sorted(rows)
        assert [lattice.rank(row) for row in rows] == list(range(len(rows)))


@given(processes())
def test_the_next_path_is_the_next_rank_and_tells_what_changed_first(process: DecisionProcess) -> None:
    for nodes in process.nodes:
        lattice = Lattice(nodes, process.first[nodes])
        path = np.array(lattice.partition(0))
        for rank in range(1, lattice.count):
            before = path.copy()
            changed = advance(path, lattice.low, lattice.high, lattice.furthest)
            assert tuple(path) == lattice.partition(rank)
            assert (path[:changed] == before[:changed]).all()
            assert path[changed] == before[changed] + 1
        assert advance(path, lattice.low, lattice.high, lattice.furthest) == 0


@given(processes(), st.randoms())
def test_the_edges_of_a_path_add_up_to_its_rank(process: DecisionProcess, chance: Random) -> None:
    for nodes in process.nodes:
        lattice = Lattice(nodes, process.first[nodes])
        rank = chance.randrange(lattice.count)
        assert lattice.edge_rank[edge_numbers(lattice, lattice.partition(rank))].sum() == rank


def test_four_million_partitions_take_the_memory_of_their_edges() -> None:
    lattice = lattice_of(Workload.uniform(64), 15, 0.2)

    # Ways to write 64 as a sum of 15 numbers of 1 to 5, by inclusion and exclusion.
    assert lattice.count == sum((-1) ** j * comb(15, j) * comb(63 - 5 * j, 14) for j in range(10)) == 3_877_575
    assert lattice.edges < 2_000
    assert lattice.rank(lattice.partition(1_234_567)) == 1_234_567


def test_what_is_no_balanced_partition_has_no_rank() -> None:
    lattice = lattice_of(skewed(12, seed=1), 3, 0.2)

    for wrong in [(0, 1, 2, 12), (0, 4, 12), (0, 4, 8, 11), (1, 4, 8, 12), (0, 8, 4, 12)]:
        assert wrong not in lattice
        with pytest.raises(UnknownPartition, match="no balanced partition"):
            lattice.rank(wrong)
    with pytest.raises(UnknownPartition, match="rank"):
        lattice.partition(lattice.count)


def test_a_lattice_can_be_sent_to_other_processes() -> None:
    lattice = lattice_of(skewed(12, seed=1), 3, 0.2)
    other = pickle.loads(pickle.dumps(lattice))  # noqa: S301

    assert other.count == lattice.count
    assert other.partition(1) == lattice.partition(1)
