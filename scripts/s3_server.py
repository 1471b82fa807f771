"""S3 servers on loopback for tests and development: MinIO if it is built, else moto."""

import argparse
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from scripts.server_process import ServerProcess, find_free_port

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

REGION = "us-east-1"  # both servers accept any


def find_minio() -> Path | None:
    """Return the MinIO that `scripts/minio.sh` has built, or None."""
    script = Path(__file__).with_name("minio.sh")
    result = subprocess.run(["bash", script, "--path"], capture_output=True, text=True, check=True)  # noqa: S603, S607
    binary = Path(result.stdout.strip())
    return binary if os.access(binary, os.X_OK) else None


class S3Server(ServerProcess):
    """One S3 server, which keeps its credentials when it is restarted.

    MinIO keeps its objects across a restart; moto keeps them in memory and starts empty.
    """

    start_seconds = 30.0  # MinIO takes 0.4 s and moto 0.8 s; more on an overloaded machine
    stop_seconds = 10.0  # MinIO takes 2 s after heavy load

    def __init__(self, name: str, command: Sequence[str], port: int, ready: str, log: Path) -> None:
        self.name = name
        self.endpoint = f"http://127.0.0.1:{port}"
        self.access_key = f"user-{secrets.token_hex(8)}"
        self._secret_key = secrets.token_hex(20)
        super().__init__(command, log)
        self._ready = self.endpoint + ready

    def __repr__(self) -> str:
        return f"<{self.name} at {self.endpoint}>"

    def url(self, bucket: str, prefix: str = "") -> str:
        """Return the URL of a bucket for `storage.open`."""
        return f"s3://{bucket}/{prefix}?endpoint={self.endpoint}"

    def settings(self) -> dict[str, Any]:
        """Return the credentials as keywords of `storage.open`."""
        return {"access_key": self.access_key, "secret_key": self._secret_key, "region": REGION}

    def environment(self) -> dict[str, str]:
        """Return the credentials as environment variables."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self._secret_key,
            "AWS_DEFAULT_REGION": REGION,
        }

    def client(self) -> "S3Client":
        """Return a plain boto3 client, for buckets and for comparisons with a store."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self._secret_key,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}),
        )

    def create_bucket(self, name: str) -> None:
        """Create a bucket, unless an earlier run in the same folder has created it."""
        client = self.client()
        with closing(client), suppress(client.exceptions.BucketAlreadyOwnedByYou):
            client.create_bucket(Bucket=name)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(self._ready, timeout=1) as response:  # noqa: S310
                return bool(response.status == 200)
        except OSError:
            return False

    def _environment(self) -> Mapping[str, str]:
        home = str(self._log.parent)
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,  # MinIO always creates ~/.minio
            "MINIO_ROOT_USER": self.access_key,
            "MINIO_ROOT_PASSWORD": self._secret_key,
            "MINIO_BROWSER": "off",  # no console on a random port of every interface
            "MINIO_UPDATE": "off",  # no update checks over the internet
            "MINIO_CI_CD": "1",  # smaller buffers, and any folder can be a disk
        }


@contextmanager
def minio_server(folder: Path, port: int = 0) -> Iterator[S3Server]:
    """Run MinIO with its objects in `folder`; `scripts/minio.sh` must have built it."""
    binary = find_minio()
    if binary is None:
        raise RuntimeError("MinIO is not built. Run scripts/minio.sh, or use moto.")
    port = port or find_free_port()
    address = ["--address", f"127.0.0.1:{port}", "--certs-dir", str(folder / "certs")]
    command = [str(binary), "server", "--quiet", *address, str(folder / "data")]
    with S3Server("MinIO", command, port, "/minio/health/ready", folder / "minio.log").running() as server:
        yield server


@contextmanager
def moto_server(port: int = 0) -> Iterator[S3Server]:
    """Run moto, which accepts any credentials and checks conditions without a lock."""
    port = port or find_free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (
        tempfile.TemporaryDirectory(prefix="moto-") as folder,
        S3Server("moto", command, port, "/moto-api/", Path(folder) / "moto.log").running() as server,
    ):
        yield server


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a server with a bucket until Ctrl-C, and print how to use it."""
    parser = argparse.ArgumentParser(prog="python -m scripts.s3_server", description=main.__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--minio", action="store_true", help="use MinIO, and fail if it is not built")
    which.add_argument("--moto", action="store_true", help="use moto even if MinIO is built")
    parser.add_argument("--folder", type=Path, help="folder of MinIO's objects; by default temporary")
    parser.add_argument("--port", type=int, default=0, help="by default a free port")
    options = parser.parse_args(arguments)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM stops the server too
    with tempfile.TemporaryDirectory(prefix="minio-") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        use_moto = options.moto or not (options.minio or find_minio())
        try:
            with moto_server(options.port) if use_moto else minio_server(folder, options.port) as server:
                server.create_bucket("elastic")
                _print_usage(server)
                signal.pause()
        except KeyboardInterrupt:
            print("stopped.")


def _print_usage(server: S3Server) -> None:
    settings = server.settings()
    print(f"{server.name} is running on loopback with the bucket elastic; stop it with Ctrl-C. To use it:\n")
    print(f"export AWS_ACCESS_KEY_ID={settings['access_key']}")
    print(f"export AWS_SECRET_ACCESS_KEY={settings['secret_key']}")
    print(f"\nstorage.open({server.url('elastic', 'state')!r})", flush=True)


if __name__ == "__main__":
    main()
