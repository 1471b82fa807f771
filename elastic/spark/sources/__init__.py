"""A job's results and its state as Spark data sources, `elastic` and `elastic-state`."""

from elastic.spark.sources.registration import register_sources
from elastic.spark.sources.results_source import ResultsSource
from elastic.spark.sources.state_source import StateSource
from elastic.spark.worker_exit import silence_planner

__all__ = ["ResultsSource", "StateSource", "register_sources"]

silence_planner()  # Spark imports this package in the processes that plan a query on a source
