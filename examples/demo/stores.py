"""Where the demo keeps its state: a folder that is gone afterwards, a MinIO of its own, or any store."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elastic.errors import InvalidSetting

_BUCKET = "demo"


@contextmanager
def opened(store: str) -> Iterator[str]:
    """The URL of a store that is there until the end of the block: `file`, `s3` for MinIO on loopback, or a URL."""
    if store not in ("file", "s3"):
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="elastic-demo-", ignore_cleanup_errors=True) as folder:
        if store == "file":
            yield Path(folder).as_uri()
        else:
            with _minio(Path(folder)) as url:
                yield url


@contextmanager
def _minio(folder: Path) -> Iterator[str]:
    # Imported late: boto3 is an extra, and a store of files does without it.
    from scripts.s3_server import REGION, minio_binary, minio_server

    if minio_binary() is None:
        raise InvalidSetting(
            "store", "s3", "MinIO is not built here. Use `make demo STORE=s3`, which builds it with Go"
        )
    with minio_server(folder) as server:
        server.create_bucket(_BUCKET)
        settings = server.settings()
        # In the environment, for the processes that Spark starts; it is this process's own, and ends with it.
        os.environ["AWS_ACCESS_KEY_ID"] = settings["access_key"]
        os.environ["AWS_SECRET_ACCESS_KEY"] = settings["secret_key"]
        os.environ["AWS_DEFAULT_REGION"] = REGION
        yield server.url(_BUCKET, "state")
