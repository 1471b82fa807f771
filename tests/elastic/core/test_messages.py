"""Messages between driver and nodes: each is the same after its way through JSON, and its kind names its class."""

import json
from dataclasses import dataclass, fields, replace

import pytest

from elastic.core.ids import Batch, Epoch, UnitId
from elastic.core.json_codec import derive_codec
from elastic.core.key_statistics import KeyColumns, KeyStatistics, UnitKeys
from elastic.core.messages import (
    COMMANDS,
    KINDS,
    REPORTS,
    ApplyStep,
    CaughtUp,
    DropUnits,
    FollowBatches,
    Heartbeat,
    InstallUnits,
    LeaveJob,
    Message,
    NodeFailed,
    NodeJoined,
    NodeReport,
    ReleaseUnits,
    SnapshotTaken,
    SpareReady,
    StandbysCaughtUp,
    StandbysDropped,
    StateStored,
    StepApplied,
    StepEnded,
    StepOverdue,
    StepStarted,
    TakeSnapshot,
    UnchangedUnit,
    UnitHandle,
    UnitsInstalled,
    UnitsReleased,
    decode_message,
    encode_message,
)
from elastic.core.statistics import RunningStep, UnitStatistics
from elastic.core.steps import Position, Step
from elastic.results import ResultRef
from storage.state import BatchTime, LogRef, StateRef

LEASE = "000000000001-000000001-ab"
NODE = ("node-1", "node-1.1")
UNITS = (UnitId(0, 3), UnitId(2, 1))
AT = Position(Batch(7), 1)
STATE = StateRef(f"operators/job/state/{LEASE}/task-00003-7-x.state", UNITS[0], 7, 10, LEASE)
STEP = Step(AT, True, (LogRef.new(7, 1, 0, 0),), BatchTime(7, 1_000, 5, None))
MESSAGES: list[Message] = [
    InstallUnits(
        Epoch(2),
        (
            UnitHandle(UNITS[0], STATE, Batch(7), AT, "host:1", (AT,)),
            UnitHandle(UNITS[1], None, Batch(-1), Position(Batch(-1), 0)),
        ),
        (STEP,),
        careful=True,
        suspects=(AT,),
    ),
    ApplyStep(Epoch(2), STEP),
    TakeSnapshot(Epoch(2), LEASE, {UNITS[0]: Batch(3), UNITS[1]: Batch(-1)}),
    ReleaseUnits(Epoch(2), UNITS, LEASE, direct=True),
    DropUnits(Epoch(2), UNITS),
    LeaveJob(),
    NodeJoined(*NODE, "host:1", 17, "executor"),
    SpareReady("", "spare-1", "host:2", 12),
    StepApplied(*NODE, AT, UNITS),
    StepApplied(*NODE, AT, UNITS, STEP.logs[0], (1, 2), ResultRef("a key", 7, 1, (3,), 2, 9), 5),
    StepStarted(*NODE, AT, UNITS),
    StepEnded(*NODE, AT, UNITS),
    StepOverdue(*NODE, AT, UNITS[:1], 1.5),
    CaughtUp(*NODE, 2, 3, 4, 0.5),
    SnapshotTaken(*NODE, LEASE, (STATE,), (UnchangedUnit(UNITS[1], Batch(2), Batch(7)),)),
    UnitsReleased(*NODE, (STATE,), stored=False),
    StateStored(*NODE, STATE),
    UnitsInstalled(*NODE, UNITS, 12),
    NodeFailed(*NODE, {"type": "ElasticError", "message": "no", "facts": {}}),
    Heartbeat(*NODE),
    Heartbeat(
        *NODE,
        busy_seconds=1.5,
        pending_steps=2,
        epoch=Epoch(3),
        loading=1,
        done_batch=Batch(6),
        next_timer_ms=1_000,
        staged_bytes=8,
        replayed_rows=9,
        units=(UnitStatistics(UNITS[1], 10, 0.5, 100),),
        keys=KeyStatistics.of(
            3,
            10.0,
            (UnitKeys(UNITS[1], 9.5, 7, 20, 0.25, 800, 2),),
            KeyColumns.of([-5, 2**62], [0, 0], [4, 3], [0.1, 0.05], [80, 8]),
            {0: "a"},
            5,
            stride=4,
        ),
        running=RunningStep(AT, UNITS, 0.1, 0.2),
        standbys=(UnitStatistics(UNITS[0], 5, 0.1, 10),),
        followed_batch=Batch(5),
    ),
    FollowBatches(Epoch(2), Batch(6)),
    StandbysCaughtUp(*NODE, UNITS),
    StandbysDropped(*NODE, UNITS),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_the_same_after_its_way_through_json(message: Message) -> None:
    caused = replace(message, cause="e1234")
    decoded = decode_message(json.loads(json.dumps(encode_message(caused))))
    assert decoded == message
    assert decoded.cause == "e1234"
    for field in fields(message):
        assert type(getattr(decoded, field.name)) is type(getattr(caused, field.name))


def test_every_message_is_tried_above_and_every_report_names_its_node() -> None:
    assert {type(message) for message in MESSAGES} == set(KINDS) == {*COMMANDS, *REPORTS}
    assert all(issubclass(report, NodeReport) for report in REPORTS)


def test_the_kind_of_a_message_is_the_name_of_its_class() -> None:
    assert KINDS[InstallUnits] == "install_units"
    assert KINDS[Heartbeat] == "heartbeat"
    assert encode_message(LeaveJob())["kind"] == "leave_job"


def test_units_are_numbers_in_json() -> None:
    assert DropUnits(Epoch(1), UNITS).to_json()["units"] == [unit.number for unit in UNITS]


def test_an_unknown_kind_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="no message has the kind 'pulse'"):
        decode_message({"kind": "pulse", "message": {}})


@dataclass(frozen=True)
class Ambiguous:
    value: int | str


def test_a_field_that_json_cannot_hold_is_refused_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="a message cannot hold"):
        derive_codec(Ambiguous)
