"""Damage and forgery: thousands of them, always refused, never decoded."""

import pickle
from collections.abc import Callable
from itertools import cycle, islice
from random import Random

import pytest

from storage.codec import COMPRESSIONS, Secret, pack, read_header, unpack, unpack_part
from storage.errors import BadObject
from tests.storage.codec.objects import KEY, SECRET, VALUES, packed

TRIALS = 6_000


def flipped(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for place in random.sample(range(len(data)), random.randint(1, 3)):
        changed[place] ^= random.randint(1, 255)
    return bytes(changed)


def truncated(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data))]


def extended(data: bytes, random: Random) -> bytes:
    return data + random.choice([b"\0", b"\0" * 64, data, random.randbytes(random.randint(1, 99))])


def half_written(data: bytes, random: Random) -> bytes:
    """The length is right, but from some place on there are zeros."""
    last = len(data.rstrip(b"\0")) - 1
    return data[: random.randint(0, last)].ljust(len(data), b"\0")


def cut_out(data: bytes, random: Random) -> bytes:
    start, stop = sorted(random.sample(range(len(data) + 1), 2))
    return data[:start] + data[stop:]


DAMAGES: list[Callable[[bytes, Random], bytes]] = [flipped, flipped, truncated, extended, half_written, cut_out]


def test_a_damaged_object_is_always_refused_and_nothing_else_happens() -> None:
    objects = [packed(value, compression) for value in VALUES.values() for compression in COMPRESSIONS]
    objects.append(bytes(pack(VALUES, key=KEY, secret=SECRET, meta={"epoch": 3})))
    for seed, data in enumerate(islice(cycle(objects), TRIALS)):
        damage = DAMAGES[seed // len(objects) % len(DAMAGES)]
        damaged = damage(data, Random(seed))  # noqa: S311
        assert damaged != data
        try:
            dict(unpack(damaged, key=KEY, secret=SECRET).parts)
        except BadObject:
            continue
        pytest.fail(f"object {seed % len(objects)}, {damage.__name__} with seed {seed}, was accepted")


def test_a_damaged_part_is_always_refused_in_ranged_reads() -> None:
    data = pack(VALUES, key=KEY, secret=SECRET)
    header = read_header(data, key=KEY, secret=SECRET)
    for seed, part in enumerate(islice(cycle(header.parts.values()), 1_000)):
        stored = bytes(data[part.offset : part.stop])
        damaged = DAMAGES[seed // len(header.parts) % len(DAMAGES)](stored, Random(seed))  # noqa: S311
        with pytest.raises(BadObject, match=repr(part.name)):
            unpack_part(header, part.name, damaged)


def test_a_flip_of_any_bit_of_a_small_object_is_refused() -> None:
    data = bytes(pack({"a": b"12", "b": 3}, key=KEY, secret=SECRET))
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BadObject):
            unpack(damaged, key=KEY, secret=SECRET)


EXPLOSIONS: list[str] = []


def explode() -> None:
    EXPLOSIONS.append("boom")


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return explode, ()


def test_only_a_verified_object_is_unpickled() -> None:
    EXPLOSIONS.clear()
    theirs = packed(Bomb(), secret=Secret.random())
    elsewhere = packed(Bomb(), key="units/task-8/3.state")
    mine = packed(Bomb(), "none")
    unsigned = pickle.dumps(Bomb())
    grafted = packed(b"-" * 64, "none")[:-64] + unsigned.ljust(64, b".")
    forged = [
        theirs,
        elsewhere,
        unsigned,
        grafted,
        mine + b".",
        mine[:-1] + b"!",
        *(mine[:n] for n in range(len(mine))),
    ]
    for data in forged:
        with pytest.raises(BadObject):
            dict(unpack(data, key=KEY, secret=SECRET).parts)
    assert EXPLOSIONS == []
    dict(unpack(mine, key=KEY, secret=SECRET).parts)
    assert EXPLOSIONS == ["boom"]  # the bomb was live
