"""Documents name files, functions and metrics, and link to each other; what they name must exist."""

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import elastic
from elastic.api.metrics import METRICS, create_response_histogram
from elastic.settings import Settings

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
    histogram = next(iter(create_response_histogram().describe())).name
    known = {metric.name for metric in METRICS} | {histogram, f"{histogram}_bucket"}
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
def test_every_example_of_a_job_in_a_document_runs(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    """In the shared Spark application, which `local_session` finds; a job that still runs at the end is stopped."""
    assert spark is not None
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("hello world\nhello again\n")
    monkeypatch.chdir(tmp_path)
    for example in examples_in(document, with_spark=True):
        # The JVM keeps the folder that it was started in.
        program = re.sub(r"file:///[a-z/-]+", (tmp_path / "store").as_uri(), example)
        program = program.replace('"texts"', repr(str(tmp_path / "texts")))
        names: dict[str, Any] = {"__name__": "__main__"}  # so that operators are pickled by value, as in a script
        try:
            exec(compile(program, document.name, "exec"), names)  # noqa: S102
        finally:
            for job in [value for value in names.values() if isinstance(value, elastic.Job)]:
                job.stop()


def test_every_document_names_the_tested_version_of_sparks_kafka_connector() -> None:
    tested = re.search(r"^connector=(\S+)$", (ROOT / "scripts" / "kafka.sh").read_text(), re.MULTILINE)
    assert tested is not None
    pattern = r"spark-sql-kafka-0-10_2\.13:([0-9.]+\d)"
    named = {version for document in DOCUMENTS for version in re.findall(pattern, document.read_text())}
    assert named == {tested[1]}
    assert f"| Spark's Kafka connector | {tested[1]} |" in (ROOT / "docs" / "kafka.md").read_text()


def test_the_guide_for_operations_lists_every_setting_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", section_of("operations.md", "Settings"), re.MULTILINE)
    defaults = {one.name: one.default for one in fields(Settings)}
    assert {
        name: text if isinstance(defaults[name], str) else ast.literal_eval(text) for name, text in rows
    } == defaults


def section_of(document: str, title: str) -> str:
    return (ROOT / "docs" / document).read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
