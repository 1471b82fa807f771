"""Steps of a manifest: what a driver that restarts knows of the batches before it."""

from elastic.core.ids import UnitId
from elastic.core.steps import Position, steps_of
from storage.state import BatchTime, LogRef, Manifest

FIRST = Manifest.first([UnitId(0, 0)])
TIME = BatchTime(0, 1_000)


def test_the_last_round_of_an_incomplete_batch_is_a_step_even_without_rows() -> None:
    begun = FIRST.with_batch(0, 0, False, (), TIME)
    assert [(*step.position, step.complete) for step in steps_of(begun)] == [(0, 0, False)]
    went_on = begun.with_batch(0, 1, False, ())
    assert [(*step.position, step.complete) for step in steps_of(went_on)] == [(0, 0, False), (0, 1, False)]


def test_the_last_round_with_rows_ends_a_complete_batch() -> None:
    ref = LogRef.new(0, 1, 0)
    ended = FIRST.with_batch(0, 0, False, (), TIME).with_batch(0, 1, False, (ref,)).with_batch(0, 2, True, ())
    first, last = steps_of(ended)
    assert (first.position, first.complete) == (Position(0, 0), False)  # type: ignore[arg-type]
    assert (last.position, last.complete, last.logs) == (Position(0, 1), True, (ref,))  # type: ignore[arg-type]
