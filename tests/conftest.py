"""Hypothesis profiles (`quick` for every run, `long` for `make fuzz`), and the Python that Spark's workers use."""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "long", deadline=None, max_examples=2_000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

settings.load_profile(os.environ.get("ELASTIC_TEST_PROFILE", "quick"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs an S3 server process, so that `make unit` can leave it out."""
    for item in items:
        kind = (
            item.callspec.params.get("kind")
            if isinstance(item, pytest.Function) and hasattr(item, "callspec")
            else None
        )
        if kind in ("minio", "moto") or "storage/s3/" in item.nodeid:
            item.add_marker(pytest.mark.server)
