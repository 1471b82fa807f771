"""The planning experiments of paper 003, section 6: figures 9 to 12 and 14, and the benefit of foresight.

A `Lab` holds what they share. The command is `elastic bench paper003`; docs/experiments.md has the results.
"""

from elastic.experiments.paper003.lab import Lab
from elastic.experiments.paper003.matrices import generate_logs, read_logs
from elastic.experiments.paper003.registry import EXPERIMENTS
from elastic.experiments.paper003.scale import FULL, QUICK, ExperimentScale

__all__ = [
    "EXPERIMENTS",
    "FULL",
    "QUICK",
    "ExperimentScale",
    "Lab",
    "generate_logs",
    "read_logs",
]
