"""Where the demo keeps its state: a folder that is gone afterwards, a MinIO of its own, or any store."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from elastic.errors import InvalidSetting

_BUCKET = "demo"


class Place(NamedTuple):
    """A store, a folder for Spark's own checkpoint, and the name of a job that the store has never seen."""

    url: str
    checkpoint: str
    job: str = "patterns"


@contextmanager
def opened(store: str) -> Iterator[Place]:
    """There until the end of the block: `file` for a folder, `s3` for a MinIO on loopback, or the URL of any store."""
    with tempfile.TemporaryDirectory(prefix="elastic-demo-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        checkpoint = (folder / "checkpoint").as_uri()
        if store == "file":
            yield Place((folder / "store").as_uri(), checkpoint)
        elif store == "s3":
            with _minio(folder) as url:
                yield Place(url, checkpoint)
        else:
            yield Place(store, checkpoint, f"patterns-{secrets.token_hex(3)}")


@contextmanager
def _minio(folder: Path) -> Iterator[str]:
    # Imported late: boto3 is an extra, and a store of files does without it.
    from scripts.s3_server import minio_binary, minio_server

    if minio_binary() is None:
        raise InvalidSetting(
            "store", "s3", "MinIO is not built here. Use `make demo STORE=s3`, which builds it with Go"
        )
    with minio_server(folder) as server:
        server.create_bucket(_BUCKET)
        # In the environment, for the processes that Spark starts; it is this process's own, and ends with it.
        os.environ.update(server.environment())
        yield server.url(_BUCKET, "state")
