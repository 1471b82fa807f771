"""The names that users import from `elastic`, and what importing them costs."""

import subprocess
import sys

import elastic

PUBLIC = {
    *(
        "Input",
        "Job",
        "ProcessorOperator",
        "ProcessorTester",
        "SparkJob",
        "__version__",
        "cluster_session",
        "local_run",
    ),
    *("local_session", "register_sources", "run", "transform_with_state", "export_state", "import_state", "resign"),
}
LISTING = """
import sys
{statement}
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & {{"pyspark", "py4j", "numba", "numpy", "pyarrow"}}))
"""


def imported_by(statement: str) -> set[str]:
    program = LISTING.format(statement=statement)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)  # noqa: S603
    return set(done.stdout.split())


def test_the_public_names_are_these_and_all_of_them_exist() -> None:
    assert set(elastic.__all__) == PUBLIC
    assert all(getattr(elastic, name) for name in PUBLIC)


def test_importing_the_package_or_its_command_line_imports_no_large_library() -> None:
    assert imported_by("import elastic") == set()
    assert imported_by("import elastic.__main__") == set()


def test_a_local_run_needs_no_spark() -> None:
    assert not imported_by("from elastic import Job, local_run") & {"pyspark", "py4j"}
