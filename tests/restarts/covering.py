"""All-pairs covering arrays: few combinations in which every two values of two factors occur together."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

Combination = dict[str, Any]


def cover_pairs(factors: Mapping[str, Sequence[Any]]) -> list[Combination]:
    """Combinations that cover every pair of values of every two factors; the same ones every time.

    Greedy: each combination starts with a pair that is not covered yet, and every other factor takes the value that
    covers most pairs with those chosen before. Not the fewest possible, but close: the number grows with the product of
    the two largest factors, not with that of all.
    """
    left = {
        ((one, a), (other, b))
        for one, other in combinations(factors, 2)
        for a, b in product(range(len(factors[one])), range(len(factors[other])))
    }
    found: list[Combination] = []
    while left:
        chosen = dict(min(left))
        for factor in factors:
            if factor not in chosen:
                chosen[factor] = _best(factor, len(factors[factor]), chosen, left, turn=len(found))
        left -= _pairs(chosen, factors)
        found.append({factor: factors[factor][chosen[factor]] for factor in factors})
    return found


def _best(factor: str, values: int, chosen: dict[str, int], left: set[Any], turn: int) -> int:
    """The value that covers most; among equals another one in every turn."""

    def new_pairs(value: int) -> int:
        mine = (factor, value)
        return sum(((mine, other) in left) + ((other, mine) in left) for other in chosen.items())

    return max(range(values), key=lambda value: (new_pairs(value), -((value - turn) % values)))


def _pairs(chosen: dict[str, int], factors: Mapping[str, Sequence[Any]]) -> set[Any]:
    return set(combinations([(factor, chosen[factor]) for factor in factors], 2))
