"""Documents name files, functions and metrics, and link to each other; what they name must exist."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from elastic.api.metrics import METRICS

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def names_in(path: Path) -> set[str]:
    """Functions, classes, methods as `Class.method`, and what is assigned at the top."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name, body=body):
                names.add(name)
                names |= {f"{name}.{inner.name}" for inner in body if isinstance(inner, ast.FunctionDef)}
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_and_function_named_in_a_document_exists(document: Path) -> None:
    for file, name in re.findall(r"`([a-z0-9_/]+\.py)(?:::([\w.]+))?`", document.read_text()):
        path = ROOT / file if (ROOT / file).exists() else ROOT / "migration" / "kernels" / file
        assert path.exists(), f"{document.name} names {file}"
        assert not name or name in names_in(path), f"{document.name} names {name} in {file}"


def anchors_in(path: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_somewhere(document: Path) -> None:
    for file, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", document.read_text()):
        target = document.parent / file if file else document
        assert target.exists(), f"{document.name} links to {file}"
        assert not anchor or anchor in anchors_in(target), f"{document.name} links to {file}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_metric_named_in_a_document_exists(document: Path) -> None:
    known = {metric.name for metric in METRICS}
    named = set(re.findall(r"\belastic_\w+", document.read_text()))
    assert named <= known, f"{document.name} names {named - known}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_named_in_a_document_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for named in re.findall(r"(?:`|^)make ([a-z0-9 -]+?)(?:`|\s+#|$)", document.read_text(), re.MULTILINE):
        assert set(named.split()) <= targets, f"{document.name} names make {named}"


# What a reader of the examples is expected to have at hand.
AT_HAND = {
    "seconds_per_task": [1.0] * 64,
    "bytes_per_task": [1000.0] * 64,
    "rows": pa.table({"word": ["spark"]}),
    "counts": {"spark": 1},
}


def examples_in(document: Path, *, with_spark: bool) -> list[str]:
    examples = re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)
    return [example for example in examples if ("elastic.run(" in example) == with_spark]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_python_example_in_a_document_runs(document: Path) -> None:
    for example in examples_in(document, with_spark=False):
        program = re.sub(r'storage\.open\("[^"]+"\)', 'storage.open("memory:")', example)
        exec(compile(program, document.name, "exec"), dict(AT_HAND))  # noqa: S102


@pytest.mark.spark
@pytest.mark.parametrize(
    "document",
    [document for document in DOCUMENTS if examples_in(document, with_spark=True)],
    ids=lambda path: path.name,
)
def test_every_example_of_a_job_in_a_document_runs(document: Path, tmp_path: Path) -> None:
    """In a process of its own, as a reader would: a Spark session holds for the whole process."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("hello world\nhello again\n")
    for example in examples_in(document, with_spark=True):
        program = re.sub(r"file:///[a-z/-]+", (tmp_path / "store").as_uri(), example)
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=180)  # noqa: S603
