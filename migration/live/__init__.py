"""Moving state while the stream runs: the protocol of one hand-over as a table, and a migration as a list of them.

No I/O: events in, commands out. Who carries the commands out, a real cluster or a simulated one, tells what happened.
"""

from migration.live.messages import (
    AssignmentCommitted,
    CommitAssignment,
    ForgetState,
    HandOver,
    InstallState,
    NodeLost,
    ReleaseState,
    StateInstalled,
    StateReleased,
)
from migration.live.run import Awaited, MigrationRun, Progress
from migration.live.table import TABLE, Event, Phase, next_phase

__all__ = [
    "TABLE",
    "AssignmentCommitted",
    "Awaited",
    "CommitAssignment",
    "Event",
    "ForgetState",
    "HandOver",
    "InstallState",
    "MigrationRun",
    "NodeLost",
    "Phase",
    "Progress",
    "ReleaseState",
    "StateInstalled",
    "StateReleased",
    "next_phase",
]
