"""Save and load matrices as JSON, in a file or in a store."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import storage
from mdp.errors import InvalidMatrix
from mdp.learning.hourly import FORMAT as HOURLY
from mdp.learning.hourly import HourlyMatrices
from mdp.matrix import TransitionMatrix
from storage import STORES
from storage.errors import ObjectMissing

Location = str | Path


def save_matrix(matrix: TransitionMatrix | HourlyMatrices, place: Location, **store_settings: Any) -> None:
    """Write the matrix to a path, or to a store: its URL, a slash and a name, such as `s3://bucket/prefix/tweets.json`.

    An existing matrix is replaced as a whole.
    """
    text = matrix.to_json()
    if (found := _in_store(place)) is None:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).write_text(text + "\n", encoding="utf-8")
        return
    url, key = found
    store = storage.open(url, **store_settings)
    try:
        store.put(key, text.encode())
    finally:
        store.close()


def load_matrix(place: Location, **store_settings: Any) -> TransitionMatrix:
    """Read one matrix; of hourly matrices, the overall one."""
    found = load_learned(place, **store_settings)
    return found.overall if isinstance(found, HourlyMatrices) else found


def load_learned(place: Location, **store_settings: Any) -> TransitionMatrix | HourlyMatrices:
    """Read a matrix or hourly matrices, whichever was saved."""
    try:
        document = json.loads(_text(place, store_settings))
    except ValueError as cause:
        raise InvalidMatrix(f"{place} is not JSON: {cause}. Learn the matrix again and save it there.") from cause
    if isinstance(document, dict) and document.get("format") == HOURLY:
        return HourlyMatrices.from_dict(document)
    return TransitionMatrix.from_dict(document)


def _text(place: Location, store_settings: dict[str, Any]) -> bytes:
    if (found := _in_store(place)) is None:
        try:
            return Path(place).read_bytes()
        except OSError as cause:
            raise InvalidMatrix(f"there is no matrix at {place}: {cause}. Learn one and save it there.") from cause
    url, key = found
    store = storage.open(url, **store_settings)
    try:
        return bytes(store.get(key))
    except ObjectMissing as cause:
        raise InvalidMatrix(f"there is no matrix {key} in {store.url}. Learn one and save it there.") from cause
    finally:
        store.close()


def _in_store(place: Location) -> tuple[str, str] | None:
    """The store's URL and the key, if the location is in a store."""
    if isinstance(place, Path) or urlsplit(place).scheme not in STORES:
        return None
    address, _, query = place.partition("?")
    url, _, key = address.rpartition("/")
    if not url or not key.endswith(".json"):
        raise InvalidMatrix(
            f"{address} names no matrix. Write the store's URL, a slash and a name, such as tweets.json."
        )
    return (f"{url}?{query}" if query else url), key
