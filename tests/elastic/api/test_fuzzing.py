"""Valid and invalid calls by the API's own description: none is a 500, and none changes a job without the token."""

import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from elastic.api.access import AllowedHosts, Token
from elastic.api.application import create_application
from elastic.api.registry import JobRegistry
from tests.elastic.api.conftest import SECRET
from tests.elastic.api.paper_job import PaperJob

Call = Case[Any]

# Event streams are endless; test_server.py tests them.
app = create_application(JobRegistry([PaperJob("words"), PaperJob("clicks")]), AllowedHosts("127.0.0.1"), Token(SECRET))
schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "127.0.0.1"}).exclude(
    path_regex="/events$"
)
few = settings(
    max_examples=300 if os.environ.get("ELASTIC_TEST_PROFILE") == "long" else 8,
    suppress_health_check=list(HealthCheck),
)

# `use_real_job` changes invalid names to valid ones, and a well-formed request may still be refused.
EXCLUDED_CHECKS: list[Any] = [negative_data_rejection, positive_data_acceptance]


def use_real_job(case: Call) -> Call:
    """Let half of the calls name a job that exists."""
    if case.path_parameters and len(str(case.path_parameters.get("job", ""))) % 2:
        case.path_parameters["job"] = "words"
    return case


@schema.parametrize()
@few
def test_no_call_with_the_token_ends_in_a_500(case: Call) -> None:
    headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {SECRET}"}
    use_real_job(case).call_and_validate(headers=headers, excluded_checks=EXCLUDED_CHECKS)


@schema.include(method="POST").parametrize()
@few
def test_no_change_without_the_token_whatever_is_sent(case: Call) -> None:
    answer = use_real_job(case).call(headers={"Host": "127.0.0.1", "Authorization": "Bearer not-the-token"})
    assert answer.status_code == (405 if case.method in ("GET", "HEAD", "OPTIONS") else 401)
