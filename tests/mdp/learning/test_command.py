"""`elastic learn`, as it is typed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import storage
from elastic.cli.learn import SPARK_FROM_BYTES, Sources, command
from mdp.learning import HourlyMatrices, generate_tweet_volume, load_learned, load_matrix
from mdp.matrix import TransitionMatrix
from storage.journal import JobJournal, MigrationEnded
from tests.mdp.instances import write_csv


@pytest.fixture
def tweets(tmp_path: Path) -> str:
    return str(write_csv(generate_tweet_volume(seed=1, days=30), tmp_path / "tweets.csv"))


def typed(*words: str) -> Result:
    return CliRunner().invoke(command, words)


def test_a_log_becomes_a_table_a_file_and_a_picture(tweets: str, tmp_path: Path) -> None:
    output, picture = tmp_path / "matrix.json", tmp_path / "matrix.png"
    shown = typed("--input", tweets, "--range", "8", "16", "--output", str(output), "--plot", str(picture))
    assert shown.exit_code == 0, shown.output
    assert "from \\ to" in shown.output
    assert f"saved: {output}" in shown.output
    assert load_matrix(output).nodes == tuple(range(8, 17))
    assert picture.exists()


def test_json_is_the_matrix_and_nothing_else(tweets: str) -> None:
    shown = typed("--input", tweets, "--range", "8", "16", "--json", "--rounding", "up", "--hysteresis", "0.3")
    matrix = TransitionMatrix.from_dict(json.loads(shown.stdout))
    assert (matrix.origin["rounding"], matrix.origin["hysteresis"]) == ("up", 0.3)


def test_hours_are_learned_if_asked(tweets: str, tmp_path: Path) -> None:
    output = tmp_path / "hours.json"
    shown = typed("--input", tweets, "--range", "8", "16", "--hourly", "--output", str(output))
    assert "next is up" in shown.output
    learned = load_learned(output)
    assert isinstance(learned, HourlyMatrices)
    assert learned.overall.observations > 0


def test_several_files_are_added_up_if_asked(tweets: str, tmp_path: Path) -> None:
    other = str(write_csv(generate_tweet_volume(seed=2, days=30), tmp_path / "other.csv"))
    words = ("--input", tweets, "--input", other, "--range", "8", "16")
    refused = typed(*words)
    assert refused.exit_code == 1
    assert "more than one record of 2015-02-26T21:42:53" in refused.output
    assert typed(*words, "--duplicates", "sum").exit_code == 0


def test_node_counts_are_learned_from_their_column(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("at,nodes\n2015-03-01,4\n2015-03-02,5\n2015-03-03,5\n2015-03-04,4\n")
    words = ("--input", str(path), "--time-column", "at", "--nodes-column", "nodes", "--json")
    assert json.loads(typed(*words).stdout)["observed"] == [[0, 1], [1, 0]]
    assert json.loads(typed(*words, "--repeats", "rebalance").stdout)["observed"] == [[0, 1], [1, 1]]


def test_a_journal_is_learned_with_its_rebalances() -> None:
    journal = JobJournal(storage.open("memory:learn-command"), "words")
    for before, after in ((4, 5), (5, 5), (5, 4)):
        journal.append(MigrationEnded(outcome="done", nodes_before=before, nodes_after=after, tasks_moved=1))
    shown = typed("--journal", "memory:learn-command", "--job", "words", "--json")
    assert json.loads(shown.stdout)["observed"] == [[0, 1], [1, 1]]


@pytest.mark.parametrize(("window", "seconds"), [("15m", 900), ("7200", 7200), ("1d", 86_400), ("1.5h", 5400)])
def test_a_window_has_a_unit(tweets: str, window: str, seconds: float) -> None:
    shown = typed("--input", tweets, "--range", "8", "16", "--window", window, "--json")
    assert json.loads(shown.stdout)["origin"]["window_seconds"] == seconds


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "--input"),
        (["--input", "a.csv", "--journal", "memory:x", "--job", "words"], 2, "--journal"),
        (["--journal", "memory:x"], 2, "--job"),
        (["--input", "nowhere.csv", "--range", "8", "16"], 1, "there is no log at nowhere.csv"),
        (["--input", "nowhere.csv"], 1, "there is no log at nowhere.csv"),
        (["--input", "nowhere.csv", "--range", "16", "8"], 1, "Give 1 <= low < high"),
        (["--input", "nowhere.csv", "--window", "soon"], 2, "expected a duration"),
        (["--input", "nowhere.csv", "--gaps", "mend"], 2, "--gaps"),
        (["--journal", "nowhere:x", "--job", "words"], 1, "no store has the scheme"),
    ],
)
def test_what_is_typed_wrong_is_said(words: list[str], code: int, says: str) -> None:
    shown = typed(*words)
    assert shown.exit_code == code
    assert says in shown.output


def test_spark_is_used_for_what_is_large_remote_or_asked_for(tmp_path: Path) -> None:
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    small.write_text("timestamp,value\n")
    with large.open("wb") as file:
        file.truncate(SPARK_FROM_BYTES)

    def wants(*paths: object, asked: bool | None = None, master: str | None = None) -> bool:
        return Sources(tuple(map(str, paths)), None, None, "timestamp", "value", None).needs_spark(asked, master)

    assert not wants(small)
    assert wants(small, large)
    assert wants("s3a://bucket/logs")
    assert wants(small, master="local[2]")
    assert wants(small, asked=True)
    assert not wants(large, asked=False)
