"""Shell completion, through click's own classes for shells."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete
from click.testing import CliRunner

from elastic.__main__ import COMMANDS, main
from elastic.cli.completion import PROGRAM, VARIABLE
from elastic.cli.connection import Connection, announce
from elastic.cli.options import STRATEGIES
from elastic.control.request import MODES

SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


def complete(*words: str, incomplete: str = "") -> list[str]:
    shell = BashComplete(main, {}, PROGRAM, VARIABLE)
    return [item.value for item in shell.get_completions(list(words), incomplete)]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_that_of_click(shell: str) -> None:
    shown = CliRunner().invoke(main, ["completion", shell])

    assert shown.exit_code == 0, shown.output
    assert shown.stdout == SHELLS[shell](main, {}, PROGRAM, VARIABLE).source()
    assert f"{VARIABLE}={shell}_complete" in shown.stdout


def test_commands_options_and_choices_are_complete() -> None:
    assert complete() == [*COMMANDS]
    assert complete(incomplete="re") == [name for name in COMMANDS if name.startswith("re")]
    assert complete("scale", incomplete="--str") == ["--strategy"]
    assert complete("plan", "--strategy") == [*STRATEGIES]
    assert complete("scale", "--mode", incomplete="s") == [mode for mode in MODES if mode.startswith("s")]
    assert complete("learn", "--gaps", incomplete="h") == ["hold"]
    assert complete("completion") == [*SHELLS]


def test_names_of_running_jobs_are_completed() -> None:
    assert complete("status", "--job") == []
    with announce(Connection("http://127.0.0.1:9", "words")), announce(Connection("http://127.0.0.1:9", "patterns")):
        assert complete("status", "--job") == ["patterns", "words"]
        assert complete("scale", "--job", incomplete="w") == ["words"]


def test_names_of_nodes_are_completed(served: Connection) -> None:
    assert complete("scale", "--remove") == ["node-1", "node-2", "node-3", "node-4"]
    assert complete("scale", "--remove", "node-1", "--remove", incomplete="node") == ["node-2", "node-3", "node-4"]
    assert complete("plan", "--url", served.url, "--job", "words", "--remove", incomplete="node-4") == ["node-4"]


def test_nothing_is_completed_or_printed_if_the_job_does_not_respond(capfd: pytest.CaptureFixture[str]) -> None:
    assert complete("scale", "--remove") == []
    with announce(Connection("http://127.0.0.1:9", "words")):
        assert complete("scale", "--remove") == []
    assert capfd.readouterr() == ("", "")


def test_completion_imports_neither_spark_nor_the_compiler(tmp_path: Path) -> None:
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
