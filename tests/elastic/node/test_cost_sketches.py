"""What a node remembers of costs: two windows, which follow changes and outlast a pause."""

import numpy as np
import pyarrow as pa
import pytest

from elastic.node.cost_sketches import CostSketches
from elastic.operators import Stage, stateless
from elastic.operators.calls import CostTimes
from elastic.operators.stages import build_runners, build_stages

SCHEMA = pa.schema([("kind", pa.int64())])


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def times(seconds: float, rows: int = 2_000, key: int = 7) -> CostTimes:
    return CostTimes(np.array([key]), np.array([rows]), np.array([seconds * rows]))


@pytest.fixture
def sketches() -> CostSketches:
    copy = stateless(lambda rows: rows, "kind long")
    stages = [
        Stage(copy, name="turns", grouping="shuffle", scheduler="round-robin"),
        Stage(copy, name="costs", grouping="shuffle"),
    ]
    found = CostSketches(build_runners(build_stages(stages, "kind"), SCHEMA), 10.0, clock := Clock())
    found.clock = clock  # type: ignore[attr-defined]
    return found


def mean(sketches: CostSketches) -> float:
    sketches.measure()
    [costs] = sketches.report
    assert costs.stage == 1
    sketch = costs.sketch
    return float(sketch.seconds[0].sum() / sketch.rows)


def test_nothing_is_reported_before_something_is_measured(sketches: CostSketches) -> None:
    sketches.measure()
    assert sketches.report == ()


def test_a_report_follows_a_change_after_two_windows(sketches: CostSketches) -> None:
    sketches.add(1, times(1.0))
    assert mean(sketches) == pytest.approx(1.0)
    sketches.clock.now = 10.0  # type: ignore[attr-defined]
    sketches.add(1, times(3.0))
    assert mean(sketches) == pytest.approx(2.0)
    sketches.clock.now = 20.0  # type: ignore[attr-defined]
    sketches.add(1, times(3.0))
    assert mean(sketches) == pytest.approx(3.0)


def test_all_rows_of_a_window_count_however_many_there_are(sketches: CostSketches) -> None:
    for now in (0.0, 3.0, 6.0, 9.9):
        sketches.clock.now = now  # type: ignore[attr-defined]
        sketches.add(1, times(1.0))
    sketches.measure()
    assert sketches.report[0].sketch.rows == 8_000


def test_a_window_with_few_rows_goes_on(sketches: CostSketches) -> None:
    sketches.add(1, times(1.0, rows=10))
    for now in (10.0, 20.0, 30.0):
        sketches.clock.now = now  # type: ignore[attr-defined]
        sketches.add(1, times(1.0, rows=10, key=8))
    sketches.measure()
    assert sketches.report[0].sketch.rows == 40


def test_a_report_is_made_once_per_change(sketches: CostSketches) -> None:
    sketches.add(1, times(1.0))
    sketches.measure()
    report = sketches.report
    sketches.measure()
    assert sketches.report is report
