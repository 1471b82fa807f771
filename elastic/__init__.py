"""Elastic stateful operators on Spark: the engine and its front doors."""

from importlib.metadata import version

__version__ = version("spark-elastic")
