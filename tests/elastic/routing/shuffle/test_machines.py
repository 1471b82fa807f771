"""The state machines of paper 004."""

from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from elastic.errors import IllegalTransition
from elastic.routing.shuffle.machines import (
    INSTANCE_TABLE,
    SCHEDULER_TABLE,
    InstanceEvent,
    InstanceState,
    SchedulerCommand,
    SchedulerEvent,
    SchedulerState,
    next_state,
    render_diagram,
)

DOCUMENT = Path(__file__).parents[4] / "docs" / "shuffle.md"
MACHINES: list[tuple[Any, type[StrEnum], type[StrEnum]]] = [
    (SCHEDULER_TABLE, SchedulerState, SchedulerEvent),
    (INSTANCE_TABLE, InstanceState, InstanceEvent),
]


@pytest.mark.parametrize(("table", "states", "events"), MACHINES)
def test_an_event_without_a_row_is_refused_and_all_others_are_obeyed(
    table: Any, states: type[StrEnum], events: type[StrEnum]
) -> None:
    for state, event in product(states, events):
        if (state, event) in table:
            assert next_state(table, state, event) == table[state, event]
        else:
            with pytest.raises(IllegalTransition) as refused:
                next_state(table, state, event)
            assert (refused.value.phase, refused.value.event) == (state, event)


@pytest.mark.parametrize(("table", "states", "events"), MACHINES)
def test_every_state_is_reached_and_every_event_is_expected_somewhere(
    table: Any, states: type[StrEnum], events: type[StrEnum]
) -> None:
    assert {after for after, _ in table.values()} == set(states)
    assert {event for _, event in table} == set(events)


def test_the_scheduler_starts_an_epoch_exactly_when_it_enters_send_all() -> None:
    for (state, event), (after, commands) in SCHEDULER_TABLE.items():
        is_renewed = event in (
            SchedulerEvent.SKETCH_RECEIVED,
            SchedulerEvent.LAST_SKETCH_RECEIVED,
            SchedulerEvent.SYNC_DUE,
        )
        begins = after is SchedulerState.SEND_ALL and is_renewed
        assert (SchedulerCommand.START_EPOCH in commands) == begins, (state, event)


def test_estimates_are_corrected_only_on_the_way_to_run() -> None:
    for (state, _), (after, commands) in SCHEDULER_TABLE.items():
        entered = after is SchedulerState.RUN and state is not SchedulerState.RUN
        assert (SchedulerCommand.CORRECT_ESTIMATES in commands) == entered


def test_the_diagrams_in_the_document_are_drawn_from_the_tables() -> None:
    text = DOCUMENT.read_text()
    assert render_diagram(SCHEDULER_TABLE) in text
    assert render_diagram(INSTANCE_TABLE) in text
