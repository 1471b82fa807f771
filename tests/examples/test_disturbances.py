"""A schedule of disturbances depends on its seed and fits into its time."""

import hypothesis.strategies as st
from hypothesis import given

from examples.frequent_patterns.disturbances import Schedule


@given(st.floats(1, 3_600), st.integers(0, 20), st.integers(0, 20), st.integers())
def test_scheduled_times_are_ascending_and_within_the_time(
    seconds: float, migrations: int, kills: int, seed: int
) -> None:
    planned = Schedule.spread_evenly(seconds, migrations, kills, seed)
    assert planned == Schedule.spread_evenly(seconds, migrations, kills, seed)
    assert (len(planned.migrations), len(planned.kills)) == (migrations, kills)
    for times in (planned.migrations, planned.kills):
        assert list(times) == sorted(times)
        assert all(0 <= at <= seconds + 1.5 for at in times)


def test_nodes_die_both_while_state_moves_and_while_it_does_not() -> None:
    planned = Schedule.spread_evenly(600, 10, 5, seed=1)
    soon = [any(0 <= kill - begins <= 1.5 for begins in planned.migrations) for kill in planned.kills]
    assert soon.count(True) >= 3
    assert soon.count(False) >= 1
