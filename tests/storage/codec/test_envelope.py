"""Objects: several parts, one signature, one place; ranged reads; versions."""

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from storage import errors
from storage.codec import (
    CODECS,
    FORMAT_VERSION,
    HEADER_GUESS_BYTES,
    JSON,
    HeaderTooShort,
    Secret,
    pack,
    read_header,
    unpack,
    unpack_part,
)
from tests.storage.codec.objects import KEY, SECRET, VALUES, packed


def test_an_object_keeps_its_metadata_and_its_parts_in_order() -> None:
    parts = {"state": {"a": 1}, "pending": [("row", 1)], "": b"", "ünï": None}
    meta: dict[str, JSON] = {"epoch": 7, "unit": {"task": 3, "keys": ["a", None]}}
    found = unpack(pack(parts, key=KEY, secret=SECRET, meta=meta), key=KEY, secret=SECRET)
    assert found.meta == meta
    assert list(found.parts) == list(parts)
    assert dict(found.parts) == parts
    assert "other" not in found.parts
    with pytest.raises(KeyError):
        found.parts["other"]


def test_an_object_without_parts_is_an_object() -> None:
    found = unpack(pack({}, key=KEY, secret=SECRET, meta={"a": 1}), key=KEY, secret=SECRET)
    assert (found.meta, len(found.parts)) == ({"a": 1}, 0)


def test_the_same_state_is_the_same_bytes_and_no_stale_memory_is_in_them() -> None:
    parts = {"a": b"1", "b": b"2" * 65, "c": pa.table({"n": [1, None]})}
    first = pack(parts, key=KEY, secret=SECRET)
    del first  # its memory is likely to be used again
    filled = pa.allocate_buffer(2_000)
    memoryview(filled).cast("B")[:] = b"x" * 2_000
    del filled
    assert pack(parts, key=KEY, secret=SECRET) == pack(parts, key=KEY, secret=SECRET)


def test_packed_bytes_cannot_be_changed_by_accident() -> None:
    data = pack({"state": 1}, key=KEY, secret=SECRET)
    assert (data.readonly, data.format, data.nbytes) == (True, "B", len(data))


def test_a_part_is_decoded_once_and_only_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    real = CODECS["bytes"]

    def decode(data: memoryview, detail: Any) -> object:
        decoded.append(bytes(data))
        return real.decode(data, detail)

    monkeypatch.setattr("storage.codec.envelope.CODECS", {"bytes": real._replace(decode=decode)})
    parts = unpack(pack({"a": b"1", "b": b"2"}, key=KEY, secret=SECRET), key=KEY, secret=SECRET).parts
    assert [parts["b"], parts["b"]] == [b"2", b"2"]
    assert decoded == [b"2"]


def test_every_part_can_be_read_alone() -> None:
    data = pack(VALUES, key=KEY, secret=SECRET)
    header = read_header(data[:HEADER_GUESS_BYTES], key=KEY, secret=SECRET)
    assert header.size == len(data)
    for name, part in header.parts.items():
        assert (part.name, part.codec, part.offset % 64) == (name, name, 0)
        value = unpack_part(header, name, bytes(data[part.offset : part.stop]))
        assert str(value) == str(unpack(data, key=KEY, secret=SECRET).parts[name])
    with pytest.raises(errors.InvalidStorageInput, match=r"no part 'other'. It has 'arrow', 'numpy'"):
        unpack_part(header, "other", b"")


def test_a_header_longer_than_the_guess_says_how_long_it_is() -> None:
    data = pack({f"task-{index}": index for index in range(1_000)}, key=KEY, secret=SECRET)
    with pytest.raises(HeaderTooShort) as unknown:
        read_header(data[:5], key=KEY, secret=SECRET)
    for have in (unknown.value.needed, HEADER_GUESS_BYTES):
        with pytest.raises(HeaderTooShort) as known:
            read_header(data[:have], key=KEY, secret=SECRET)
        assert have < known.value.needed < len(data)
        assert len(read_header(data[: known.value.needed], key=KEY, secret=SECRET).parts) == 1_000


