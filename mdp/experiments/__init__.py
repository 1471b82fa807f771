"""The planning experiments of paper 003, section 6: figures 9 to 12 and 14, and the benefit of foresight.

A `Lab` holds what they share; `run_experiments` runs them, each with a CSV file, a table and a chart. The command is
`elastic bench paper003`; docs/experiments.md has the results.
"""

from mdp.experiments.lab import Lab
from mdp.experiments.matrices import generate_logs, read_logs
from mdp.experiments.registry import EXPERIMENTS, run_experiments
from mdp.experiments.results import ExperimentResult
from mdp.experiments.scale import FULL, QUICK, ExperimentScale

__all__ = [
    "EXPERIMENTS",
    "FULL",
    "QUICK",
    "ExperimentResult",
    "ExperimentScale",
    "Lab",
    "generate_logs",
    "read_logs",
    "run_experiments",
]
