"""Learn transition matrices from logs: how likely n nodes become n' at the next migration (paper 003, section 4.2).

A log (`read_log`, or the engine's journal: `read_journal`) becomes node counts, node counts become transitions, and
transitions a `TransitionMatrix` (`learn`, `learn_from_log`), or one per hour of the day (`learn_hourly`).
`Recipe` holds all options. Runs without Spark; `mdp.spark.learning` does the same on Spark.
"""

from mdp.learning.heat_map import draw_matrix
from mdp.learning.hourly import HourlyMatrices
from mdp.learning.journal import read_journal
from mdp.learning.log_files import read_log
from mdp.learning.logs import Log
from mdp.learning.matrices import learn, learn_from_log, learn_hourly, learn_hourly_from_log
from mdp.learning.matrix_files import load_learned, load_matrix, save_matrix
from mdp.learning.node_counts import NodeCounts, count_nodes
from mdp.learning.recipe import Recipe
from mdp.learning.rendering import format_matrix, format_summary
from mdp.learning.scaling import Scaling
from mdp.learning.synthetic import generate_tweet_volume

__all__ = [
    "HourlyMatrices",
    "Log",
    "NodeCounts",
    "Recipe",
    "Scaling",
    "count_nodes",
    "draw_matrix",
    "format_matrix",
    "format_summary",
    "generate_tweet_volume",
    "learn",
    "learn_from_log",
    "learn_hourly",
    "learn_hourly_from_log",
    "load_learned",
    "load_matrix",
    "read_journal",
    "read_log",
    "save_matrix",
]
