"""What the tests of the codec share: a secret, a place, a value for every codec, and a way there and back."""

from typing import Any

import numpy as np
import pyarrow as pa

from storage.codec import Json, Secret, pack, read_header, unpack

SECRET = Secret.of("an application's secret")
KEY = "units/task-7/3.state"


class Visit:
    """A user's class, as cloudpickle meets it."""

    def __init__(self, page: str, seconds: float) -> None:
        self.page = page
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"Visit({self.page!r}, {self.seconds})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Visit) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.page, self.seconds))


VALUES: dict[str, Any] = {
    "arrow": pa.table({"word": ["a", "b", None] * 40, "count": list(range(120))}),
    "numpy": {"seen": np.arange(90, dtype=">i4").reshape(9, 10), "mean": np.zeros((3, 5))},
    "mapping": {f"word-{index}": index for index in range(100)},
    "json": Json({"task": 7, "nodes": ["node-1", "node-2"] * 20, "open": None}),
    "bytes": b"some bytes " * 30,
    "pickle": {"visits": [Visit("/", 0.5), Visit("/about", 2.0)] * 10, 3: {"nested"}},
}


def packed(value: object, compression: str = "auto", *, key: str = KEY, secret: Secret = SECRET) -> bytes:
    return bytes(pack({"state": value}, key=key, secret=secret, compression=compression))


def round_trip(value: object, compression: str = "auto") -> Any:
    return unpack(packed(value, compression), key=KEY, secret=SECRET).parts["state"]


def codec_of(value: object) -> str:
    return read_header(packed(value), key=KEY, secret=SECRET).parts["state"].codec
