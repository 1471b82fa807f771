"""Errors of results survive pickling and say what to do."""

import pickle

import pytest

from elastic.errors import ElasticError
from elastic.results import errors

EXAMPLES = [
    errors.BatchOutOfOrder(5, 3),
    errors.DuplicateResults(1, 2, 3),
    errors.NotPublished(5, 3),
    errors.UnknownJob("job", "memory:"),
    errors.UnknownStage(None, ["a", "b"]),
    errors.ForeignFolder("file:///out", "it is full"),
    errors.ResultsReplaced("job", "ab", "cd"),
    errors.StateSchemaMismatch("int64 vs string"),
    errors.SnapshotReplaced(7),
    errors.SinkUnavailable("KafkaSink('topic')", "no broker"),
    errors.SinkUnreachable(5.0, "no broker"),
    errors.SinkTakenOver("KafkaSink('topic')", 7),
    errors.RecordRefused("topic", 7, 3, b"key", 5, "it is too large"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_keeps_its_attributes_and_message_when_pickled(error: ElasticError) -> None:
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))
    assert str(error).endswith(".")


def test_every_error_is_in_the_docstring_and_among_the_examples() -> None:
    made = {name for name, kind in vars(errors).items() if isinstance(kind, type) and kind is not ElasticError}
    made = {name for name in made if issubclass(getattr(errors, name), ElasticError)}
    assert {type(error).__name__ for error in EXAMPLES} == made
    assert all(name in (errors.__doc__ or "") for name in made)
