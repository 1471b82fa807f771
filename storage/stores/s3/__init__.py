"""Objects in S3, MinIO and other servers that speak S3; the only package that imports boto3.

`open_s3` reads the address (`address`), tries out what the server honours (`probe`) and gives an `S3Store` (`store`):
what the operations mean. Below it: single requests (`bucket`), an object in parts (`multipart`), retries and deadlines
(`calls`), what an answer means (`answers`), and pooled connections (`clients`).
"""

from storage.stores.s3.opening import open_s3
from storage.stores.s3.store import S3Store

__all__ = ["S3Store", "open_s3"]
