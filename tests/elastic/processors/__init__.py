"""Tests of PySpark's stateful processors as operators, in one process."""
