"""The experiments of paper 003, section 6, that concern planning: figures 9 to 12 and 14, and what foresight is worth.

A `Lab` holds what they share; `run` makes some of them, each with a CSV file, a table and a picture. The command is
`elastic bench paper003`; docs/experiments.md tells what came out.
"""

from mdp.experiments.lab import Lab
from mdp.experiments.matrices import logs_in, made_up_logs
from mdp.experiments.outcome import Outcome
from mdp.experiments.running import EXPERIMENTS, run
from mdp.experiments.scale import FULL, QUICK, Scale

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "Lab", "Outcome", "Scale", "logs_in", "made_up_logs", "run"]
