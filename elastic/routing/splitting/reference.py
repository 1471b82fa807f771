"""The algorithms row by row, in plain Python: what the compiled loops must equal. About 1 us per row."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence

import numpy as np
import numpy.typing as npt

from elastic.routing.splitting.targets import Targets
from elastic.routing.xxh64 import PRIME_1, PRIME_2, PRIME_3

_WORD, _LOW = (1 << 64) - 1, (1 << 32) - 1

Loads = MutableSequence[int] | npt.NDArray[np.int64]


def mix(key_hash: int, seed: int) -> int:
    mixed = key_hash ^ (seed * int(PRIME_1) & _WORD)
    mixed ^= mixed >> 33
    mixed = mixed * int(PRIME_2) & _WORD
    mixed ^= mixed >> 29
    mixed = mixed * int(PRIME_3) & _WORD
    return mixed ^ mixed >> 32


def find_pair(key_hash: int, targets: Targets) -> tuple[int, int]:
    """Return the positions of both choices: any target, and any target of another worker."""
    mixed, m = mix(key_hash, targets.seed), len(targets)
    first = (mixed >> 32) * m >> 32
    owner = targets.arrays.workers[first]
    start, end = targets.arrays.starts[owner : owner + 2].tolist()
    others = [*range(end, m), *range(start)]
    return first, others[(mixed & _LOW) * len(others) >> 32] if others else 0


def find_position(key_hash: int, worker: int, targets: Targets) -> int:
    """Return the position of the target that a key uses on a given worker."""
    start, end = targets.arrays.starts[worker : worker + 2].tolist()
    return int(start + ((mix(key_hash, targets.seed) & _LOW) * (end - start) >> 32))


def choose_least_loaded(positions: Iterable[int], targets: Targets, loads: Loads) -> int:
    """Return the position whose worker has the least load, the first one of equals."""
    return min(positions, key=lambda position: int(loads[int(targets.arrays.workers[position])]))


def find_least_loaded_worker(loads: Loads) -> int:
    """Return the worker with the least load, the first one of equals."""
    return min(range(len(loads)), key=lambda worker: int(loads[worker]))


def _send(position: int, targets: Targets, loads: Loads) -> int:
    loads[int(targets.arrays.workers[position])] += 1
    return int(targets.arrays.targets[position])


def route_two_choices(hashes: Iterable[int], targets: Targets, loads: Loads) -> list[int]:
    """PKG: every row goes to the less loaded of its two choices."""
    return [
        _send(choose_least_loaded(find_pair(int(key_hash), targets), targets, loads), targets, loads)
        for key_hash in hashes
    ]


def route_unsplit(
    hashes: Iterable[int], targets: Targets, loads: Loads, positions: MutableMapping[int, int], *, is_greedy: bool
) -> list[int]:
    """PoTC and On-Greedy: the first row of a key decides for all."""
    chosen = []
    for key_hash in map(int, hashes):
        if key_hash not in positions:
            if is_greedy:
                positions[key_hash] = find_position(key_hash, find_least_loaded_worker(loads), targets)
            else:
                positions[key_hash] = choose_least_loaded(find_pair(key_hash, targets), targets, loads)
        chosen.append(_send(positions[key_hash], targets, loads))
    return chosen


def assign_in_order(counts: Iterable[int], workers: int) -> list[int]:
    """Off-Greedy: each key, given with its number of rows, goes to the worker with the fewest rows so far."""
    loads, chosen = [0] * workers, []
    for count in counts:
        worker = find_least_loaded_worker(loads)
        loads[worker] += int(count)
        chosen.append(worker)
    return chosen


class ReferenceSketch:
    """SpaceSaving with lists: a key without a counter takes over the smallest one, the first of equals."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows = 0
        self.hashes: list[int] = []
        self.counts: list[int] = []
        self.errors: list[int] = []

    def count_row(self, key_hash: int) -> int:
        """Count one row, and return the count of its key."""
        self.rows += 1
        if key_hash in self.hashes:
            counter = self.hashes.index(key_hash)
        elif len(self.hashes) < self.capacity:
            counter = len(self.hashes)
            self.hashes.append(key_hash)
            self.counts.append(0)
            self.errors.append(0)
        else:
            counter = self.counts.index(min(self.counts))
            self.hashes[counter], self.errors[counter] = key_hash, self.counts[counter]
        self.counts[counter] += 1
        return self.counts[counter]


def route_with_heads(
    hashes: Iterable[int], targets: Targets, loads: Loads, sketch: ReferenceSketch, share: float, choices: int
) -> list[int]:
    """D-Choices, and W-Choices for 0 choices: rows of the head go to the least loaded of `choices`, or of all."""
    chosen = []
    for key_hash in map(int, hashes):
        is_head = sketch.count_row(key_hash) >= share * sketch.rows
        positions: tuple[int, ...] = find_pair(key_hash, targets)
        if is_head and choices:
            more = (mix(key_hash, targets.seed + number) for number in range(2, choices))
            positions = (*positions, *((mixed >> 32) * len(targets) >> 32 for mixed in more))
        elif is_head:
            positions = (find_position(key_hash, find_least_loaded_worker(loads), targets),)
        chosen.append(_send(choose_least_loaded(positions, targets, loads), targets, loads))
    return chosen


def level_pairs(found: Mapping[tuple[int, int], int], loads: MutableSequence[int]) -> dict[tuple[int, int], int]:
    """Return how many of the rows of each pair of workers go to the lower one, levelling loads pair by pair."""
    to_low = {pair: rows // 2 for pair, rows in found.items()}
    for (low, high), rows in found.items():
        loads[low] += to_low[low, high]
        loads[high] += rows - to_low[low, high]
    previous = max(loads) + 2
    while max(loads) < previous - 1:
        previous = max(loads)
        for low, high in list_pairs(len(loads)):
            rows, flow = found.get((low, high), 0), to_low.get((low, high), 0)
            shift = max(-flow, min((loads[high] - loads[low]) // 2, rows - flow))
            to_low[low, high] = flow + shift
            loads[low] += shift
            loads[high] -= shift
    return to_low


def list_pairs(workers: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs of workers in the order of a tournament by the circle method."""
    seats = workers - 1 + workers % 2
    for number in range(seats):
        if workers % 2 == 0:
            yield number, workers - 1
        for distance in range(1, seats // 2 + 1):
            one, other = (number + distance) % seats, (number - distance) % seats
            yield min(one, other), max(one, other)