def test_a_damaged_part_is_named() -> None:
    data = bytearray(pack({"state": b"1" * 99, "pending": b"2" * 99}, key=KEY, secret=SECRET))
    header = read_header(data, key=KEY, secret=SECRET)
    data[header.parts["pending"].offset] ^= 1
    with pytest.raises(
        errors.DamagedObject, match=f"refused object '{KEY}': part 'pending' does not match its checksum"
    ):
        unpack(data, key=KEY, secret=SECRET)
    with pytest.raises(errors.DamagedObject, match="part 'state' has 7 bytes instead of"):
        unpack_part(header, "state", b"1" * 7)


def test_an_object_in_the_place_of_another_is_refused() -> None:
    data = packed({"a": 1}, key="units/task-1/3.state")
    with pytest.raises(errors.ForeignObject, match=r"signed for another key, 'units/task-1/3.state'"):
        unpack(data, key="units/task-2/3.state", secret=SECRET)


def test_two_parts_of_like_size_cannot_be_exchanged() -> None:
    data = pack({"a": b"1" * 64, "b": b"2" * 64}, key=KEY, secret=SECRET, compression="none")
    start = len(data) - 128
    swapped = bytes(data[:start]) + bytes(data[start + 64 :]) + bytes(data[start : start + 64])
    with pytest.raises(errors.DamagedObject, match="part 'a'"):
        unpack(swapped, key=KEY, secret=SECRET)


def test_a_header_does_not_authenticate_the_parts_of_another_object() -> None:
    older, newer = packed(b"1" * 64, "none"), packed(b"2" * 64, "none")
    with pytest.raises(errors.DamagedObject):
        unpack(newer[:-64] + older[-64:], key=KEY, secret=SECRET)


def test_another_secret_is_refused() -> None:
    with pytest.raises(errors.ForeignObject, match=r"not signed with this application's secret.*Use the secret"):
        unpack(packed(1, secret=Secret.random()), key=KEY, secret=SECRET)


@pytest.mark.parametrize("data", [b"PK\x03\x04", b"x", b"<Error>NoSuchKey</Error>", bytes(4096)], ids=repr)
def test_bytes_of_other_programs_are_refused(data: bytes) -> None:
    with pytest.raises(errors.ForeignObject, match="not an object of spark-elastic"):
        unpack(data[:100], key=KEY, secret=SECRET)


@pytest.mark.parametrize("length", [0, 3, 8, 13, 14, 50])
def test_an_object_that_ends_within_its_header_is_damaged(length: int) -> None:
    with pytest.raises(errors.DamagedObject, match=f"there are only {length}"):
        unpack(packed(1)[:length], key=KEY, secret=SECRET)


def test_a_newer_format_says_so_before_anything_else_is_read() -> None:
    newer = struct.pack("<8sH", packed(1)[:8], FORMAT_VERSION + 1) + b"a layout that is not known here"
    with pytest.raises(
        errors.NewerFormat, match=r"format 3, and this version reads formats up to 2. Update spark-elastic"
    ):
        unpack(newer, key=KEY, secret=SECRET)


def test_a_codec_of_a_later_version_is_not_called_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed(b"1")
    monkeypatch.setattr("storage.codec.envelope.CODECS", {"pickle": CODECS["pickle"]})
    with pytest.raises(
        errors.NewerFormat, match="part 'state' is written as bytes under none, unknown to this version"
    ):
        unpack(data, key=KEY, secret=SECRET).parts["state"]


def test_a_flipped_bit_in_the_header_is_damage_and_not_a_foreign_signature() -> None:
    for place in (20, 60, -40):  # in the text, in it again, in the seal or the zeros behind it
        data = bytearray(pack({}, key=KEY, secret=SECRET))
        data[place] ^= 4
        with pytest.raises(errors.DamagedObject):
            unpack(data, key=KEY, secret=SECRET)


@pytest.mark.parametrize("meta", [{"a": (1,)}, {"a": {1}}, {1: 2}, {"a": float("inf")}], ids=repr)
def test_metadata_that_is_not_json_is_refused(meta: Any) -> None:
    with pytest.raises(errors.InvalidStorageInput, match=r"metadata of .* is not JSON"):
        pack({}, key=KEY, secret=SECRET, meta=meta)


def test_parts_of_numpy_stay_usable_after_the_object_is_gone() -> None:
    array = unpack(pack({"n": np.arange(1_000)}, key=KEY, secret=SECRET), key=KEY, secret=SECRET).parts["n"]
    assert array.sum() == 499_500
