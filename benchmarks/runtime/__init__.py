"""This engine next to Spark's own stateful operators: `make bench-runtime`."""
