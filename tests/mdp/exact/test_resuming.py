"""A projection that is killed goes on where it was, and comes to the same values."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mdp.errors import InvalidProjection
from mdp.exact import project_exactly
from mdp.exact.iteration import Progress
from mdp.process import DecisionProcess
from mdp.shelf import MemoryShelf, Shelf, StoreShelf
from mdp.workers import Here, ignored
from storage import Secret
from tests.mdp.instances import skewed, walk

PROCESS = DecisionProcess(skewed(20, seed=9), walk(3, 6), tau=0.4)
SECRET = Secret.of("a secret of this test")


class Killed(Exception):
    pass


class Mortal(Here):
    """Dies after some items."""

    def __init__(self, lives: int) -> None:
        super().__init__(1)
        self.lives = lives

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], on_done: Callable[[int], None] = ignored
    ) -> list[Any]:
        def mortal(item: Any) -> Any:
            if self.lives == 0:
                raise Killed
            self.lives -= 1
            return function(item)

        return super().map(mortal, items, on_done)


def shelves() -> list[Shelf]:
    return [MemoryShelf(), StoreShelf("memory:resuming", "here", SECRET)]


@pytest.mark.parametrize("lives", [0, 1, 3, 5, 7])
@pytest.mark.parametrize("shelf", shelves(), ids=["memory", "store"])
def test_a_projection_killed_anywhere_comes_to_the_same_values(
    lives: int, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdp.exact.blocks.BLOCK_STATES", 100)
    shelf.clear()
    whole = project_exactly(PROCESS)
    with pytest.raises(Killed):
        project_exactly(PROCESS, shelf=shelf, workers=Mortal(lives))
    seen: list[Progress] = []
    resumed = project_exactly(PROCESS, shelf=shelf, resume=True, progress=seen.append)

    assert resumed.sweeps == whole.sweeps
    assert all((resumed.values[nodes] == whole.values[nodes]).all() for nodes in PROCESS.nodes)
    assert (seen[0].sweep, seen[0].done) > (1, 0) or lives == 0
    assert shelf.names() == set()


def test_a_checkpoint_of_another_question_is_refused_and_left_alone() -> None:
    shelf = MemoryShelf()
    with pytest.raises(Killed):
        project_exactly(PROCESS, shelf=shelf, workers=Mortal(2))
    left = shelf.names()
    other = DecisionProcess(PROCESS.workload, PROCESS.matrix, tau=0.5)

    with pytest.raises(InvalidProjection, match="another workload"):
        project_exactly(other, shelf=shelf, resume=True)
    assert shelf.names() == left
    assert project_exactly(other, shelf=shelf).sweeps > 0  # without resume it begins anew


def test_there_may_be_nothing_to_resume() -> None:
    assert project_exactly(PROCESS, shelf=MemoryShelf(), resume=True).relative_error <= 0.002
