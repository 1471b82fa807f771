"""What a projection keeps of a sweep: all that the sweep began with, and the choices of every block that is done.

A projection that was killed goes on with the blocks of the latest sweep that are missing. What a sweep begins with is
written before any of its blocks, so all its blocks saw the same values, whoever computed them.
"""

import hashlib
import json
from collections.abc import Iterable

import numpy as np

from mdp.errors import InvalidProjection
from mdp.exact.blocks import Block
from mdp.exact.guide import Guide
from mdp.exact.sweep import Choices, Sweep
from mdp.process import DecisionProcess
from mdp.shelf import Shelf


def fingerprint(process: DecisionProcess, error: float) -> str:
    """Of the question: two that differ anywhere do not share a checkpoint."""
    document = json.dumps({**process.to_dict(), "error": error}, sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()


class Checkpoint:
    """The sweeps of one projection on a shelf."""

    def __init__(self, shelf: Shelf, process: DecisionProcess, error: float) -> None:
        self._shelf = shelf
        self._process = process
        self._question = fingerprint(process, error)

    def latest(self) -> tuple[int, Sweep] | None:
        """The newest sweep that began, with its number."""
        numbers = [int(name.split("/")[0].removeprefix("sweep-")) for name in self._shelf.names("sweep-")]
        for number in sorted(set(numbers), reverse=True):
            laid = self._shelf.get(_input(number))
            if laid is None:
                continue
            if laid.facts["question"] != self._question:
                raise InvalidProjection(
                    "the checkpoint there is of another workload, matrix, tau, gamma or error. "
                    "Choose another place, or begin anew without resume."
                )
            nodes, arrays = self._process.nodes, laid.arrays
            return number, Sweep(
                self._process,
                {n: arrays[f"values-{n}"] for n in nodes},
                {n: Guide(arrays[f"term-{n}"], arrays[f"above-{n}"]) for n in nodes},
                {n: float(arrays["fallen"][place]) for place, n in enumerate(nodes)},
                laid.facts["tolerance"],
            )
        return None

    def begin(self, number: int, sweep: Sweep) -> None:
        arrays = {f"values-{n}": values for n, values in sweep.values.items()}
        for nodes, guide in sweep.guides.items():
            arrays |= {f"term-{nodes}": guide.term, f"above-{nodes}": guide.above}
        arrays["fallen"] = np.array([sweep.fallen[nodes] for nodes in self._process.nodes])
        self._shelf.put(_input(number), arrays, {"question": self._question, "tolerance": sweep.tolerance})

    def missing(self, number: int, blocks: Iterable[Block]) -> list[Block]:
        done = self._shelf.names(f"sweep-{number}/")
        return [block for block in blocks if _place(number, block) not in done]

    def forget(self, number: int) -> None:
        self._shelf.clear(f"sweep-{number}/")

    def clear(self) -> None:
        self._shelf.clear("sweep-")


def lay(shelf: Shelf, number: int, block: Block, choices: Choices) -> None:
    shelf.put(_place(number, block), vars(choices))


def laid(shelf: Shelf, number: int, block: Block) -> Choices | None:
    """The choices of a block in a sweep, if they are there."""
    found = shelf.get(_place(number, block))
    return None if found is None else Choices.of(found.arrays)


def _input(number: int) -> str:
    return f"sweep-{number}/input"


def _place(number: int, block: Block) -> str:
    return f"sweep-{number}/{block.name}"
