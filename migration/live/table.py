"""The protocol of one hand-over: some tasks of one source go to one target.

| phase | meaning |
| --- | --- |
| planned | nothing has happened |
| releasing | the source finishes its batch, stops these tasks and stores or offers their state |
| installing | the target fetches the state, verifies it and catches up with what came in between |
| installed | the target works; the assignment is not committed yet |
| restoring | the assignment is committed, but the target was lost meanwhile and fetches the state once more |
| done | the assignment is committed, the target works, and the source forgets |

The source keeps the state until the end, and the log keeps the input since the last snapshot. So a source that is lost
before its states are stored is not waited for: the target restores the tasks from the last snapshot and the log, and is
told so again if it waits for a state that only the source had. A target that is lost is replaced under its name by
another incarnation, which is given the same tasks again.
"""

from enum import StrEnum

from migration.errors import IllegalEvent


class Phase(StrEnum):
    PLANNED = "planned"
    RELEASING = "releasing"
    INSTALLING = "installing"
    INSTALLED = "installed"
    RESTORING = "restoring"
    DONE = "done"


class Event(StrEnum):
    STARTED = "started"
    STATE_RELEASED = "state released"
    SOURCE_LOST = "source lost"
    TARGET_LOST = "target lost"
    STATE_INSTALLED = "state installed"
    ASSIGNMENT_COMMITTED = "assignment committed"


class Action(StrEnum):
    RELEASE = "release state"
    INSTALL = "install state"
    FORGET = "forget state"


# What is not a row is refused. A row that leads to its own phase says that the event is expected and changes nothing.
TABLE: dict[tuple[Phase, Event], tuple[Phase, tuple[Action, ...]]] = {
    (Phase.PLANNED, Event.STARTED): (Phase.RELEASING, (Action.RELEASE,)),
    (Phase.PLANNED, Event.SOURCE_LOST): (Phase.PLANNED, ()),
    (Phase.PLANNED, Event.TARGET_LOST): (Phase.PLANNED, ()),
    (Phase.RELEASING, Event.STATE_RELEASED): (Phase.INSTALLING, (Action.INSTALL,)),
    (Phase.RELEASING, Event.SOURCE_LOST): (Phase.INSTALLING, (Action.INSTALL,)),
    (Phase.RELEASING, Event.TARGET_LOST): (Phase.RELEASING, ()),
    (Phase.INSTALLING, Event.STATE_INSTALLED): (Phase.INSTALLED, ()),
    (Phase.INSTALLING, Event.SOURCE_LOST): (Phase.INSTALLING, (Action.INSTALL,)),
    (Phase.INSTALLING, Event.TARGET_LOST): (Phase.INSTALLING, (Action.INSTALL,)),
    (Phase.INSTALLING, Event.ASSIGNMENT_COMMITTED): (Phase.RESTORING, ()),
    (Phase.INSTALLED, Event.SOURCE_LOST): (Phase.INSTALLED, ()),
    (Phase.INSTALLED, Event.TARGET_LOST): (Phase.INSTALLING, (Action.INSTALL,)),
    (Phase.INSTALLED, Event.ASSIGNMENT_COMMITTED): (Phase.DONE, (Action.FORGET,)),
    (Phase.RESTORING, Event.STATE_INSTALLED): (Phase.DONE, (Action.FORGET,)),
    (Phase.RESTORING, Event.SOURCE_LOST): (Phase.RESTORING, (Action.INSTALL,)),
    (Phase.RESTORING, Event.TARGET_LOST): (Phase.RESTORING, (Action.INSTALL,)),
    (Phase.DONE, Event.SOURCE_LOST): (Phase.DONE, ()),
    (Phase.DONE, Event.TARGET_LOST): (Phase.DONE, ()),
}


def next_phase(phase: Phase, event: Event) -> tuple[Phase, tuple[Action, ...]]:
    try:
        return TABLE[phase, event]
    except KeyError:
        raise IllegalEvent(phase, event) from None


def diagram() -> str:
    """The table as a state diagram in Mermaid's words, for the documents."""
    lines = ["stateDiagram-v2", "    [*] --> planned"]
    for (phase, event), (after, actions) in TABLE.items():
        if (after, actions) != (phase, ()):
            label = event + (f" / {', '.join(actions)}" if actions else "")
            lines.append(f"    {phase} --> {after}: {label}")
    return "\n".join([*lines, "    done --> [*]"])
