"""Every scenario runs in both forms and with every disturbance."""

from collections.abc import Callable

import pytest

from tests.elastic.processors.samples import DISTURBANCES, FORMS, World


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=sorted(DISTURBANCES))
def world(request: pytest.FixtureRequest) -> Callable[..., World]:
    return lambda *arguments, **options: World(request.param, *arguments, **options)
