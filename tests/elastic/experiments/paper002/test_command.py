"""`elastic bench paper002 --quick`: every table and chart, and what must hold in them."""

from pathlib import Path

import pytest
from click.testing import Result

from elastic.experiments.paper002 import EXPERIMENTS, QUICK, Lab
from tests.elastic.experiments.bench import read_rows, run_bench, run_quickly


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    return run_quickly("paper002", tmp_path_factory.mktemp("paper002"))


def test_a_quick_run_writes_every_table_every_picture_and_what_differs(quick: tuple[Path, Result]) -> None:
    folder, shown = quick
    assert shown.exit_code == 0, shown.output
    for name, experiment in EXPERIMENTS.items():
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert experiment.title in shown.stdout
        assert experiment.note in shown.stdout
        assert read_rows(folder, name)


def test_switches_first_move_less_than_mixed_where_standbys_are_cheap(quick: tuple[Path, Result]) -> None:
    rows = read_rows(quick[0], "figure8")
    for theta in {row["value"] for row in rows}:
        moved = {row["strategy"]: float(row["moved_percent"]) for row in rows if row["value"] == theta}
        assert moved["switch-first"] <= 0.2 * moved["mixed"]
    free = [float(row["of_mixed"]) for row in read_rows(quick[0], "share") if row["strategy"] == "switch-first"]
    assert free[0] < free[-1]


def test_standbys_by_a_second_hash_even_out_loads(quick: tuple[Path, Result]) -> None:
    heaviest = {
        (row["parameter"], row["value"], row["standbys"]): float(row["load"])
        for row in read_rows(quick[0], "figure7")
        if row["percentile"] == "100"
    }
    assert all(load > 1 for load in heaviest.values())
    assert heaviest["nodes", "5", "1"] < heaviest["nodes", "5", "0"]


def test_the_same_seed_gives_the_same_costs_and_another_seed_others() -> None:
    means = [Lab(QUICK, seed).mean("ftlb", Lab(QUICK).setting()).moved_percent for seed in (0, 0, 7)]
    assert means[0] == means[1] != means[2]


def test_an_unknown_figure_is_refused() -> None:
    assert run_bench("paper002", "--only", "figure3").exit_code == 2
