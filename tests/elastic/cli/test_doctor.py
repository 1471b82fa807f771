"""The doctor finds what is missing, and says how to mend it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from elastic.__main__ import main
from elastic.cli import doctor


def test_every_check_has_a_finding_and_the_exit_code_tells_whether_all_is_well(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", "--json", "--store", tmp_path.as_uri()])
    found = json.loads(done.stdout)

    assert set(found) == set(doctor.CHECKS)
    assert done.exit_code == any(finding["mend"] for finding in found.values())
    assert "conditional" in found["store"]["what"]
    assert list(tmp_path.rglob("*.txt")) == []


def test_findings_are_a_table_for_people() -> None:
    shown = CliRunner().invoke(main, ["doctor"])
    for name in doctor.CHECKS:
        assert name in shown.output


def test_a_store_that_cannot_be_is_named_with_what_to_do(tmp_path: Path) -> None:
    assert "Start the URL" in doctor.store("ftp://somewhere").mend
    (tmp_path / "file").write_text("in the way")
    assert doctor.store((tmp_path / "file").as_uri()).mend


def test_java_and_spark_that_are_missing_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "Install Java 17" in doctor.java("").mend
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    assert doctor.java("").what == "Java 11"
    monkeypatch.setattr(doctor, "version", lambda _: "3.5.1")
    assert "4.3" in doctor.spark("").mend


def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_LEAST_FREE_MB", 1e12)
    assert "Free some" in doctor.memory("").mend


def test_what_to_install_is_shown_to_the_last_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "CHECKS", {"kernels": lambda _: doctor.Finding("numpy", "Install spark-elastic[fast].")}
    )
    assert "Install spark-elastic[fast]." in CliRunner().invoke(main, ["doctor"]).output
