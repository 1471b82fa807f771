"""The doctor finds missing requirements and says how to fix them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from elastic.__main__ import main
from elastic.cli import doctor


def test_every_check_has_a_finding_and_the_exit_code_says_whether_all_passed(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", "--json", "--store", tmp_path.as_uri()])
    found = json.loads(done.stdout)

    assert set(found) == set(doctor.CHECKS)
    assert done.exit_code == any(finding["fix"] for finding in found.values())
    assert "conditional" in found["store"]["result"]
    assert list(tmp_path.rglob("*.txt")) == []


def test_findings_are_printed_as_a_table() -> None:
    shown = CliRunner().invoke(main, ["doctor"])
    for name in doctor.CHECKS:
        assert name in shown.output


def test_the_finding_of_a_wrong_store_says_what_to_do(tmp_path: Path) -> None:
    assert "Start the URL" in doctor.check_store("ftp://somewhere").fix
    (tmp_path / "file").write_text("not a folder")
    assert doctor.check_store((tmp_path / "file").as_uri()).fix


def test_missing_java_and_old_spark_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "Install Java 17" in doctor.check_java("").fix
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    assert doctor.check_java("").result == "Java 11"
    monkeypatch.setattr(doctor, "version", lambda _: "3.5.1")
    assert "4.3" in doctor.check_spark("").fix


def test_too_little_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_MIN_FREE_MB", 1e12)
    assert "Free some" in doctor.check_memory("").fix


def test_brackets_in_a_fix_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "CHECKS", {"kernels": lambda _: doctor.Finding("numpy", "Install spark-elastic[fast].")}
    )
    assert "Install spark-elastic[fast]." in CliRunner().invoke(main, ["doctor"]).output
