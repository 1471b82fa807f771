"""Data sources open a job's store with the settings of the job, which nothing shows."""

import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import storage
from elastic.errors import InvalidSetting
from elastic.spark.sources import ResultsSource, StateSource
from elastic.spark.sources.access import Credentials, JobAccess
from elastic.spark.sources.registration import bind_credentials
from elastic.store_access import StoreAccess
from storage import STORES

KEY = "a key that must not be shown"
URL = "guarded:words"


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a store that opens only with the key."""

    def open_guarded(url: str, *, access_key: str = "") -> Any:
        if access_key != KEY:
            raise PermissionError(f"{url} opens with a key only")
        return storage.open("memory:guarded")

    monkeypatch.setitem(STORES, "guarded", open_guarded)


def credentials() -> Credentials:
    access = StoreAccess(URL, {"access_key": KEY}, b"the secret of a job that runs here")
    return Credentials(b"another secret, of the application", {}, {(URL, "words"): access})


@pytest.mark.parametrize("source", [ResultsSource, StateSource])
def test_a_source_opens_the_store_of_a_job_with_its_settings_wherever_it_runs(source: Any) -> None:
    travelled = pickle.loads(cloudpickle.dumps(bind_credentials(source, credentials())))  # noqa: S301 - as Spark does
    access = JobAccess.from_options({"store": URL, "name": "words"}, (), travelled.credentials)
    sent: JobAccess = pickle.loads(pickle.dumps(access))  # noqa: S301
    assert sent.store() is storage.open("memory:guarded")
    assert sent.secret.reveal() == b"the secret of a job that runs here"


def test_another_job_in_the_same_store_is_read_with_the_same_settings_and_the_secret_of_the_application() -> None:
    other = JobAccess.from_options({"store": URL, "name": "others"}, (), credentials())
    assert other.secret.reveal() == b"another secret, of the application"
    assert other.store() is storage.open("memory:guarded")


def test_settings_of_one_store_are_not_used_for_another() -> None:
    with pytest.raises(PermissionError):
        JobAccess.from_options({"store": "guarded:elsewhere", "name": "words"}, (), credentials()).store()
    known = Credentials(b"another secret, of the application", {"access_key": KEY})
    assert JobAccess.from_options({"store": "guarded:elsewhere", "name": "words"}, (), known).store()


def test_neither_secret_nor_settings_are_shown() -> None:
    found = credentials()
    access = JobAccess.from_options({"store": URL, "name": "words"}, (), found)
    for shown in (repr(found), str(found), repr(access), str(access), repr(bind_credentials(ResultsSource, found))):
        assert KEY not in shown
        assert "secret of" not in shown
    with pytest.raises(InvalidSetting, match="secret"):
        JobAccess.from_options({"store": URL, "name": "words", "secret": "a secret of mine"}, (), found)


def test_a_store_without_settings_is_opened_as_before(tmp_path: Path) -> None:
    access = JobAccess.from_options(
        {"store": tmp_path.as_uri(), "name": "words"}, (), Credentials(b"some secret of this test")
    )
    assert access.store().url == tmp_path.as_uri()
