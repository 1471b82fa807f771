"""From logs to transition matrices: how likely n nodes become n' at the next migration (paper 003, section 4.2).

A log (`read_log`, or the engine's journal: `read_journal`) becomes node counts, node counts become transitions, and
transitions a `TransitionMatrix` (`learn`, `learn_from`), one for every hour of the day if asked (`learn_hourly`).
`Recipe` holds all choices on the way. Runs without Spark; `mdp.spark.learning` does the same on it.
"""

from mdp.learning.hourly import HourlyMatrices
from mdp.learning.journal import read_journal
from mdp.learning.logs import Log
from mdp.learning.matrices import learn, learn_from, learn_hourly, learn_hourly_from
from mdp.learning.node_counts import NodeCounts, node_counts
from mdp.learning.picture import draw
from mdp.learning.reading import read_log
from mdp.learning.recipe import Recipe
from mdp.learning.rendering import summary, table
from mdp.learning.saving import load, load_any, load_hourly, save
from mdp.learning.scaling import Scaling
from mdp.learning.synthetic import tweet_volume, write_csv

__all__ = [
    "HourlyMatrices",
    "Log",
    "NodeCounts",
    "Recipe",
    "Scaling",
    "draw",
    "learn",
    "learn_from",
    "learn_hourly",
    "learn_hourly_from",
    "load",
    "load_any",
    "load_hourly",
    "node_counts",
    "read_journal",
    "read_log",
    "save",
    "summary",
    "table",
    "tweet_volume",
    "write_csv",
]
