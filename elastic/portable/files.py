"""The files of an export: Parquet by stage, and one JSON document that names, describes and checks them.

    manifest.json               the document, with its own checksum and the exporting job's signature
    stage-00/state.parquet      the state of a stage
    stage-00/timers.parquet     its timers

The document is part of the export that counts: a folder without it is not one. The checksums find damage. The signature
says that the files are those of an application that has the secret.
"""

import hashlib
import hmac
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from elastic.errors import InvalidExport
from storage import Secret

DOCUMENT = "manifest.json"
STATE, TIMERS = "state", "timers"
FORMAT = "spark-elastic state"
VERSION = 1
_CHUNK_BYTES = 1 << 20
_SEALS = ("sha256", "signature")


def file_of(stage: int, what: str) -> str:
    return f"stage-{stage:02d}/{what}.parquet"


def write_document(folder: Path, document: dict[str, Any], secret: Secret) -> None:
    """Write the document, with a checksum and a signature."""
    text = _canonical(document)
    sealed = {**document, "sha256": hashlib.sha256(text).hexdigest(), "signature": secret.sign(text).hex()}
    write_durably(folder / DOCUMENT, json.dumps(sealed, indent=1).encode())


def read_document(folder: Path, secret: Secret) -> tuple[dict[str, Any], bool]:
    """Return the document, and whether it is signed with this secret; raises `InvalidExport`."""
    path = folder / DOCUMENT
    try:
        document = json.loads(path.read_bytes())
        seals = [document.pop(seal) for seal in _SEALS]
        text = _canonical(document)
        is_whole = hmac.compare_digest(hashlib.sha256(text).hexdigest(), seals[0])
        is_signed = hmac.compare_digest(secret.sign(text).hex(), seals[1])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as cause:
        raise InvalidExport(str(path), f"it is no document of an export ({type(cause).__name__}: {cause})") from cause
    if not is_whole:
        raise InvalidExport(str(path), "it does not match its checksum")
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        found = f"{document.get('format')!r}, version {document.get('version')!r}"
        raise InvalidExport(str(path), f"its format is {found}, and this release reads {FORMAT!r}, version {VERSION}")
    return document, is_signed


def digest_of(document: dict[str, Any]) -> str:
    """Return what tells two exports apart."""
    return hashlib.sha256(_canonical(document)).hexdigest()


def describe_file(folder: Path, name: str) -> dict[str, Any]:
    """Make a file durable; return its checksum and size."""
    path = folder / name
    with path.open("rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}


def read_file(folder: Path, name: str, described: Any) -> pa.Table:
    """Return a file as a table; raises `InvalidExport` if it is not the one that the document describes."""
    path = folder / name
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if not hmac.compare_digest(digest, described["sha256"]):
            raise InvalidExport(str(path), "it does not match its checksum in the document")
        table = pq.read_table(path, use_threads=False)
        table.validate(full=True)
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as cause:
        raise InvalidExport(str(path), f"{type(cause).__name__}: {cause}") from cause
    return table


def write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def begin(folder: Path) -> Path:
    """Return an empty folder beside `folder`, which `finish` renames; raises `InvalidExport` if that is in use."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise InvalidExport(str(folder), "it exists and is not an empty folder; nothing is exported over it")
    unfinished = folder.absolute().parent / f".{folder.absolute().name}.unfinished"
    if unfinished.exists():
        shutil.rmtree(unfinished)  # of an export that was killed
    unfinished.mkdir(parents=True, mode=0o700)
    return unfinished


def finish(unfinished: Path, folder: Path) -> None:
    """Let all files appear at once."""
    for each in (*unfinished.iterdir(), unfinished):
        if each.is_dir():
            _sync(each)
    unfinished.rename(folder.absolute())
    _sync(folder.absolute().parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
