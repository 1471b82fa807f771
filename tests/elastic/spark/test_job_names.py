"""Every name that a job may have works in every place that spells it: keys, journals, files of the command line."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import storage
from elastic.cli.connection import Connection, announce, find_connection
from elastic.control import JobJournal
from elastic.errors import InvalidSetting
from elastic.results.paths import ResultPaths
from elastic.spark.checks import check_name
from mdp.learning.journal import read_completed_migrations
from storage.journal import MigrationEnded
from storage.state.paths import Paths


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", fullmatch=True))
@example("a.b")
@example("a" * 100)
@example("a" + "." * 99)
@example("a..b")
def test_every_accepted_name_names_the_objects_of_a_job(name: str) -> None:
    try:
        check_name(name)
    except InvalidSetting:
        assert name.count(".") > 40  # the only reason left: the name would be too long for a file
        return
    store = storage.open("memory:")
    Paths(name), ResultPaths(name)
    JobJournal(store, name).append(MigrationEnded(outcome="done", nodes_before=2, nodes_after=3))
    assert [record["kind"] for record in JobJournal(store, name).read()] == ["ended"]
    assert [(done.nodes_before, done.nodes_after) for done in read_completed_migrations(store, name)] == [(2, 3)]


@pytest.mark.parametrize("name", ["a.b", "a.json", "v1.2.3"])
def test_the_command_line_finds_a_job_whose_name_has_a_dot(name: str, tmp_path: object) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    with announce(Connection("http://127.0.0.1:1", name, "token"), environ):
        assert find_connection(None, None, None, environ).job == name


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "a b", "é", "a" * 101, "a" + "." * 99])
def test_a_name_that_cannot_name_files_is_refused(name: str) -> None:
    with pytest.raises(InvalidSetting, match="name"):
        check_name(name)
