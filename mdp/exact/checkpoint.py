"""Checkpoints of a projection: the input of a sweep, and the choices of every completed block.

A projection that was killed resumes with the pending blocks of the latest sweep. The input of a sweep is written before
any of its blocks, so all blocks see the same values, on any worker.
"""

import hashlib
import json
from collections.abc import Iterable

import numpy as np

from mdp.array_store import ArrayStore
from mdp.errors import InvalidProjection
from mdp.exact.guide import EdgeGuide
from mdp.exact.sweep import Block, Choices, Sweep
from mdp.process import DecisionProcess


def fingerprint(process: DecisionProcess, error: float) -> str:
    """Hash the process and the error: projections that differ anywhere do not share a checkpoint."""
    document = json.dumps({**process.to_dict(), "error": error}, sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()


class Checkpoint:
    """The sweeps of one projection in an array store."""

    def __init__(self, array_store: ArrayStore, process: DecisionProcess, error: float) -> None:
        self._arrays = array_store
        self._process = process
        self._question = fingerprint(process, error)

    def latest(self) -> tuple[int, Sweep] | None:
        """The newest sweep that was started, with its number."""
        numbers = [int(name.split("/")[0].removeprefix("sweep-")) for name in self._arrays.names("sweep-")]
        for number in sorted(set(numbers), reverse=True):
            entry = self._arrays.get(_input(number))
            if entry is None:
                continue
            if entry.facts["question"] != self._question:
                raise InvalidProjection(
                    "the checkpoint belongs to another workload, matrix, tau, gamma or error. "
                    "Choose another name, or start again without resume."
                )
            nodes, arrays = self._process.nodes, entry.arrays
            return number, Sweep(
                self._process,
                {n: arrays[f"values-{n}"] for n in nodes},
                {n: EdgeGuide(arrays[f"term-{n}"], arrays[f"above-{n}"]) for n in nodes},
                {n: float(arrays["fallen"][place]) for place, n in enumerate(nodes)},
                entry.facts["tolerance"],
            )
        return None

    def save(self, number: int, sweep: Sweep) -> None:
        arrays = {f"values-{n}": values for n, values in sweep.values.items()}
        for nodes, guide in sweep.guides.items():
            arrays |= {f"term-{nodes}": guide.term, f"above-{nodes}": guide.above}
        arrays["fallen"] = np.array([sweep.fallen[nodes] for nodes in self._process.nodes])
        self._arrays.put(_input(number), arrays, {"question": self._question, "tolerance": sweep.tolerance})

    def pending(self, number: int, blocks: Iterable[Block]) -> list[Block]:
        done = self._arrays.names(f"sweep-{number}/")
        return [block for block in blocks if _place(number, block) not in done]

    def delete(self, number: int) -> None:
        self._arrays.clear(f"sweep-{number}/")

    def clear(self) -> None:
        self._arrays.clear("sweep-")


def save_choices(array_store: ArrayStore, number: int, block: Block, choices: Choices) -> None:
    array_store.put(_place(number, block), vars(choices))


def load_choices(array_store: ArrayStore, number: int, block: Block) -> Choices | None:
    """The choices of a block in a sweep, or None if they are missing."""
    found = array_store.get(_place(number, block))
    return None if found is None else Choices.of(found.arrays)


def _input(number: int) -> str:
    return f"sweep-{number}/input"


def _place(number: int, block: Block) -> str:
    return f"sweep-{number}/{block.name}"
