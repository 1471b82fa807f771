"""`elastic bench paper004`, as it is typed, and the streams behind it."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from elastic.experiments.paper004 import EXPERIMENTS, QUICK, Lab
from elastic.experiments.paper004.lab import summarise
from elastic.experiments.paper004.streams import Setting, fit_skew, frequencies
from tests.elastic.experiments.bench import read_rows, run_bench, run_quickly

SWEEP = {"parameter", "value", "policy", "mean_ms", "min_ms", "max_ms", "speedup", "least_speedup", "most_speedup"}
SERIES = {"policy", "row", "mean_ms", "min_ms", "max_ms", "first_run"}
COLUMNS = {
    **{f"figure{number}": SERIES if number in (10, 11) else SWEEP for number in range(4, 13)},
    "senders": {"scheduler", "costs", "senders", "makespan", "rows_per_second"},
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    return run_quickly("paper004", tmp_path_factory.mktemp("paper004"))


def test_a_quick_run_writes_every_table_every_picture_and_what_differs(quick: tuple[Path, Result]) -> None:
    folder, shown = quick
    assert shown.exit_code == 0, shown.output
    assert set(COLUMNS) == set(EXPERIMENTS)
    for name, experiment in EXPERIMENTS.items():
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert experiment.title in shown.stdout
        assert experiment.note
        assert experiment.note in shown.stdout
        assert set(read_rows(folder, name)[0]) == COLUMNS[name]


def test_figures_8_and_9_are_said_not_to_be_reproduced() -> None:
    missing = [name for name, experiment in EXPERIMENTS.items() if experiment.note.startswith("Not reproduced")]
    assert missing == ["figure8", "figure9"]


def test_nothing_is_faster_than_full_knowledge_and_one_instance_gains_nothing(quick: tuple[Path, Result]) -> None:
    for skew in {row["value"] for row in read_rows(quick[0], "figure4")}:
        mine = {row["policy"]: float(row["mean_ms"]) for row in read_rows(quick[0], "figure4") if row["value"] == skew}
        assert min(mine, key=mine.__getitem__) == "full-knowledge"
    assert {row["speedup"] for row in read_rows(quick[0], "figure8") if row["value"] == "1"} == {"1"}


def test_exact_costs_are_balanced_best(quick: tuple[Path, Result]) -> None:
    rows = [row for row in read_rows(quick[0], "senders") if row["scheduler"] != "round-robin"]
    for senders in {row["senders"] for row in rows}:
        mine = {(row["scheduler"], row["costs"]): float(row["makespan"]) for row in rows if row["senders"] == senders}
        assert min(mine, key=mine.__getitem__) == ("posg-batch", "exact")


def test_the_same_seed_gives_the_same_times_and_another_seed_others(quick: tuple[Path, Result], tmp_path: Path) -> None:
    means = {}
    for seed in ("0", "7"):
        shown = run_bench(
            "paper004", "--quick", "--only", "figure7", "--json", "--seed", seed, "--output", str(tmp_path)
        )
        means[seed] = [f"{row['mean_ms']:.6g}" for row in json.loads(shown.stdout)["figure7"]["rows"]]
    assert means["0"] == [row["mean_ms"] for row in read_rows(quick[0], "figure7")]
    assert means["0"] != means["7"]


def test_an_unknown_figure_is_refused() -> None:
    assert run_bench("paper004", "--only", "figure3").exit_code == 2


def test_a_stream_has_the_costs_and_the_rate_of_its_setting() -> None:
    stream = Setting(5_000, 64, 1.0, cost_values=4, max_milliseconds=10.0, instances=3, provisioning=1.5).stream(1)
    assert np.unique(stream.costs * 1_000) == pytest.approx([1, 4, 7, 10])
    assert np.diff(stream.arrivals) == pytest.approx(np.full(4_999, stream.costs.mean() / 3 * 1.5))
    by_key = {key: {*stream.costs[stream.hashes == key]} for key in np.unique(stream.hashes)}
    assert all(len(costs) == 1 for costs in by_key.values())
    assert stream.instances == 3


def test_generated_tweets_have_three_costs_and_a_politician_at_the_top() -> None:
    stream = Setting(20_000, 1_000, fit_skew(1_000, 0.2), tweets=True).stream(0)
    values, counts = np.unique(stream.hashes, return_counts=True)
    assert counts.max() / stream.rows == pytest.approx(0.2, abs=0.01)
    assert stream.costs[stream.hashes == values[counts.argmax()]][0] == pytest.approx(0.005)
    assert np.unique(stream.costs) == pytest.approx([0.001, 0.005, 0.025])


def test_frequencies_fall_with_the_skew() -> None:
    assert frequencies(4, 0.0).tolist() == [0.25] * 4
    assert frequencies(3, 1.0) == pytest.approx([6 / 11, 3 / 11, 2 / 11])


def test_speedups_are_of_sums_and_their_spread_is_of_streams() -> None:
    found = summarise(np.array([1.0, 3.0]), np.array([2.0, 3.0]))
    assert found == (2, 1, 3, 5 / 4, 1, 2)


def test_a_comparison_always_has_round_robin() -> None:
    lab = Lab(QUICK)
    compared = lab.compare(lab.setting(rows=500), ["full-knowledge"], 1)
    assert list(compared) == ["round-robin", "full-knowledge"]
    assert compared["round-robin"].speedup == 1
