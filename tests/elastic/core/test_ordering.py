"""Messages over a network that delays, repeats and reorders them are handled once, in the order they were sent."""

from hypothesis import given
from hypothesis import strategies as st

from elastic.core.ordering import InOrder


@given(st.permutations([*range(6), *range(6)]))
def test_every_item_comes_out_once_and_in_order(arrivals: list[int]) -> None:
    order: InOrder[int] = InOrder()
    assert [item for number in arrivals for item in order.accept(number, number)] == list(range(6))


def test_an_item_that_is_early_waits_for_those_before_it() -> None:
    order: InOrder[str] = InOrder()
    assert order.accept(1, "b") == []
    assert order.accept(0, "a") == ["a", "b"]
    assert order.accept(1, "b") == []
