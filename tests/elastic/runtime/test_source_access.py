"""How data sources reach a job's store: with the settings that the job was started with, which nobody sees."""

import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import storage
from elastic.errors import InvalidSetting
from elastic.runtime.access import StoreAccess
from elastic.runtime.sources import ResultsSource, StateSource
from elastic.runtime.sources.access import Access, Credentials
from elastic.runtime.sources.registration import source_with
from storage.stores.opening import STORES

KEY = "a key that nobody must see"
URL = "guarded:words"


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that opens only for whoever has the key."""

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
    travelled = pickle.loads(cloudpickle.dumps(source_with(source, credentials())))  # noqa: S301 - as Spark does
    access = Access.of({"store": URL, "name": "words"}, (), travelled.credentials)
    sent: Access = pickle.loads(pickle.dumps(access))  # noqa: S301
    assert sent.store() is storage.open("memory:guarded")
    assert sent.secret.reveal() == b"the secret of a job that runs here"


def test_another_job_in_the_same_store_is_read_with_the_same_settings_and_the_secret_of_the_application() -> None:
    other = Access.of({"store": URL, "name": "others"}, (), credentials())
    assert other.secret.reveal() == b"another secret, of the application"
    assert other.store() is storage.open("memory:guarded")


def test_settings_of_one_store_are_not_used_for_another() -> None:
    with pytest.raises(PermissionError):
        Access.of({"store": "guarded:elsewhere", "name": "words"}, (), credentials()).store()
    known = Credentials(b"another secret, of the application", {"access_key": KEY})
    assert Access.of({"store": "guarded:elsewhere", "name": "words"}, (), known).store()


def test_neither_secret_nor_settings_are_shown() -> None:
    found = credentials()
    access = Access.of({"store": URL, "name": "words"}, (), found)
    for shown in (repr(found), str(found), repr(access), str(access), repr(source_with(ResultsSource, found))):
        assert KEY not in shown
        assert "secret of" not in shown
    with pytest.raises(InvalidSetting, match="secret"):
        Access.of({"store": URL, "name": "words", "secret": "a secret of mine"}, (), found)


def test_a_store_without_settings_is_opened_as_before(tmp_path: Path) -> None:
    access = Access.of({"store": tmp_path.as_uri(), "name": "words"}, (), Credentials(b"some secret of this test"))
    assert access.store().url == tmp_path.as_uri()
