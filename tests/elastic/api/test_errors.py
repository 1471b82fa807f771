"""Errors of the API are typed, end with what to do, and have a status."""

import re

import pytest

from elastic.api import errors
from elastic.api.problems import STATUSES, Problem
from elastic.errors import ElasticError
from tests.elastic.test_errors import ADVICE
from tests.error_trees import check_drawn, check_travels, leaves_and_branches

EXAMPLES: list[ElasticError] = [
    errors.TokenRequired("192.168.0.7"),
    errors.WeakToken(16),
    errors.CannotListen("127.0.0.1", 80, "permission denied"),
    errors.Unauthorized(),
    errors.HostNotAllowed("evil.example.org"),
    errors.CrossSiteRequest(),
    errors.RequestTooLarge(65_536),
    errors.UnknownJob("wrods", ["words"]),
    errors.UnknownMigration(7, [1, 2, 3]),
    errors.MigrationOver(1, "done"),
    errors.TooManyListeners(32),
]
RAISED_BY_SERVE = (errors.TokenRequired, errors.WeakToken, errors.CannotListen)


def test_there_is_an_example_of_every_error() -> None:
    here = {kind for kind in leaves_and_branches(ElasticError) if kind.__module__ == errors.__name__}
    assert {type(example) for example in EXAMPLES} == here
    check_drawn(ElasticError, errors)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_can_be_pickled_and_ends_with_what_to_do(error: Exception) -> None:
    check_travels(error)
    *facts, advice = re.split(r"[.?] |\n", str(error).partition("; the user")[0])
    assert facts
    assert advice.split()[0] in [*ADVICE, "Close"]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_that_is_sent_to_clients_has_a_status(error: Exception) -> None:
    assert isinstance(error, RAISED_BY_SERVE) or type(error) in STATUSES
    assert Problem.from_error(error).detail == str(error)
