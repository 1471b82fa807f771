"""A job's results and its state as Spark data sources, `elastic` and `elastic-state`."""

from elastic.runtime.sources.ending import quiet_planners
from elastic.runtime.sources.registration import register
from elastic.runtime.sources.results_source import ResultsSource
from elastic.runtime.sources.state_source import StateSource

__all__ = ["ResultsSource", "StateSource", "register"]

quiet_planners()  # Spark imports this where it plans a query on a source
