"""A store by its URL."""

import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

import storage.stores
from storage.errors import InvalidStorageInput
from storage.stores import STORES
from storage.stores.file import FileStore
from storage.stores.memory import MemoryStore
from tests.storage.stores.helpers import bytes_at

KEY = "a/b.bin"


def test_the_scheme_chooses_the_store(tmp_path: Path) -> None:
    assert tuple(STORES) == ("memory", "file", "s3")
    assert isinstance(storage.stores.open("memory:"), MemoryStore)
    assert isinstance(storage.stores.open(tmp_path.as_uri()), FileStore)


def test_a_named_memory_store_is_one_store_for_all() -> None:
    first, second = storage.stores.open("memory:shared-1"), storage.stores.open("memory:shared-1")
    first.put(KEY, b"kept")
    first.close()
    assert bytes_at(second, KEY) == b"kept"
    assert second.url == "memory:shared-1"
    assert list(storage.stores.open("memory:shared-2").list()) == []


def test_a_memory_store_without_a_name_is_its_own() -> None:
    storage.stores.open("memory:").put(KEY, b"")
    assert list(storage.stores.open("memory:").list()) == []


@pytest.mark.parametrize("form", ["file://{}", "file://localhost{}", "file:{}"])
def test_a_file_url_names_a_folder_which_is_created(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "not" / "yet there, 100%"
    store = storage.stores.open(form.format(folder.as_uri().removeprefix("file://")))
    store.put(KEY, b"x")
    assert (folder / KEY).read_bytes() == b"x"
    assert store.url == folder.as_uri()
    store.close()


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "scheme"),
        ("/folder", "scheme"),
        ("folder", "scheme"),
        ("gs://bucket/prefix", "'gs'.*memory:, file:, s3:"),
        ("memory://name", "memory:name"),
        ("memory:a/b", "memory:name"),
        ("memory:?a=b", "memory:name"),
        ("file:", "absolute"),
        ("file://", "absolute"),
        ("file:folder", "absolute"),
        ("file://folder/sub", "absolute"),
        ("file://./folder", "absolute"),
        ("file:///", "root"),
        ("file:////", "root"),
        ("file:///folder?sync=no", "nothing else"),
        ("file:///folder#1", "nothing else"),
        ("file:///folder%00", "nothing else"),
        ("s3://[bucket/prefix", "cannot be parsed"),
        (None, "scheme"),
        (Path("/folder"), "scheme"),
    ],
)
def test_a_url_that_names_no_store_is_refused_with_how_to_write_one(url: Any, complaint: str) -> None:
    with pytest.raises(InvalidStorageInput, match=complaint):
        storage.stores.open(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIAUSER:hunter2@bucket/prefix",
        "s3://AKIAUSER@bucket/prefix",
        "s3:AKIAUSER:hunter2@bucket/prefix",
        "S3://AKIAUSER:hunter2@bucket",
        "s3a://AKIAUSER:hunter2@bucket/prefix",
        "file://AKIAUSER:hunter2@host/folder",
        "file:AKIAUSER:hunter2@host/folder",
        "memory:AKIAUSER:hunter2@name",
        "s3:/AKIAUSER:hunter2@bucket/prefix",
        "AKIAUSER:hunter2@bucket",
        "s3://bucket/prefix?endpoint=AKIAUSER:hunter2@localhost:9000",
        "s3://bucket/prefix?access_key=AKIAUSER",
        "s3://bucket/prefix?endpoint=http://localhost&secret_key=hunter2",
        "s3://bucket/prefix?AWS_SECRET_ACCESS_KEY=hunter2",
        "s3://bucket/prefix?AWSAccessKeyId=AKIAUSER",
        "s3://bucket/prefix?session%5Ftoken=hunter2",
        "s3://bucket/prefix?X-Amz-Signature=hunter2",
        "s3://bucket/prefix#password=hunter2",
        "s3://bucket/prefix?endpoint=http://AKIAUSER:hunter2@localhost:9000",
        "s3://bucket/prefix?endpoint=http%3A%2F%2FAKIAUSER%3Ahunter2%40localhost",
        "s3://AKIAUSER:hunter2@[bucket/prefix",
    ],
)
def test_a_url_with_a_credential_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidStorageInput) as refused:
        storage.stores.open(url)
    printed = "".join(traceback.format_exception(refused.value)) + repr(refused.value)
    assert "akiauser" not in printed.lower()  # a scheme is read in lower case
    assert "hunter2" not in printed


def test_an_at_sign_in_a_path_is_no_credential(tmp_path: Path) -> None:
    store = storage.stores.open(f"file://{tmp_path}/user@host/a:b@c")
    store.put(KEY, b"")
    assert (tmp_path / "user@host" / "a:b@c" / KEY).exists()
    store.close()


def test_a_setting_that_the_store_does_not_know_is_refused_without_its_value() -> None:
    for url in ("memory:", "file:///folder", "s3://bucket/prefix"):
        with pytest.raises(InvalidStorageInput, match=r"'password'.*timeout_seconds") as refused:
            storage.stores.open(url, password="hunter2")  # noqa: S106
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_default_timeout_that_bounds_nothing_is_refused(tmp_path: Path, seconds: float) -> None:
    for url in ("memory:", tmp_path.as_uri()):
        with pytest.raises(InvalidStorageInput, match="timeout"):
            storage.stores.open(url, timeout_seconds=seconds)


def test_s3_without_boto3_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("storage.stores.s3")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("boto3", "botocore", "botocore.config", "botocore.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidStorageInput, match=r"Install spark-elastic\[s3\]"):
        storage.stores.open("s3://bucket/prefix")


def test_opening_other_stores_does_not_import_boto3(tmp_path: Path) -> None:
    program = (
        f"import sys, storage.stores as s; s.open('memory:').close(); s.open({tmp_path.as_uri()!r}).close(); "
        "print([name for name in ('boto3', 'botocore') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"
