"""Which migrations come next in the experiments: learned from a month of tweets, or a walk by a seed."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mdp.errors import InvalidLog
from mdp.learning import Log, NodeCounts, Recipe, Scaling, learn, node_counts, read_log, tweet_volume
from mdp.learning.reading import files_at
from mdp.matrix import TransitionMatrix

_QUANTILES = (0.01, 0.99)  # a burst of seventy times the mean would press all other hours onto the fewest nodes
_SMOOTHING = 4.0  # observations of the prior in every row: the best on held-out months, see docs/learning.md
_MONTH = np.timedelta64(30, "D")
_REACH = 0.55  # of the walk: a step by one more node is about half as likely


class Months(NamedTuple):
    """A matrix learned from the first month of a log, and the node counts after it, which nobody learned from."""

    name: str
    matrix: TransitionMatrix
    first: NodeCounts
    later: tuple[int, ...]


def months(name: str, log: Log, low: int, high: int) -> Months:
    """Paper 003, section 6: hours, node counts within a range, counts that repeat are no migration.

    The scale, too, is that of the first month; a load beyond it is clipped. A log shorter than two months is cut in the
    middle.
    """
    recipe = Recipe(low, high, quantiles=_QUANTILES, gaps="hold", smoothing=_SMOOTHING)
    span = log.times[-1] - log.times[0]
    cut = (log.times[0] + min(_MONTH, span // 2)).astype("datetime64[h]")
    before, after = log.split(cut)
    first = node_counts(before, recipe)
    later = node_counts(after, recipe, Scaling(**first.origin["scaling"]))
    return Months(
        name,
        learn(first, low, high, smoothing=_SMOOTHING, origin={"source": name}),
        first,
        tuple(later.migrations().tolist()),
    )


def learned_from_all(every: Sequence[Months], low: int, high: int) -> TransitionMatrix:
    """One matrix from all first months; nothing is learned from the end of one to the start of the next."""
    runs = [1_000_000 * number + one.first.runs for number, one in enumerate(every)]
    counts = NodeCounts(np.concatenate([one.first.nodes for one in every]), None, np.concatenate(runs))
    return learn(counts, low, high, smoothing=_SMOOTHING, origin={"source": ", ".join(one.name for one in every)})


def random_walk(low: int, high: int, seed: int = 0) -> TransitionMatrix:
    """Short steps are likelier than long ones, each times a factor between a half and three halves; none stays."""
    nodes = np.arange(low, high + 1)
    weight = _REACH ** np.abs(nodes[:, None] - nodes[None, :])
    weight *= np.random.default_rng([seed, 3]).uniform(0.5, 1.5, weight.shape)
    np.fill_diagonal(weight, 0.0)
    return TransitionMatrix(
        nodes.tolist(), weight / weight.sum(axis=1, keepdims=True), origin={"source": "random walk"}
    )


def logs_in(folder: Path) -> dict[str, Log]:
    """The logs of a folder by name, with the columns `timestamp` and `value`; those of `tweet_volume` in it, if any."""
    inside = folder / "tweet_volume"
    files = files_at(inside if inside.is_dir() else folder)
    if not files:
        raise InvalidLog(f"{folder} has no logs. Give a folder with CSV or Parquet files, or leave --data out.")
    return {file.name.partition(".")[0]: read_log(file, load_column="value") for file in files}


def made_up_logs(count: int, days: float, seed: int = 0) -> dict[str, Log]:
    """The stand-in for real logs."""
    return {f"made-up {number + 1}": tweet_volume(100 * seed + number, days=days) for number in range(count)}
