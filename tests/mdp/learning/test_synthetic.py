"""Made-up tweets are like real ones where it matters."""

from pathlib import Path

import numpy as np
import pytest

from mdp.learning import Log, Recipe, count_nodes, generate_tweet_volume, read_log
from mdp.learning.windows import split_into_windows
from tests.mdp.instances import write_csv


def hourly(log: Log) -> np.ndarray:
    return split_into_windows(log, Recipe(8, 16).for_loads()).values


def autocorrelation(series: np.ndarray, lag: int) -> float:
    centred = series - series.mean()
    return float((centred[lag:] * centred[:-lag]).mean() / centred.var())


def test_a_seed_is_a_log() -> None:
    assert np.array_equal(generate_tweet_volume(seed=7).values, generate_tweet_volume(seed=7).values)
    assert not np.array_equal(generate_tweet_volume(seed=7).values, generate_tweet_volume(seed=8).values)


def test_it_has_the_shape_of_the_real_files(tmp_path: Path) -> None:
    log = generate_tweet_volume(seed=1)
    path = write_csv(log, tmp_path / "log.csv")
    assert path.read_text().splitlines()[0].replace('"', "") == "timestamp,value"
    read = read_log(path, load_column="value")
    assert np.array_equal(read.times, log.times)
    assert np.array_equal(read.values, log.values)
    assert set(np.diff(log.times).astype("timedelta64[s]").astype(int)) == {300}
    assert len(log) == pytest.approx(15_850, rel=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_hours_vary_as_those_of_real_tweets_do(seed: int) -> None:
    """The ranges hold the real files of three companies; the fourth is wilder."""
    hours = hourly(generate_tweet_volume(seed))
    logarithms = np.log1p(hours)
    median = np.median(hours)
    assert 0.35 < hours.std() / hours.mean() < 1.3  # real: 0.39, 0.69, 0.74
    assert 3.5 < hours.max() / hours.mean() < 40  # 3.7, 9.8, 11.3; of the wild one 67
    assert 2.2 < np.quantile(hours, 0.99) / median < 5  # 2.3, 4.2, 4.4
    assert 0.45 < np.quantile(hours, 0.1) / median < 0.6  # 0.52, 0.55, 0.56
    assert 0.7 < autocorrelation(logarithms, 1) < 0.87  # 0.74, 0.77, 0.81
    assert 0.3 < autocorrelation(logarithms, 24) < 0.6  # 0.42, 0.47, 0.54
    assert 0.4 < autocorrelation(logarithms, 168) < 0.65  # 0.51, 0.52, 0.55


def test_there_is_a_day_and_a_week_in_it() -> None:
    log = generate_tweet_volume(seed=2)
    hour = log.times.astype("datetime64[h]").astype(int) % 24
    weekday = (log.times.astype("datetime64[D]").astype(int) + 3) % 7
    by_hour = [np.median(log.values[hour == h]) for h in range(24)]
    assert 2.2 < max(by_hour) / min(by_hour) < 3.6  # real: 2.5 to 3.5
    assert 0.5 < np.median(log.values[weekday >= 5]) / np.median(log.values[weekday < 5]) < 0.85  # 0.55 to 0.83


def test_it_makes_as_many_migrations_as_real_tweets_do() -> None:
    """Real: in 44 to 57 % of the hours, four in five of them by one node."""
    counts = count_nodes(generate_tweet_volume(seed=0), Recipe(8, 16, quantiles=(0.01, 0.99))).nodes
    steps = np.abs(np.diff(counts))
    assert 0.4 < (steps > 0).mean() < 0.6
    assert 0.7 < (steps == 1).sum() / (steps > 0).sum() < 0.9
