"""The secret: given, or made once for the user, and readable by nobody else."""

import multiprocessing
import stat
from pathlib import Path

import pytest

from elastic.errors import InvalidSetting, MissingSecret
from elastic.secret import application_secret, secret_file
from storage import Secret

GIVEN = "at least sixteen bytes"


def test_a_setting_comes_before_the_environment_and_neither_makes_a_file(tmp_path: Path) -> None:
    environ = {"ELASTIC_SECRET": "sixteen bytes in the environment", "XDG_CONFIG_HOME": str(tmp_path)}
    assert application_secret(GIVEN, environ) == Secret.of(GIVEN)
    assert application_secret(None, environ) == Secret.of("sixteen bytes in the environment")
    assert list(tmp_path.iterdir()) == []


def test_without_either_a_file_is_made_once_and_for_the_user_only(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    first = application_secret(None, environ)
    assert application_secret(None, environ) == first
    file = tmp_path / "config" / "spark-elastic" / "secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["secret"]
    assert application_secret(None, {"XDG_CONFIG_HOME": str(tmp_path / "other")}) != first


def test_the_file_is_in_the_home_folder_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert secret_file({}) == tmp_path / ".config" / "spark-elastic" / "secret"


def made(folder: str) -> bytes:
    return application_secret(None, {"XDG_CONFIG_HOME": folder}).reveal()


def test_processes_that_start_at_once_find_the_same_secret(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert len(set(pool.map(made, [str(tmp_path)] * 16, chunksize=1))) == 1


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    application_secret(None, environ)
    secret_file(environ).chmod(0o644)
    with pytest.raises(MissingSecret, match="others may read it"):
        application_secret(None, environ)


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 40])
def test_a_file_without_a_secret_is_refused(tmp_path: Path, content: bytes) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    application_secret(None, environ)
    secret_file(environ).write_bytes(content)
    with pytest.raises(MissingSecret, match="Set ELASTIC_SECRET"):
        application_secret(None, environ)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MissingSecret, match="Set ELASTIC_SECRET"):
        application_secret(None, {"XDG_CONFIG_HOME": str(tmp_path / "file")})


def test_a_secret_that_can_be_guessed_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidSetting, match="at least 16") as refused:
        application_secret("hush", {})
    assert "hush" not in str(refused.value)
