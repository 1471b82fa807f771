"""The planning experiments of paper 002: figures 7 to 9, and what a plan costs against the share of a standby's work,
fluctuation, nodes, service level and the second hash.

A `Lab` runs strategies along synthetic streams. The command is `elastic bench paper002`; docs/standbys.md has the
results. Figures 10 and 11, on a running job, are in `engine`.
"""

from elastic.experiments.paper002.lab import Lab
from elastic.experiments.paper002.registry import EXPERIMENTS
from elastic.experiments.paper002.scale import FULL, QUICK, ExperimentScale

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "ExperimentScale", "Lab"]
