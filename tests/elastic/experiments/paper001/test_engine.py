"""A running job with a hot key, in small: all techniques count the same, and nodes share the hot key."""

import json
from pathlib import Path

from click.testing import CliRunner

from elastic.cli.bench import command
from elastic.experiments.paper001.engine import HASH, techniques


def test_every_technique_counts_every_row_once(tmp_path: Path) -> None:
    """The experiment itself compares the counts."""
    arguments = ["paper001", "--engine", "--quick", "--json", "--output", str(tmp_path)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["splitting"]["rows"]
    assert [row["technique"] for row in rows] == [*techniques(0.0)]
    assert next(row["speed_up"] for row in rows if row["technique"] == HASH) == 1.0
    assert (tmp_path / "splitting.png").stat().st_size > 1_000
