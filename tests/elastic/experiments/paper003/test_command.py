"""`elastic bench paper003`, as it is typed."""

import json
from pathlib import Path

import pytest
from click.testing import Result

from elastic.experiments.paper003 import EXPERIMENTS
from mdp.learning import generate_tweet_volume
from tests.elastic.experiments.bench import read_rows, run_bench, run_quickly
from tests.mdp.instances import write_csv

COLUMNS = {
    "figure9": {"tau", "strategy", "method", "partitions", "moved_percent", "moved_standard_error", "saving_percent"},
    "figure10": {"tau", "tasks", "call_us", "call_p10_us", "call_p90_us", "kernel_us"},
    "figure11": {"tau", "method", "partitions", "seconds", "proven_error_percent", "captured_percent"},
    "figure12": {"tau", "tasks", "call_us", "kernel_us", "moved_percent"},
    "figure14": {"gamma", "method", "seconds", "moved_percent", "saving_percent", "saving_standard_error"},
    "quality": {
        "case",
        "tau",
        "policy",
        "moved_percent",
        "saving_percent",
        "saving_standard_error",
        "captured_percent",
    },
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    return run_quickly("paper003", tmp_path_factory.mktemp("paper003"))


def test_a_quick_run_writes_every_table_and_every_picture(quick: tuple[Path, Result]) -> None:
    folder, shown = quick
    assert shown.exit_code == 0, shown.output
    for name, experiment in EXPERIMENTS.items():
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert experiment.title in shown.stdout
        assert name in shown.stderr
    assert set(COLUMNS) == set(EXPERIMENTS)


@pytest.mark.parametrize("name", COLUMNS)
def test_tables_have_the_columns_that_are_promised(quick: tuple[Path, Result], name: str) -> None:
    rows = read_rows(quick[0], name)
    assert rows
    assert COLUMNS[name] <= set(rows[0])


def test_figure_9_says_where_it_is_exact(quick: tuple[Path, Result]) -> None:
    rows = read_rows(quick[0], "figure9")
    methods = {row["tau"]: row["method"] for row in rows if row["strategy"] == "mtm-aware"}
    assert methods == {"0.2": "exact", "0.4": "two steps"}
    moved = {(row["tau"], row["strategy"]): float(row["moved_percent"]) for row in rows}
    assert moved["0.2", "even"] == moved["0.4", "even"] > moved["0.2", "consistent-hash"] > moved["0.2", "ssm"]


def test_figure_11_proves_or_measures_how_good_a_projection_is(quick: tuple[Path, Result]) -> None:
    rows = read_rows(quick[0], "figure11")
    assert all((row["proven_error_percent"] != "") == (row["method"] == "exact") for row in rows)
    assert all(int(row["judged_on_tasks"]) <= 20 for row in rows if row["method"] == "approximate")


def test_quality_has_exact_values_everywhere_if_only_on_a_reduced_instance(quick: tuple[Path, Result]) -> None:
    rows = read_rows(quick[0], "quality")
    cases = {(row["case"], row["tau"]) for row in rows}
    assert cases == {(row["case"], row["tau"]) for row in rows if row["policy"] == "exact"}
    assert {case for case, _ in cases} >= {"log-normal", "equal", "zipf", "tweets: all logs"}
    assert {row["instance"] for row in rows} == {"whole", "reduced"}


def test_json_is_all_rows_of_what_was_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "data" / "tweet_volume"
    log.mkdir(parents=True)
    write_csv(generate_tweet_volume(seed=1, days=8), log / "ONE.csv")
    words = ("--quick", "--only", "figure10", "--json", "--data", str(tmp_path / "data"), "--output", str(tmp_path))
    told = json.loads(run_bench("paper003", *words).stdout)
    assert list(told) == ["figure10"]
    assert [row["tau"] for row in told["figure10"]["rows"]] == [0.2, 0.4]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [(["--only", "figure13"], 2, "figure13"), (["--data", "nowhere"], 2, "nowhere"), (["--data", "."], 1, "no log")],
)
def test_what_is_typed_wrong_is_said(
    words: list[str], code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run_bench("paper003", *words, "--quick")
    assert shown.exit_code == code
    assert says in shown.output
