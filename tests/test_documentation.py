"""Documents name files and functions; they must exist."""

import ast
import re
from pathlib import Path

import pyarrow as pa
import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_and_function_named_in_a_document_exists(document: Path) -> None:
    for file, name in re.findall(r"`([a-z_/]+\.py)(?:::(\w+))?`", document.read_text()):
        path = ROOT / file if (ROOT / file).exists() else ROOT / "migration" / "kernels" / file
        assert path.exists(), f"{document.name} names {file}"
        assert not name or name in names_in(path), f"{document.name} names {name} in {file}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_python_example_in_a_document_runs(document: Path) -> None:
    for example in re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL):
        program = re.sub(r'storage\.open\("[^"]+"\)', 'storage.open("memory:")', example)
        exec(compile(program, document.name, "exec"), dict(AT_HAND))  # noqa: S102
