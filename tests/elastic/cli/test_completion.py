"""What a shell is told to complete, by click's own classes for shells."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete
from click.testing import CliRunner

from elastic.__main__ import COMMANDS, main
from elastic.cli.completion import PROGRAM, VARIABLE
from elastic.cli.connection import Connection, announced
from elastic.cli.known import MODES, STRATEGIES

SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


def completed(*words: str, so_far: str = "") -> list[str]:
    shell = BashComplete(main, {}, PROGRAM, VARIABLE)
    return [item.value for item in shell.get_completions(list(words), so_far)]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_that_of_click(shell: str) -> None:
    shown = CliRunner().invoke(main, ["completion", shell])

    assert shown.exit_code == 0, shown.output
    assert shown.stdout == SHELLS[shell](main, {}, PROGRAM, VARIABLE).source()
    assert f"{VARIABLE}={shell}_complete" in shown.stdout


def test_commands_options_and_choices_are_completed() -> None:
    assert completed() == [*COMMANDS]
    assert completed(so_far="re") == ["rebalance", "resume"]
    assert completed("scale", so_far="--str") == ["--strategy"]
    assert completed("plan", "--strategy") == [*STRATEGIES]
    assert completed("scale", "--mode", so_far="s") == [mode for mode in MODES if mode.startswith("s")]
    assert completed("learn", "--gaps", so_far="h") == ["hold"]
    assert completed("completion") == [*SHELLS]


def test_jobs_that_run_here_are_completed_by_their_names() -> None:
    assert completed("status", "--job") == []
    with announced(Connection("http://127.0.0.1:9", "words")), announced(Connection("http://127.0.0.1:9", "patterns")):
        assert completed("status", "--job") == ["patterns", "words"]
        assert completed("scale", "--job", so_far="w") == ["words"]


def test_nodes_of_the_job_are_completed_by_their_names(served: Connection) -> None:
    assert completed("scale", "--remove") == ["node-1", "node-2", "node-3", "node-4"]
    assert completed("scale", "--remove", "node-1", "--remove", so_far="node") == ["node-2", "node-3", "node-4"]
    assert completed("plan", "--url", served.url, "--job", "words", "--remove", so_far="node-4") == ["node-4"]


def test_nothing_is_completed_and_nothing_said_if_the_job_does_not_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert completed("scale", "--remove") == []
    with announced(Connection("http://127.0.0.1:9", "words")):
        assert completed("scale", "--remove") == []
    assert capfd.readouterr() == ("", "")


def test_completing_imports_neither_spark_nor_the_compiler(tmp_path: Path) -> None:
    program = (
        "import sys, atexit; atexit.register(lambda: print(*{'numba', 'pyspark', 'scipy'} & set(sys.modules)));"
        "from elastic.__main__ import main; main(prog_name='elastic')"
    )
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path), VARIABLE: "bash_complete"}
    typed = {"COMP_WORDS": "elastic scale --strategy ", "COMP_CWORD": "3"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**environ, **typed}
    )
    assert done.stdout.split() == [f"plain,{strategy}" for strategy in STRATEGIES]
