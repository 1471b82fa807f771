"""`elastic bench paper000`, as it is typed."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import Result

from elastic.experiments.paper000 import EXPERIMENTS
from tests.elastic.experiments.bench import read_rows, run_bench, run_quickly

SWEEP = {"parameter", "value", "window", "strategy", "milliseconds", "moved_percent", "bound_percent", "entries"}
COLUMNS = {
    "figure7": {"panel", "nodes", "keys", "percentile", "load"},
    "figure8": SWEEP,
    "figure9": SWEEP,
    "figure10": SWEEP,
    "figure11": {"degree", "records", "plan_milliseconds", "materialise_milliseconds", "load_error_percent"},
    "figure12": SWEEP,
    "figure17": {"strategy", "theta", "most_entries", "moved_percent", "bound_percent"},
    "figure18": {"theta", "adjustment", "entries", "limit"},
    "figure19": SWEEP,
    "figure20": {"window", "beta", "entries"},
    "figure21": {"window", "beta", "moved_percent", "bound_percent"},
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    return run_quickly("paper000", tmp_path_factory.mktemp("paper000"))


def test_a_quick_run_writes_every_table_and_every_picture(quick: tuple[Path, Result]) -> None:
    folder, shown = quick
    assert shown.exit_code == 0, shown.output
    for name, experiment in EXPERIMENTS.items():
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert experiment.title in shown.stdout
        assert name in shown.stderr
    assert set(COLUMNS) == set(EXPERIMENTS)


def test_what_differs_from_the_paper_is_printed(quick: tuple[Path, Result]) -> None:
    notes = [experiment.note for experiment in EXPERIMENTS.values()]
    assert all(notes)
    assert all(note in quick[1].stdout for note in notes)


@pytest.mark.parametrize("name", COLUMNS)
def test_tables_have_the_columns_that_are_promised(quick: tuple[Path, Result], name: str) -> None:
    rows = read_rows(quick[0], name)
    assert rows
    assert COLUMNS[name] <= set(rows[0])


@pytest.mark.parametrize("name", [name for name, columns in COLUMNS.items() if columns is SWEEP])
def test_no_strategy_moves_less_than_its_lower_bound(quick: tuple[Path, Result], name: str) -> None:
    for row in read_rows(quick[0], name):
        if float(row["relaxed_percent"]) == 0:
            assert float(row["moved_percent"]) >= float(row["bound_percent"]) * (1 - 1e-4)


def test_figure_11_has_the_plan_over_all_keys_beside_those_over_records(quick: tuple[Path, Result]) -> None:
    exact, *records = read_rows(quick[0], "figure11")
    assert exact["degree"] == exact["records"] == ""
    assert [float(row["degree"]) for row in records] == [1, 8, 64]
    assert float(records[0]["load_error_percent"]) < 0.5
    assert float(records[0]["moved_percent"]) == pytest.approx(float(exact["moved_percent"]), rel=0.1)


def test_the_same_seed_moves_the_same_state_and_another_seed_another(
    quick: tuple[Path, Result], tmp_path: Path
) -> None:
    moved = {}
    for seed in ("0", "7"):
        told = json.loads(
            run_bench(
                "paper000", "--quick", "--only", "figure9", "--json", "--seed", seed, "--output", str(tmp_path)
            ).stdout
        )
        assert list(told) == ["figure9"]
        moved[seed] = [f"{row['moved_percent']:.6g}" for row in told["figure9"]["rows"]]
    assert moved["0"] == [row["moved_percent"] for row in read_rows(quick[0], "figure9")]
    assert moved["0"] != moved["7"]


def test_an_unknown_figure_is_refused() -> None:
    shown = run_bench("paper000", "--only", "figure13", "--quick")
    assert shown.exit_code == 2
    assert "figure13" in shown.output


def test_figures_of_plans_and_of_a_running_job_are_not_mixed() -> None:
    for words, advice in (["--only", "figure13"], "with --engine"), (["--engine", "--only", "figure7"], "without"):
        refused = run_bench("paper000", *words)
        assert refused.exit_code == 2
        assert advice in refused.output


def test_experiments_on_a_running_job_need_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith(("examples.", "elastic.experiments.paper000.engine"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "examples", None)
    refused = run_bench("paper000", "--engine", "--quick", "--output", str(tmp_path))
    assert refused.exit_code == 1
    assert "Clone it" in refused.output
