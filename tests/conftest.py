"""Hypothesis profiles (`quick` for every run, `long` for `make fuzz`), and the Python that Spark's workers use."""

import os
import sys

from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "long", deadline=None, max_examples=2_000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

settings.load_profile(os.environ.get("ELASTIC_TEST_PROFILE", "quick"))
