"""Tests of operators in one process, with faults as items of the test data."""

from elastic.operators.testing.scenario import Crash, InputBatch, NotReplayable, Rekey, Scale
from elastic.operators.testing.tester import OperatorTester

__all__ = ["Crash", "InputBatch", "NotReplayable", "OperatorTester", "Rekey", "Scale"]
