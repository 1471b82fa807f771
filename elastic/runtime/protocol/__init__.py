"""The batch protocol without I/O: what the controller decides and what a node does next, given what happened.

`Coordinator` (events in, commands out) lives on the driver, `Host` on every node. Neither knows Spark, Flight or a
store; a real cluster and a simulated one run the same two classes.
"""

from elastic.runtime.protocol.coordinator import Coordinator
from elastic.runtime.protocol.host import Host, Work
from elastic.runtime.protocol.messages import (
    Adopt,
    Applied,
    Apply,
    CaughtUp,
    Failed,
    Forget,
    Held,
    Installed,
    Joined,
    Message,
    Release,
    Released,
    Saved,
    Snapshot,
    StepEnded,
    StepStarted,
    Stored,
    Unchanged,
)
from elastic.runtime.protocol.steps import Position, Step, steps_of

__all__ = [
    "Adopt",
    "Applied",
    "Apply",
    "CaughtUp",
    "Coordinator",
    "Failed",
    "Forget",
    "Held",
    "Host",
    "Installed",
    "Joined",
    "Message",
    "Position",
    "Release",
    "Released",
    "Saved",
    "Snapshot",
    "Step",
    "StepEnded",
    "StepStarted",
    "Stored",
    "Unchanged",
    "Work",
    "steps_of",
]
