"""The experiments of paper 000 that need a running engine: figures 13 to 16.

They run the applications of `examples`, so they work in the repository only. The command is
`elastic bench paper000 --engine`; docs/keys.md describes it.
"""

from elastic.experiments.paper000.engine.lab import EngineLab
from elastic.experiments.paper000.engine.registry import ENGINE_EXPERIMENTS
from elastic.experiments.paper000.engine.scale import ENGINE_FULL, ENGINE_QUICK, EngineScale

__all__ = ["ENGINE_EXPERIMENTS", "ENGINE_FULL", "ENGINE_QUICK", "EngineLab", "EngineScale"]
