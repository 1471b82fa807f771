"""The experiments of paper 004 in a simulator: figures 4 to 12, and batches that several senders schedule.

A `Lab` simulates streams under policies. The command is `elastic bench paper004`; docs/shuffle.md has the results.
"""

from elastic.experiments.paper004.lab import Lab
from elastic.experiments.paper004.registry import EXPERIMENTS
from elastic.experiments.paper004.scale import FULL, QUICK, ExperimentScale

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "ExperimentScale", "Lab"]
