"""Try operators out in one process, with faults as items of the test's data."""

from elastic.operators.testing.story import Batch, Crash, NotReplayable, Scale
from elastic.operators.testing.tester import OperatorTester

__all__ = ["Batch", "Crash", "NotReplayable", "OperatorTester", "Scale"]
