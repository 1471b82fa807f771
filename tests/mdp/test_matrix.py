"""A transition matrix that exists is one."""

import json
import pickle
from typing import Any

import numpy as np
import pytest

from mdp.errors import InvalidMatrix
from mdp.matrix import TransitionMatrix

MATRIX = TransitionMatrix([2, 3, 5], [[0, 0.6, 0.4], [0.5, 0, 0.5], [0, 1, 0]], [[0, 6, 4], [1, 0, 1], [0, 3, 0]])


def test_a_matrix_answers_by_node_counts() -> None:
    assert MATRIX.probability(2, 3) == 0.6
    assert MATRIX.probability(5, 2) == 0
    assert MATRIX.probability(2, 4) == 0  # a number it never speaks of
    assert MATRIX.observations == 15
    assert MATRIX.index(5) == 2


def test_a_row_the_matrix_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidMatrix, match="covers 2, 3, 5 nodes, not 4"):
        MATRIX.probability(4, 2)


@pytest.mark.parametrize(
    ("nodes", "probabilities", "observed", "says"),
    [
        ([], [], None, "do not rise"),
        ([0, 1], [[0, 1], [1, 0]], None, "do not rise from at least 1"),
        ([3, 2], [[0, 1], [1, 0]], None, "do not rise"),
        ([2, 2], [[0, 1], [1, 0]], None, "do not rise"),
        ([2, 3], [[0, 1]], None, "shape"),
        ([2, 3], [[0, 1], [1]], None, "not a table"),
        ([2, 3], [["a", 1], [1, 0]], None, "not a table"),
        ([2, 3], [[-1, 2], [1, 0]], None, "negative"),
        ([2, 3], [[float("nan"), 1], [1, 0]], None, "not finite"),
        ([2, 3], [[0, 1], [0.5, 0.4]], None, "row of 3 nodes sums to 0.9"),
        ([2, 3], [[0, 1], [1, 0]], [[0, 1], [-1, 0]], "negative"),
        ([2, 3], [[0, 1], [1, 0]], [[0, 1]], "shape"),
    ],
)
def test_what_is_no_matrix_is_refused(nodes: Any, probabilities: Any, observed: Any, says: str) -> None:
    with pytest.raises(InvalidMatrix, match=says):
        TransitionMatrix(nodes, probabilities, observed)


def test_a_matrix_cannot_be_changed() -> None:
    for table in (MATRIX.probabilities, MATRIX.observed):
        with pytest.raises(ValueError, match="read-only"):
            table[0, 0] = 1


def test_a_matrix_is_the_same_after_a_trip_as_json_or_pickle() -> None:
    made = TransitionMatrix(MATRIX.nodes, MATRIX.probabilities, MATRIX.observed, {"source": "a log", "range": [2, 5]})
    for other in (TransitionMatrix.from_json(made.to_json()), pickle.loads(pickle.dumps(made))):  # noqa: S301
        assert other == made
        assert hash(other) == hash(made)
        assert other.origin == {"source": "a log", "range": [2, 5]}
        assert np.array_equal(other.observed, made.observed)
    assert made != MATRIX  # from somewhere else
    assert made != "a matrix"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": "transition-matrix-9"}, "Learn the matrix again"),
        ({"nodes": ["two", 3, 5]}, "not a transition matrix document"),
        ({"nodes": 7}, "not a transition matrix document"),
        ({"origin": "a log"}, "not a transition matrix document"),
        ({"probabilities": [[1]]}, "shape"),
        ({"probabilities": [[0, 0.6, 0.5], [0.5, 0, 0.5], [0, 1, 0]]}, "sums to 1.1"),
    ],
)
def test_a_damaged_document_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidMatrix, match=says):
        TransitionMatrix.from_dict({**MATRIX.to_dict(), **changes})


@pytest.mark.parametrize("text", ["{", "[]", "{}", '"format"', b"\xff"])
def test_what_is_no_document_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidMatrix):
        TransitionMatrix.from_json(text)


def test_a_document_is_plain_json() -> None:
    document = json.loads(MATRIX.to_json())
    assert document["nodes"] == [2, 3, 5]
    assert document["probabilities"][0] == [0, 0.6, 0.4]
