"""Workloads, matrices and logs of the experiments."""

from pathlib import Path

import numpy as np
import pytest

from elastic.experiments.paper003.matrices import generate_logs, learn_from_all, random_walk, read_logs, split_months
from elastic.experiments.paper003.workloads import WORKLOADS
from mdp.errors import InvalidLog
from mdp.learning import count_nodes, generate_tweet_volume
from mdp.learning.recipe import Recipe
from tests.mdp.instances import write_csv


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_seed_makes_a_workload(kind: str) -> None:
    assert WORKLOADS[kind](64, 1) == WORKLOADS[kind](64, 1)
    assert kind == "equal" or WORKLOADS[kind](64, 1) != WORKLOADS[kind](64, 2)
    assert WORKLOADS[kind](64, 1).tasks == 64


def test_the_skewed_workloads_are_skewed_but_no_task_fills_a_node() -> None:
    for kind in ("log-normal", "zipf"):
        workload = WORKLOADS[kind](64, 0)
        assert workload.work.max() / np.median(workload.work) > 1.5
        assert workload.work.max() < 1.2 * workload.total_work / 16


def test_a_walk_prefers_short_steps_and_never_stays() -> None:
    matrix = random_walk(8, 16, seed=1)
    assert (np.diag(matrix.probabilities) == 0).all()
    assert matrix.probability(12, 13) > matrix.probability(12, 16)
    assert matrix != random_walk(8, 16, seed=2)


def test_what_is_judged_by_was_not_learned_from() -> None:
    log = generate_tweet_volume(seed=1, days=20)
    made = split_months("tweets", log, 8, 16)
    before, _ = log.split(log.times[0] + np.timedelta64(10, "D"))
    assert made.first.times is not None
    assert made.first.times[-1] <= before.times[-1]
    louder = type(log)(log.times, np.where(log.times > before.times[-1], 3 * log.values, log.values))
    assert split_months("tweets", louder, 8, 16).matrix == made.matrix
    assert split_months("tweets", louder, 8, 16).later != made.later
    assert all(a != b for a, b in zip(made.later, made.later[1:], strict=False))
    assert set(made.later) <= set(range(8, 17))


def test_two_months_are_learned_from_thirty_days() -> None:
    made = split_months("tweets", generate_tweet_volume(seed=1, days=60), 8, 16)
    assert made.first.times is not None
    assert made.first.times[-1] - made.first.times[0] < np.timedelta64(30, "D")
    assert len(made.first) > 29 * 24


def test_all_logs_together_teach_what_each_teaches() -> None:
    every = [split_months(name, log, 8, 16) for name, log in generate_logs(3, 12).items()]
    together = learn_from_all(every, 8, 16)
    assert (together.observed == sum(one.matrix.observed for one in every)).all()


def test_logs_are_found_in_a_folder_or_in_tweet_volume_in_it(tmp_path: Path) -> None:
    inside = tmp_path / "tweet_volume"
    inside.mkdir()
    write_csv(generate_tweet_volume(seed=1, days=3), inside / "ONE.csv")
    write_csv(generate_tweet_volume(seed=2, days=3), inside / "TWO.csv")
    (tmp_path / "tweets.csv").write_text("created_at,text\n")
    assert list(read_logs(tmp_path)) == list(read_logs(inside)) == ["ONE", "TWO"]
    counts = count_nodes(read_logs(tmp_path)["ONE"], Recipe(8, 16))
    assert (counts.nodes == count_nodes(generate_tweet_volume(seed=1, days=3), Recipe(8, 16)).nodes).all()


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidLog, match="Give"):
        read_logs(tmp_path)
