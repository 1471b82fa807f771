"""The store of the demo: a temporary folder, a local MinIO, or any store."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from elastic.errors import InvalidSetting

_BUCKET = "demo"


class StoreLocation(NamedTuple):
    """A store, a folder for Spark's checkpoint, and a job name that is new in the store."""

    url: str
    checkpoint: str
    job: str = "patterns"


@contextmanager
def open_location(store: str) -> Iterator[StoreLocation]:
    """Provide a store for the block: `file` for a folder, `s3` for a MinIO on loopback, or the URL of any store."""
    with tempfile.TemporaryDirectory(prefix="elastic-demo-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        checkpoint = (folder / "checkpoint").as_uri()
        if store == "file":
            yield StoreLocation((folder / "store").as_uri(), checkpoint)
        elif store == "s3":
            with _minio(folder) as url:
                yield StoreLocation(url, checkpoint)
        else:
            yield StoreLocation(store, checkpoint, f"patterns-{secrets.token_hex(3)}")


@contextmanager
def _minio(folder: Path) -> Iterator[str]:
    # Imported late: boto3 is an optional package.
    from scripts.s3_server import find_minio, minio_server

    if find_minio() is None:
        raise InvalidSetting("store", "s3", "MinIO is not built. Run `make demo STORE=s3`, which builds it with Go")
    with minio_server(folder) as server:
        server.create_bucket(_BUCKET)
        # In the environment, for the processes that Spark starts.
        os.environ.update(server.environment())
        yield server.url(_BUCKET, "state")
