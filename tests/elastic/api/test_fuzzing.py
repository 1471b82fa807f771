"""The API is called as its own description says, and as it does not say: never a 500, no change without the token."""

import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from elastic.api.access import Names, Token
from elastic.api.application import application
from elastic.api.board import Board
from tests.elastic.api.conftest import SECRET
from tests.elastic.api.paper_job import PaperJob

Call = Case[Any]

# Event streams have no end, and are tested in test_server.py.
app = application(Board([PaperJob("words"), PaperJob("clicks")]), Names("127.0.0.1"), Token(SECRET))
schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "127.0.0.1"}).exclude(
    path_regex="/events$"
)
few = settings(
    max_examples=300 if os.environ.get("ELASTIC_TEST_PROFILE") == "long" else 8,
    suppress_health_check=list(HealthCheck),
)

# `named` makes wrong names right; and what is well-formed may still ask for what cannot be, and is told so.
UNFIT: list[Any] = [negative_data_rejection, positive_data_acceptance]


def named(case: Call) -> Call:
    """Half of the calls are about a job that there is; a number of a migration is small."""
    if case.path_parameters and len(str(case.path_parameters.get("job", ""))) % 2:
        case.path_parameters["job"] = "words"
    return case


@schema.parametrize()
@few
def test_no_call_with_the_token_ends_in_a_500(case: Call) -> None:
    headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {SECRET}"}
    named(case).call_and_validate(headers=headers, excluded_checks=UNFIT)


@schema.include(method="POST").parametrize()
@few
def test_no_change_without_the_token_whatever_is_sent(case: Call) -> None:
    answer = named(case).call(headers={"Host": "127.0.0.1", "Authorization": "Bearer nothing-that-counts"})
    assert answer.status_code == (405 if case.method in ("GET", "HEAD", "OPTIONS") else 401)
