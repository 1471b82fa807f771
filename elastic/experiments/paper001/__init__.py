"""The simulations of paper 001: Tables I and II, Figures 2 to 5, copies of keys, and routing speed.

A `Lab` draws streams and simulates sources that send them to workers. The command is `elastic bench paper001`;
docs/splitting.md has the results.
"""

from elastic.experiments.paper001.lab import Lab
from elastic.experiments.paper001.registry import EXPERIMENTS
from elastic.experiments.paper001.scale import FULL, QUICK, ExperimentScale

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "ExperimentScale", "Lab"]
