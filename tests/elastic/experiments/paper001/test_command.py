"""`elastic bench paper001`, as it is typed."""

import json
from pathlib import Path

import pytest
from click.testing import Result

from elastic.experiments.paper001 import EXPERIMENTS, QUICK
from tests.elastic.experiments.bench import read_rows, run_bench, run_quickly

IMBALANCE = {"stream", "workers", "technique", "average", "final", "floor", "paper"}
COLUMNS = {
    "table1": {"stream", "messages", "keys", "heaviest_percent", "paper_keys"},
    "table2": IMBALANCE,
    "figure2": IMBALANCE,
    "figure3": {"stream", "workers", "technique", "message", "imbalance", "overlap"},
    "figure4": {"split", "sources", "workers", "average"},
    "figure5a": {"technique", "delay_ms", "rows_per_second"},
    "figure5b": {"technique", "period", "counters", "rows_per_second"},
    "memory": {"stream", "workers", "technique", "copies", "times_pkg"},
    "speed": {"technique", "workers", "rows_per_second"},
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    return run_quickly("paper001", tmp_path_factory.mktemp("paper001"))


def test_a_quick_run_writes_every_table_and_every_picture(quick: tuple[Path, Result]) -> None:
    folder, shown = quick
    assert shown.exit_code == 0, shown.output
    assert set(COLUMNS) == set(EXPERIMENTS)
    for name, experiment in EXPERIMENTS.items():
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert read_rows(folder, name)[0].keys() >= COLUMNS[name]
        assert experiment.title in shown.stdout
        assert experiment.note
        assert experiment.note in shown.stdout


def test_two_choices_never_are_below_their_floor_and_w_choices_are(quick: tuple[Path, Result]) -> None:
    rows = [row for row in read_rows(quick[0], "table2") if float(row["floor"]) > 1e-3]
    assert rows
    for row in rows:
        if row["technique"] in ("G", "PoTC", "H"):
            assert float(row["final"]) >= float(row["floor"])
        elif row["technique"] == "W-Choices":
            assert float(row["average"]) < float(row["floor"]) / 10


def test_the_models_say_that_the_busiest_worker_limits_throughput(quick: tuple[Path, Result]) -> None:
    slowest = {
        row["technique"]: row
        for row in read_rows(quick[0], "figure5a")
        if float(row["delay_ms"]) == QUICK.delays_ms[-1]
    }
    assert float(slowest["KG"]["rows_per_second"]) < 0.8 * float(slowest["PKG"]["rows_per_second"])
    assert float(slowest["KG"]["rows_per_second"]) == pytest.approx(1e3 / float(slowest["KG"]["largest_share"]), 1e-4)
    periods = [row for row in read_rows(quick[0], "figure5b") if row["technique"] == "PKG"]
    assert float(periods[0]["counters"]) < float(periods[-1]["counters"])
    assert float(periods[0]["partials_per_row"]) > float(periods[-1]["partials_per_row"])


def test_words_of_tweets_are_one_more_stream(tmp_path: Path) -> None:
    (tmp_path / "tweets.csv").write_text("created_at,text\n1,the flight\n2,The delay of the flight\n")
    shown = run_bench(
        "paper001", "--quick", "--only", "table1", "--data", str(tmp_path), "--output", str(tmp_path), "--json"
    )
    rows = json.loads(shown.stdout)["table1"]["rows"]
    [tweets] = [row for row in rows if row["stream"] == "tweets"]
    assert (tweets["messages"], tweets["keys"]) == (7, 4)
    assert tweets["heaviest_percent"] == pytest.approx(300 / 7)


def test_a_folder_without_tweets_is_refused(tmp_path: Path) -> None:
    shown = run_bench("paper001", "--quick", "--data", str(tmp_path))
    assert shown.exit_code == 1
    assert "there is no tweets.csv in" in shown.output
