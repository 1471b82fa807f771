"""The experiments of the papers: `paper000` plans by key, `paper001` splits keys, `paper002` plans keys with
standbys, `paper003` plans by task, `paper004` shuffles.

Each paper has a lab, which holds what its experiments share, and a table `EXPERIMENTS`. `run_experiments` runs them,
each with a CSV file, a table and a chart. The command is `elastic bench`.
"""

from elastic.experiments.results import Experiment, ExperimentResult
from elastic.experiments.runner import run_experiments

__all__ = ["Experiment", "ExperimentResult", "run_experiments"]
