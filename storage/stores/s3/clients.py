"""Pooled connections to one server, with socket timeouts that fit the caller's deadline."""

import base64
import hashlib
import math
import threading
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from storage.stores.s3.address import Address

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_CONNECTIONS = 32  # more than the threads of a node that move states at the same time
_MAX_SOCKET_TIMEOUT_SECONDS = 20.0  # a server that commits a large object may say nothing for seconds
_HALVINGS = 7  # 20 s, 10 s ... 0.16 s


class Clients:
    """boto3 clients that differ only in their socket timeouts.

    boto3 fixes the socket timeouts when a client is created, and every call here has a deadline of its own. A client
    costs 6 ms after the first, so there is one for each halving of the longest timeout, created when it is first
    needed. Calls with the store's own timeout share one client, and its pool.
    """

    def __init__(self, address: Address, access_key: str | None, secret_key: str | None, region: str | None) -> None:
        self._endpoint = address.endpoint
        self._session = boto3.session.Session(
            aws_access_key_id=access_key, aws_secret_access_key=secret_key, region_name=region or address.region
        )
        self._by_halvings: dict[int, S3Client] = {}
        self._lock = threading.Lock()  # creating clients is not thread-safe, using them is

    def with_timeout(self, seconds: float) -> "S3Client":
        """Return a client that gives up a connection which is silent for `seconds`, or somewhat less."""
        halvings = math.ceil(math.log2(_MAX_SOCKET_TIMEOUT_SECONDS / max(seconds, 1e-3)))
        halvings = min(max(halvings, 0), _HALVINGS)
        with self._lock:
            if halvings not in self._by_halvings:
                self._by_halvings[halvings] = self._create(_MAX_SOCKET_TIMEOUT_SECONDS / 2**halvings)
            return self._by_halvings[halvings]

    def close(self) -> None:
        with self._lock:
            for client in self._by_halvings.values():
                client.close()
            self._by_halvings.clear()

    def _create(self, timeout: float) -> "S3Client":
        config = Config(
            connect_timeout=timeout,
            read_timeout=timeout,
            max_pool_connections=_CONNECTIONS,
            tcp_keepalive=True,
            # Only `retries` retries: that covers the body of a GET, too, and keeps the deadline.
            retries={"total_max_attempts": 1},
            # Every write carries a CRC32 that this package computes once; servers check it, and get() checks it again.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            # Without it, plain http signs a SHA-256 of each body (put of 10 MB: 201 instead of 217 MB/s; https never
            # does). On plain http, then, CRC32 finds accidents but not an attacker on the wire, who could also read the
            # state. What the codec writes carries its own SHA-256 and HMAC, so a forged object is refused when loaded.
            s3={"payload_signing_enabled": False, "addressing_style": "path" if self._endpoint else "auto"},
        )
        region = self._session.region_name or "us-east-1"  # any will do for servers that have none
        client = self._session.client("s3", endpoint_url=self._endpoint, region_name=region, config=config)
        client.meta.events.register("before-call.s3.DeleteObjects", _add_content_md5)
        return client


def _add_content_md5(params: dict[str, Any], **_: object) -> None:
    """Servers from before 2025 want it, and do not know the checksum that boto3 sends instead."""
    digest = hashlib.md5(params["body"], usedforsecurity=False).digest()
    params["headers"]["Content-MD5"] = base64.b64encode(digest).decode()
