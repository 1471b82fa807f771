"""The two state machines of paper 004 as tables, without I/O: the scheduler (Figure 3) and an operator instance (2).

Guards are part of events: the caller says `LAST_REPLY_RECEIVED` if no other reply is missing. An event
that has no row for a state is refused and changes nothing. Two events are not in the paper: `SKETCH_REFRESHED` and
`SYNC_DUE` separate synchronisation from sketches, so that each has its own period.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from elastic.errors import IllegalTransition


class SchedulerState(StrEnum):
    """
    | state | meaning |
    | --- | --- |
    | round robin | some instance has not sent a sketch yet |
    | send all | the next k rows go to the k instances in turn, each with a request to synchronise |
    | wait all | rows are scheduled by estimates; some replies are missing |
    | run | rows are scheduled by estimates |
    """

    ROUND_ROBIN = "round robin"
    SEND_ALL = "send all"
    WAIT_ALL = "wait all"
    RUN = "run"


class SchedulerEvent(StrEnum):
    SKETCH_RECEIVED = "sketch received"
    LAST_SKETCH_RECEIVED = "last missing sketch received"
    SKETCH_REFRESHED = "sketch refreshed"
    SYNC_DUE = "sync due"
    REQUEST_SENT = "request sent"
    LAST_REQUEST_SENT = "last request sent"
    REPLY_RECEIVED = "reply received"
    LAST_REPLY_RECEIVED = "last missing reply received"
    STALE_REPLY_RECEIVED = "stale reply received"


class SchedulerCommand(StrEnum):
    KEEP_SKETCH = "keep sketch"
    START_EPOCH = "start epoch"
    KEEP_REPLY = "keep reply"
    CORRECT_ESTIMATES = "correct estimates"


class InstanceState(StrEnum):
    """
    | state | meaning |
    | --- | --- |
    | start | the first window of a sketch |
    | stabilizing | every further window is compared with the one before |
    """

    START = "start"
    STABILIZING = "stabilizing"


class InstanceEvent(StrEnum):
    WINDOW_ENDED = "window ended"
    UNSTABLE_WINDOW_ENDED = "unstable window ended"
    STABLE_WINDOW_ENDED = "stable window ended"
    SYNC_REQUESTED = "sync requested"


class InstanceCommand(StrEnum):
    TAKE_SNAPSHOT = "take snapshot"
    SEND_SKETCH = "send sketch"
    CLEAR_SKETCH = "clear sketch"
    SEND_REPLY = "send reply"


_S, _E, _C = SchedulerState, SchedulerEvent, SchedulerCommand
_RENEW = (_S.SEND_ALL, (_C.KEEP_SKETCH, _C.START_EPOCH))

SCHEDULER_TABLE: dict[tuple[SchedulerState, SchedulerEvent], tuple[SchedulerState, tuple[SchedulerCommand, ...]]] = {
    (_S.ROUND_ROBIN, _E.SKETCH_RECEIVED): (_S.ROUND_ROBIN, (_C.KEEP_SKETCH,)),
    (_S.ROUND_ROBIN, _E.LAST_SKETCH_RECEIVED): _RENEW,
    (_S.SEND_ALL, _E.REQUEST_SENT): (_S.SEND_ALL, ()),
    (_S.SEND_ALL, _E.LAST_REQUEST_SENT): (_S.WAIT_ALL, ()),
    (_S.SEND_ALL, _E.REPLY_RECEIVED): (_S.SEND_ALL, (_C.KEEP_REPLY,)),
    (_S.SEND_ALL, _E.STALE_REPLY_RECEIVED): (_S.SEND_ALL, ()),
    (_S.SEND_ALL, _E.SKETCH_RECEIVED): _RENEW,
    (_S.SEND_ALL, _E.SKETCH_REFRESHED): (_S.SEND_ALL, (_C.KEEP_SKETCH,)),
    (_S.WAIT_ALL, _E.REPLY_RECEIVED): (_S.WAIT_ALL, (_C.KEEP_REPLY,)),
    (_S.WAIT_ALL, _E.LAST_REPLY_RECEIVED): (_S.RUN, (_C.KEEP_REPLY, _C.CORRECT_ESTIMATES)),
    (_S.WAIT_ALL, _E.STALE_REPLY_RECEIVED): (_S.WAIT_ALL, ()),
    (_S.WAIT_ALL, _E.SKETCH_RECEIVED): _RENEW,
    (_S.WAIT_ALL, _E.SKETCH_REFRESHED): (_S.WAIT_ALL, (_C.KEEP_SKETCH,)),
    (_S.RUN, _E.STALE_REPLY_RECEIVED): (_S.RUN, ()),
    (_S.RUN, _E.SKETCH_RECEIVED): _RENEW,
    (_S.RUN, _E.SKETCH_REFRESHED): (_S.RUN, (_C.KEEP_SKETCH,)),
    (_S.RUN, _E.SYNC_DUE): (_S.SEND_ALL, (_C.START_EPOCH,)),
}

_I, _V, _A = InstanceState, InstanceEvent, InstanceCommand
_REPORT = (_I.START, (_A.SEND_SKETCH, _A.CLEAR_SKETCH))

INSTANCE_TABLE: dict[tuple[InstanceState, InstanceEvent], tuple[InstanceState, tuple[InstanceCommand, ...]]] = {
    (_I.START, _V.WINDOW_ENDED): (_I.STABILIZING, (_A.TAKE_SNAPSHOT,)),
    # Not in the paper: an instance that reports every window treats each as stable.
    (_I.START, _V.STABLE_WINDOW_ENDED): _REPORT,
    (_I.START, _V.SYNC_REQUESTED): (_I.START, (_A.SEND_REPLY,)),
    (_I.STABILIZING, _V.UNSTABLE_WINDOW_ENDED): (_I.STABILIZING, (_A.TAKE_SNAPSHOT,)),
    (_I.STABILIZING, _V.STABLE_WINDOW_ENDED): _REPORT,
    (_I.STABILIZING, _V.SYNC_REQUESTED): (_I.STABILIZING, (_A.SEND_REPLY,)),
}

_State = TypeVar("_State", bound=StrEnum)
_Event = TypeVar("_Event", bound=StrEnum)
_Command = TypeVar("_Command", bound=StrEnum)


def next_state(
    table: Mapping[tuple[_State, _Event], tuple[_State, tuple[_Command, ...]]], state: _State, event: _Event
) -> tuple[_State, tuple[_Command, ...]]:
    """Return what a table says; `IllegalTransition` if it says nothing."""
    try:
        return table[state, event]
    except KeyError:
        raise IllegalTransition(state, event, "a shuffle") from None


def render_diagram(table: Mapping[tuple[_State, _Event], tuple[_State, tuple[_Command, ...]]]) -> str:
    """Return a table as a state diagram in Mermaid's syntax, for the documentation."""
    start = next(iter(table))[0]
    lines = ["stateDiagram-v2", f"    [*] --> {_identifier(start)}"]
    for (state, event), (after, commands) in table.items():
        if (after, commands) != (state, ()):
            label = event + (f" / {', '.join(commands)}" if commands else "")
            lines.append(f"    {_identifier(state)} --> {_identifier(after)}: {label}")
    return "\n".join(lines)


def _identifier(state: str) -> str:
    return state.replace(" ", "_")
