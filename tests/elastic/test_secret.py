"""The secret is given, or created once in a file that only the user can read."""

import multiprocessing
import stat
from pathlib import Path

import pytest

from elastic.errors import InvalidSetting, MissingSecret
from elastic.secret import application_secret, secret_path
from storage import Secret

GIVEN = "at least sixteen bytes"


def test_a_setting_comes_before_the_environment_and_neither_creates_a_file(tmp_path: Path) -> None:
    environ = {"ELASTIC_SECRET": "sixteen bytes in the environment", "XDG_CONFIG_HOME": str(tmp_path)}
    assert application_secret(GIVEN, environ) == Secret.of(GIVEN)
    assert application_secret(None, environ) == Secret.of("sixteen bytes in the environment")
    assert list(tmp_path.iterdir()) == []


def test_without_either_a_private_file_is_created_once(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    first = application_secret(None, environ)
    assert application_secret(None, environ) == first
    file = tmp_path / "config" / "spark-elastic" / "secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["secret"]
    assert application_secret(None, {"XDG_CONFIG_HOME": str(tmp_path / "other")}) != first


def test_the_file_is_in_the_home_folder_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert secret_path({}) == tmp_path / ".config" / "spark-elastic" / "secret"


def read_secret(folder: str) -> bytes:
    return application_secret(None, {"XDG_CONFIG_HOME": folder}).reveal()


def test_processes_that_start_at_once_find_the_same_secret(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert len(set(pool.map(read_secret, [str(tmp_path)] * 16, chunksize=1))) == 1


def test_a_file_that_other_users_may_read_is_refused(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    application_secret(None, environ)
    secret_path(environ).chmod(0o644)
    with pytest.raises(MissingSecret, match="other users may read it"):
        application_secret(None, environ)


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 40])
def test_a_file_without_a_secret_is_refused(tmp_path: Path, content: bytes) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    application_secret(None, environ)
    secret_path(environ).write_bytes(content)
    with pytest.raises(MissingSecret, match="Set ELASTIC_SECRET"):
        application_secret(None, environ)


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MissingSecret, match="Set ELASTIC_SECRET"):
        application_secret(None, {"XDG_CONFIG_HOME": str(tmp_path / "file")})


def test_a_secret_that_is_too_short_is_refused_and_not_printed() -> None:
    with pytest.raises(InvalidSetting, match="at least 16") as refused:
        application_secret("hush", {})
    assert "hush" not in str(refused.value)
