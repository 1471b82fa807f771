"""Comparison with Spark's own stateful operators: `make bench-runtime`."""
