"""The daemon prepares what its workers need, and nothing that each of them would have to do again."""

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from elastic.spark.daemon import forget_archive_finders


def test_workers_import_from_archives_without_reading_their_directories_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "library.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("archived_before.py", "value = 1")
        file.writestr("archived_after.py", "value = 2")
    monkeypatch.setattr(sys, "path", [*sys.path, str(archive)])
    assert importlib.import_module("archived_before").value == 1
    forget_archive_finders()
    reads: list[object] = []
    monkeypatch.setattr(zipimport, "_read_directory", reads.append)
    importlib.invalidate_caches()  # PySpark does so in every worker
    assert importlib.import_module("archived_after").value == 2
    assert reads == []
