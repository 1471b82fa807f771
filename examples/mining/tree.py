"""A binary decision tree that grows leaf by leaf."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Split(NamedTuple):
    """A test of a leaf, which becomes two: values of the attribute up to the threshold go left."""

    attribute: int
    threshold: float
    left: int
    right: int


@dataclass
class Tree:
    """Leaves have the class of most of their examples; leaf 0 is the root."""

    splits: dict[int, Split] = field(default_factory=dict)
    labels: dict[int, int] = field(default_factory=lambda: {0: 0})
    depths: dict[int, int] = field(default_factory=lambda: {0: 0})

    @property
    def leaves(self) -> list[int]:
        return [leaf for leaf in self.labels if leaf not in self.splits]

    def split(self, leaf: int, attribute: int, threshold: float, labels: tuple[int, int]) -> None:
        """Replace a leaf by two, which predict `labels` until they have examples of their own."""
        left, right = len(self.labels), len(self.labels) + 1
        self.splits[leaf] = Split(attribute, threshold, left, right)
        for child, label in zip((left, right), labels, strict=True):
            self.labels[child], self.depths[child] = label, self.depths[leaf] + 1

    def find_leaves(self, values: Floats) -> Integers:
        """Return the leaf of each example."""
        found = np.zeros(len(values), np.int64)
        for leaf, test in self.splits.items():  # a leaf is split after its parent
            here = found == leaf
            is_left = values[:, test.attribute] <= test.threshold
            found[here & is_left], found[here & ~is_left] = test.left, test.right
        return found

    def predict(self, values: Floats) -> Integers:
        labels = np.zeros(len(self.labels), np.int64)
        labels[list(self.labels)] = list(self.labels.values())
        return np.asarray(labels[self.find_leaves(values)])
