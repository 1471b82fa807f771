"""The planning experiments of paper 000: figures 7 to 12, and 17 to 21 of its appendix.

A `Lab` runs strategies along synthetic streams. The command is `elastic bench paper000`; docs/keys.md has the results.
"""

from elastic.experiments.paper000.lab import Lab
from elastic.experiments.paper000.registry import EXPERIMENTS
from elastic.experiments.paper000.scale import FULL, QUICK, ExperimentScale

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "ExperimentScale", "Lab"]
