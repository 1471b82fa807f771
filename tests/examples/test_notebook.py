"""The notebook runs from the first to the last cell, with Spark and without, and is kept without outputs."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
CELL_SECONDS = 240

nbformat: Any = pytest.importorskip("nbformat")


def read() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


def execute(folder: Path) -> str:
    """Run all cells in a kernel of their own; return what they show, as text and HTML."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of Jupyter's own packages
        nbclient: Any = pytest.importorskip("nbclient")
        client = nbclient.NotebookClient(
            read(), timeout=CELL_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        notebook = client.execute()
    shown: list[str] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown += [output.get("text", ""), *map(str, output.get("data", {}).values())]
    return "\n".join(shown)


def check(shown: str) -> None:
    assert "Plan (ssm): 2 → 4 nodes" in shown
    assert "Migration 2 → 4 nodes (ssm, progressive): done" in shown
    assert "Plan (ssm): 4 → 3 nodes" in shown
    assert "Job words: running" in shown
    assert "'words', stopped" in shown
    assert re.search(r"word-1 so far: (\d+), expected: \1\n", shown)
    assert "<script" not in shown


def test_it_has_no_outputs_and_no_paths_of_a_machine() -> None:
    for cell in read().cells:
        assert cell.cell_type == "markdown" or (cell.outputs == [] and cell.execution_count is None)
    assert not re.search(r"/(home|Users|root|work|tmp)/", NOTEBOOK.read_text())


def test_it_runs_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shown = execute(tmp_path)
    assert "without Spark" in shown
    check(shown)


@pytest.mark.spark
def test_it_runs_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shown = execute(tmp_path)
    assert "with Spark" in shown
    check(shown)
