"""Half-linear half-exponential discretisation (HLHE, paper 000, section IV-B): few values, nearly equal sums."""

import math
from collections.abc import Iterable

import numpy as np

from migration.errors import InvalidInput
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled

DEFAULT_R = 3  # the paper's default: R = 2^3 = 8
_MOST_R = 52  # beyond it, sums of representative values are no longer exact in float64


def discretise(values: Floats, r: int = DEFAULT_R, unit: float | None = None, groups: Nodes | None = None) -> Floats:
    """Replace every value by a neighbouring representative value, so that the sum of each group hardly changes.

    With R = 2^r and the largest value m, in units, the representative values are the multiples of R up to m and the
    powers of two below R. Values are taken in descending order; of the two representatives around a value x, lower
    <= x < upper, the one that leaves the smaller absolute deviation sum(x - y) of the group so far is taken, the lower
    one on a tie. Values at or above the largest representative have no other choice. Zeros stay zeros; values between 0
    and 1 unit become one or the other.

    `unit` is the smallest positive value unless given; `groups` numbers the group of every value. O(n log n).
    """
    check_r(r)
    positive = values[values > 0]
    if not len(positive):
        return values.copy()
    step = float(positive.min()) if unit is None else unit
    if not 0 < step < math.inf:
        raise InvalidInput(f"unit is {unit!r}. Give a positive number, or None for the smallest positive value.")
    group = np.zeros(len(values), np.int32) if groups is None else groups
    scaled = values / step
    order = np.argsort(-scaled, kind="stable")
    answer = np.empty_like(scaled)
    _choose(scaled, order, group, float(2**r), _largest(float(scaled.max()), r), np.zeros(int(group.max()) + 1), answer)
    return answer * step


def list_representatives(largest: float, r: int) -> list[float]:
    """All representative values up to a largest value in units, descending: y_1 > y_2 > ... > y_m = 1."""
    linear = [float(multiple * 2**r) for multiple in range(int(largest // 2**r), 0, -1)]
    return linear + [float(2**power) for power in range(r - 1, -1, -1)]


def discretise_by_definition(values: Iterable[float], r: int) -> list[float]:
    """Discretise a descending list of one group in units: the definition, from the list of representative values."""
    values = list(values)
    representatives, answer, deviation = list_representatives(max(values), r), [], 0.0
    for value in values:
        choices = [0.0]
        if value >= representatives[0]:
            choices = [representatives[0]]
        elif value > 0:
            lower = max((one for one in representatives if one <= value), default=0.0)
            choices = [lower, min(one for one in representatives if one > value)]
        chosen = min(choices, key=lambda one: (abs(deviation + value - one), one))
        deviation += value - chosen
        answer.append(chosen)
    return answer


def check_r(r: object) -> None:
    """Raise unless r is the exponent of a degree of discretisation R = 2^r."""
    if isinstance(r, bool) or not isinstance(r, int | np.integer) or not 0 <= r <= _MOST_R:
        raise InvalidInput(f"r is {r!r}. Give a whole number from 0 to {_MOST_R}; values become multiples of 2^r.")


def _largest(largest: float, r: int) -> float:
    """The largest representative value: R * floor(m / R), or R / 2 if m < R."""
    return math.floor(largest / 2**r) * 2.0**r if largest >= 2**r else max(2.0 ** (r - 1), 1.0)


@compiled
def _choose(
    values: Floats,
    order: np.ndarray[tuple[int], np.dtype[np.int64]],
    groups: Nodes,
    degree: float,
    largest: float,
    deviations: Floats,
    answer: Floats,
) -> None:
    for row in order:
        value = values[row]
        group = groups[row]
        if value == 0:
            answer[row] = 0.0
            continue
        if value >= largest:
            chosen = largest
        else:
            if value >= degree:
                lower = math.floor(value / degree) * degree
                upper = lower + degree
            elif value >= 1:
                lower = 2.0 ** (math.frexp(value)[1] - 1)
                upper = 2 * lower
            else:
                lower = 0.0
                upper = 1.0
            below = abs(deviations[group] + value - lower)
            above = abs(deviations[group] + value - upper)
            chosen = lower if below <= above else upper
        deviations[group] += value - chosen
        answer[row] = chosen
