"""`elastic export`, `import` and `resign`, from the command line to the store."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from elastic.__main__ import main
from elastic.local.run import local_run
from elastic.operators import CountByKey
from storage import Secret

OLD, NEW = "the old secret of these tests", "the new secret of these tests"
ROWS = pa.table({"word": ["a", "b", "a"]})


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a stopped job of two words."""
    url = (tmp_path / "store").as_uri()
    run(url, "words", OLD, [ROWS])
    return url


def run(store: str, name: str, secret: str, rows: list[pa.Table], tasks: int = 4) -> dict[str, int]:
    with local_run(
        rows,
        schema=ROWS.schema,
        key="word",
        operator=CountByKey(),
        name=name,
        store=store,
        tasks=tasks,
        secret=Secret.of(secret),
        settings={"heartbeat_seconds": 0.1},
    ) as job:
        job.process_all_available()
        return {word: job.state(word) for word in "ab"} if rows else {}


def call(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), env={"ELASTIC_SECRET": OLD, **(env or {})})


def test_a_job_is_exported_and_another_one_begins_with_it(store: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "export")
    done = call("export", "words", folder, "--store", store)
    assert done.exit_code == 0, done.output
    assert "as of batch 0. Rows: 2 of CountByKey" in done.output
    done = call("import", folder, "--name", "copy", "--store", store, "--tasks", "7", "--json")
    assert json.loads(done.output) == {"name": "copy", "tasks": 7, "rows": {"CountByKey": 2}}
    assert run(store, "copy", OLD, [ROWS], tasks=7) == {"a": 4, "b": 2}
    again = call("import", folder, "--name", "copy", "--store", store)
    assert (again.exit_code, "has a job named 'copy' already" in again.output) == (1, True)
    assert call("export", "words", folder, "--store", store).exit_code == 1


def test_parquet_files_of_a_user_become_a_job(tmp_path: Path) -> None:
    store, path = (tmp_path / "store").as_uri(), tmp_path / "counted.parquet"
    pq.write_table(pa.table({"word": ["a"], "count": [40]}), path)
    options = ["--operator", "elastic.operators:CountByKey", "--key", "word", "--schema", "word string", "--tasks", "4"]
    done = call("import", str(path), "--name", "words", "--store", store, *options)
    assert done.exit_code == 0, done.output
    assert run(store, "words", OLD, [ROWS]) == {"a": 42, "b": 1}
    done = call("import", str(path), "--name", "other", "--store", store)
    assert (done.exit_code, "no document of an export" in done.output) == (1, True)


def test_a_job_is_signed_with_a_new_secret(store: str, tmp_path: Path) -> None:
    assert "Set ELASTIC_NEW_SECRET" in call("resign", "words", "--store", store).output
    file = tmp_path / "secret"
    file.write_text(NEW)
    file.chmod(0o644)
    options = ["resign", "words", "--store", store, "--new-secret-file", str(file)]
    assert "other users may read it" in call(*options).output
    file.chmod(0o600)
    assert json.loads(call(*options, "--json").output)["signed"] > 3
    assert call(*options).exit_code == 0
    assert run(store, "words", NEW, [ROWS, ROWS]) == {"a": 4, "b": 2}
    done = call("resign", "words", "--store", store, env={"ELASTIC_NEW_SECRET": "a third secret for tests"})
    assert (done.exit_code, "not signed with this application's secret" in done.output) == (1, True)
    assert all(secret not in done.output for secret in (OLD, NEW))
