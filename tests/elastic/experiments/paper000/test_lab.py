"""Trajectories of the experiments of paper 000."""

import numpy as np
import pytest

from elastic.experiments.paper000 import QUICK, Lab
from elastic.experiments.paper000.lab import Sample, plan_once, summarise
from migration.keys import KeyLoads


def test_a_plan_that_has_to_be_relaxed_says_so() -> None:
    lab = Lab(QUICK)
    loads = KeyLoads(range(4), [0, 1, 1, 1], None, [90.0, 1.0, 1.0, 1.0])
    sample, destination = plan_once(loads, "mixed", lab.setting(nodes=2), {})
    assert sample.relaxed
    assert sample.theta_reached == pytest.approx(90 / 46.5 - 1)
    assert destination.tolist() == [0, 1, 1, 1]


def test_a_table_that_is_too_small_counts_as_relaxed() -> None:
    lab = Lab(QUICK)
    loads = KeyLoads(range(10), [0] * 10, None, [1.0] * 10)
    sample, destination = plan_once(loads, "min-mig", lab.setting(nodes=2, most_entries=1), {})
    assert sample.relaxed
    assert sample.entries == np.count_nonzero(destination) == 5


def test_every_plan_of_a_trajectory_keeps_theta() -> None:
    lab = Lab(QUICK)
    samples = lab.run("mixed", lab.setting(), 5)
    assert len(samples) == 5
    assert all(sample.theta_reached <= QUICK.theta + 1e-9 and not sample.relaxed for sample in samples)
    assert any(sample.moved_percent > 0 for sample in samples)


def test_means_are_over_trajectories_and_times_are_medians() -> None:
    def sample(milliseconds: float, moved: float, *, relaxed: bool = False) -> Sample:
        return Sample(milliseconds, moved, 1.0, 10, 0.05, relaxed)

    found = summarise([[sample(1, 2), sample(9, 4)], [sample(2, 5, relaxed=True), sample(3, 5)]])
    assert found.milliseconds == 2.5
    assert found.moved_percent == 4
    assert found.moved_standard_error == pytest.approx(1)
    assert found.relaxed_percent == 25
