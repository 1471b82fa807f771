"""What the API refuses is typed, says what to do, and has a status."""

import re

import pytest

from elastic.api import errors
from elastic.api.problems import STATUSES, Problem
from elastic.errors import ElasticError
from tests.elastic.test_errors import ADVICE
from tests.error_trees import check_drawn, check_travels, leaves_and_branches

EXAMPLES: list[ElasticError] = [
    errors.OpenToAll("192.168.0.7"),
    errors.WeakToken(16),
    errors.CannotListen("127.0.0.1", 80, "permission denied"),
    errors.NotAllowed(),
    errors.ForeignHost("evil.example.org"),
    errors.ForeignPage(),
    errors.TooLarge(65_536),
    errors.NotServed("wrods", ["words"]),
    errors.UnknownMigration(7, [1, 2, 3]),
    errors.MigrationOver(1, "done"),
    errors.TooManyListeners(32),
]
NEVER_ANSWERED = (errors.OpenToAll, errors.WeakToken, errors.CannotListen)  # they are raised by `serve`


def test_there_is_an_example_of_every_error() -> None:
    here = {kind for kind in leaves_and_branches(ElasticError) if kind.__module__ == errors.__name__}
    assert {type(example) for example in EXAMPLES} == here
    check_drawn(ElasticError, errors)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_travels_and_says_what_to_do(error: Exception) -> None:
    check_travels(error)
    *facts, advice = re.split(r"[.?] |\n", str(error).partition("; whoever")[0])
    assert facts
    assert advice.split()[0] in [*ADVICE, "Close"]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_answered_error_has_a_status_of_its_own(error: Exception) -> None:
    assert isinstance(error, NEVER_ANSWERED) or type(error) in STATUSES
    assert Problem.of(error).detail == str(error)
