"""A projection that is killed resumes from its checkpoint and computes the same values."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mdp.array_store import ArrayStore, MemoryArrayStore, ObjectArrayStore
from mdp.errors import InvalidProjection
from mdp.exact import project_exactly
from mdp.process import DecisionProcess
from mdp.progress import SweepProgress, ignore_progress
from mdp.workers import LocalWorkers
from storage import Secret
from tests.mdp.instances import skewed, walk

PROCESS = DecisionProcess(skewed(20, seed=9), walk(3, 6), tau=0.4)
SECRET = Secret.of("a secret of this test")


class Killed(Exception):
    pass


class MortalWorkers(LocalWorkers):
    """Workers that die after some items."""

    def __init__(self, lives: int) -> None:
        super().__init__(1)
        self.lives = lives

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], on_done: Callable[[int], None] = ignore_progress
    ) -> list[Any]:
        def mortal(item: Any) -> Any:
            if self.lives == 0:
                raise Killed
            self.lives -= 1
            return function(item)

        return super().map(mortal, items, on_done)


def array_stores() -> list[ArrayStore]:
    return [MemoryArrayStore(), ObjectArrayStore("memory:resuming", "here", SECRET)]


@pytest.mark.parametrize("lives", [0, 1, 3, 5, 7])
@pytest.mark.parametrize("array_store", array_stores(), ids=["memory", "store"])
def test_a_projection_killed_anywhere_resumes_to_the_same_values(
    lives: int, array_store: ArrayStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdp.exact.sweep.BLOCK_STATES", 100)
    array_store.clear()
    whole = project_exactly(PROCESS)
    with pytest.raises(Killed):
        project_exactly(PROCESS, array_store=array_store, workers=MortalWorkers(lives))
    seen: list[SweepProgress] = []
    resumed = project_exactly(PROCESS, array_store=array_store, resume=True, progress=seen.append)

    assert resumed.sweeps == whole.sweeps
    assert all((resumed.values[nodes] == whole.values[nodes]).all() for nodes in PROCESS.nodes)
    assert (seen[0].sweep, seen[0].done) > (1, 0) or lives == 0
    assert array_store.names() == set()


def test_a_checkpoint_of_another_question_is_refused_and_left_alone() -> None:
    array_store = MemoryArrayStore()
    with pytest.raises(Killed):
        project_exactly(PROCESS, array_store=array_store, workers=MortalWorkers(2))
    left = array_store.names()
    other = DecisionProcess(PROCESS.workload, PROCESS.matrix, tau=0.5)

    with pytest.raises(InvalidProjection, match="another workload"):
        project_exactly(other, array_store=array_store, resume=True)
    assert array_store.names() == left
    assert project_exactly(other, array_store=array_store).sweeps > 0  # without resume it begins anew


def test_there_may_be_nothing_to_resume() -> None:
    assert project_exactly(PROCESS, array_store=MemoryArrayStore(), resume=True).relative_error <= 0.002
