"""Transition matrices of the experiments: learned from a month of tweets, or a seeded random walk."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mdp.errors import InvalidLog
from mdp.learning import Log, NodeCounts, Recipe, Scaling, count_nodes, generate_tweet_volume, learn, read_log
from mdp.learning.log_files import list_log_files
from mdp.matrix import TransitionMatrix

_QUANTILES = (0.01, 0.99)  # a burst of seventy times the mean would press all other hours onto the fewest nodes
_SMOOTHING = 4.0  # observations of the prior in every row: the best on held-out months, see docs/learning.md
_MONTH = np.timedelta64(30, "D")
_REACH = 0.55  # of the walk: a step by one more node is about half as likely


class MonthSplit(NamedTuple):
    """A matrix learned from the first month of a log, and the later node counts, which are held out."""

    name: str
    matrix: TransitionMatrix
    first: NodeCounts
    later: tuple[int, ...]


def split_months(name: str, log: Log, low: int, high: int) -> MonthSplit:
    """Split as in paper 003, section 6: hours, node counts within a range, repeated counts are no migration.

    The scale is that of the first month, too; loads beyond it are clipped. A log shorter than two months is cut in the
    middle.
    """
    recipe = Recipe(low, high, quantiles=_QUANTILES, gaps="hold", smoothing=_SMOOTHING)
    span = log.times[-1] - log.times[0]
    cut = (log.times[0] + min(_MONTH, span // 2)).astype("datetime64[h]")
    before, after = log.split(cut)
    first = count_nodes(before, recipe)
    later = count_nodes(after, recipe, Scaling(**first.origin["scaling"]))
    return MonthSplit(
        name,
        learn(first, low, high, smoothing=_SMOOTHING, origin={"source": name}),
        first,
        tuple(later.migrations().tolist()),
    )


def learn_from_all(every: Sequence[MonthSplit], low: int, high: int) -> TransitionMatrix:
    """Learn one matrix from all first months, without transitions from one log to the next."""
    runs = [1_000_000 * number + one.first.runs for number, one in enumerate(every)]
    counts = NodeCounts(np.concatenate([one.first.nodes for one in every]), None, np.concatenate(runs))
    return learn(counts, low, high, smoothing=_SMOOTHING, origin={"source": ", ".join(one.name for one in every)})


def random_walk(low: int, high: int, seed: int = 0) -> TransitionMatrix:
    """Short steps are likelier than long ones, each times a random factor between 0.5 and 1.5; the diagonal is 0."""
    nodes = np.arange(low, high + 1)
    weight = _REACH ** np.abs(nodes[:, None] - nodes[None, :])
    weight *= np.random.default_rng([seed, 3]).uniform(0.5, 1.5, weight.shape)
    np.fill_diagonal(weight, 0.0)
    return TransitionMatrix(
        nodes.tolist(), weight / weight.sum(axis=1, keepdims=True), origin={"source": "random walk"}
    )


def read_logs(folder: Path) -> dict[str, Log]:
    """Read the logs of a folder, or of its subfolder `tweet_volume`, by name; columns are `timestamp` and `value`."""
    inside = folder / "tweet_volume"
    files = list_log_files(inside if inside.is_dir() else folder)
    if not files:
        raise InvalidLog(f"{folder} has no logs. Give a folder with CSV or Parquet files, or omit --data.")
    return {file.name.partition(".")[0]: read_log(file, load_column="value") for file in files}


def generate_logs(count: int, days: float, seed: int = 0) -> dict[str, Log]:
    """Generate synthetic logs in place of real ones."""
    return {f"synthetic {number + 1}": generate_tweet_volume(100 * seed + number, days=days) for number in range(count)}
