"""Work and state sizes: finite, not negative, of one length, and never changed."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migration import InvalidWorkload, Workload
from tests.migration.instances import workloads


@given(st.integers(1, 20).flatmap(workloads))
def test_prefix_sums_weigh_every_interval(workload: Workload) -> None:
    for start in range(workload.tasks):
        for stop in range(start, workload.tasks + 1):
            work = workload.work_prefix[stop] - workload.work_prefix[start]
            assert work == pytest.approx(workload.work[start:stop].sum(), abs=1e-9)
    assert workload.total_state == pytest.approx(workload.state.sum())


@given(st.integers(1, 20).flatmap(workloads))
def test_a_workload_survives_json_and_pickle(workload: Workload) -> None:
    assert Workload.from_json(workload.to_json()) == workload
    copy = pickle.loads(pickle.dumps(workload))  # noqa: S301
    assert copy == workload
    assert hash(copy) == hash(workload)
    assert not copy.work_prefix.flags.writeable


def test_nothing_can_be_changed_afterwards() -> None:
    mine = np.ones(4)
    workload = Workload(mine)
    mine[0] = 9.0
    assert workload.total_work == 4
    for array in (workload.work, workload.state, workload.work_prefix, workload.state_prefix):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0


def test_state_is_like_work_unless_it_is_given() -> None:
    assert Workload([1, 2]).state.tolist() == [1, 2]
    assert Workload([1, 2], [3, 4]) != Workload([1, 2])
    assert Workload([1, 2]) != "a workload"
    assert str(Workload([1, 2], [3, 4])) == "2 tasks, work 3, state 7"


@pytest.mark.parametrize(
    ("work", "state", "word"),
    [
        ([1.0, float("nan")], None, "work of task 1 is nan"),
        ([1.0, -2.0], None, "work of task 1 is -2"),
        ([1.0], [float("inf")], "state of task 0 is inf"),
        ([1.0, 2.0], [1.0], "work has 2 tasks and state has 1"),
        ([], None, "at least one task"),
        ([[1.0]], None, "one number for every task"),
        (["x"], None, "not a list of numbers"),
        (5, None, "not a list of numbers"),
        ([1e308, 1e308], None, "overflows"),
    ],
)
def test_impossible_numbers_are_refused_by_name(work: list[float], state: list[float] | None, word: str) -> None:
    with pytest.raises(InvalidWorkload, match=word):
        Workload(work, state)


@pytest.mark.parametrize("text", ["{", "{}", '{"work": [1]}', '{"work": 1, "state": 1}', "[]"])
def test_a_document_that_is_no_workload_is_refused(text: str) -> None:
    with pytest.raises(InvalidWorkload):
        Workload.from_json(text)
