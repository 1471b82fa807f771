"""Objects in S3, MinIO and other servers that speak S3; the only package that imports boto3.

`open_s3` (`opening`) reads the address (`address`), probes what the server honours and returns an `S3Store` (`store`).
Below it: single requests (`bucket`), an object in parts (`multipart`), bodies and checksums (`bodies`), retries
(`retries`), what a failure means (`failures`), and pooled connections (`clients`).
"""

from storage.stores.s3.opening import open_s3
from storage.stores.s3.store import S3Store

__all__ = ["S3Store", "open_s3"]
