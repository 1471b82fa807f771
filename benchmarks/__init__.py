"""Benchmarks: each prints a table and writes a picture into benchmarks/results. They are not timed tests."""
