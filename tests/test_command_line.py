"""The command line as a whole: what it lists, what it imports for that, and what is written about it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from elastic import __version__
from elastic.__main__ import COMMANDS, main
from elastic.cli import known
from migration import kernel_info

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "command_line.md").read_text()
INSTALLED = [name for name in COMMANDS if name != "demo"]  # that is in the repository alone
HEAVY = ("numba", "pyspark", "scipy", "matplotlib", "fastapi")


def loaded(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def shown_and_heavy(*typed: list[str]) -> tuple[str, list[str]]:
    """What commands print in a process of their own, and what heavy modules that process has imported."""
    program = (
        "import sys; from elastic.__main__ import main\n"
        f"for words in {typed!r}: main(words, prog_name='elastic', standalone_mode=False)\n"
        f"print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
    return done.stdout, done.stderr.split()


def test_the_version_names_the_kernels_in_use() -> None:
    shown = CliRunner().invoke(main, ["--version"])
    assert shown.exit_code == 0
    assert f"elastic {__version__}" in shown.output
    assert kernel_info().name in shown.output


def test_help_lists_all_commands_and_imports_nothing_heavy() -> None:
    shown, heavy = shown_and_heavy(["--help"])
    listed = re.findall(r"^  (\w+) ", shown.partition("Commands:")[2], re.MULTILINE)
    assert (listed, heavy) == ([*COMMANDS], [])


def test_the_help_of_a_command_brings_neither_spark_nor_a_compiler() -> None:
    shown, heavy = shown_and_heavy(*([name, "--help"] for name in INSTALLED))
    assert heavy == []
    for name in INSTALLED:
        assert f"Usage: elastic {name} " in shown


@pytest.mark.parametrize("name", INSTALLED)
def test_every_command_is_where_the_table_says_and_has_help_of_its_own(name: str) -> None:
    command = loaded(name)
    assert command.name == name
    assert command.help


def test_names_that_are_written_down_again_are_those_of_the_packages_that_have_them() -> None:
    from elastic.control import MODES, TRANSFERS, ScaleRequest
    from mdp.exact import DEFAULT_ERROR
    from mdp.experiments import EXPERIMENTS
    from mdp.process import DEFAULT_GAMMA, DEFAULT_TAU
    from mdp.projecting import METHODS, MOST_PARTITIONS
    from migration import STRATEGIES

    assert tuple(STRATEGIES) == known.STRATEGIES
    assert (tuple(MODES), tuple(TRANSFERS)) == (known.MODES, known.TRANSFERS)
    assert (METHODS, tuple(EXPERIMENTS)) == (known.METHODS, known.EXPERIMENTS)
    assert known.TAU == DEFAULT_TAU == ScaleRequest().tau
    assert ScaleRequest().relax == known.RELAX
    assert (known.GAMMA, known.ERROR, known.MOST_PARTITIONS) == (DEFAULT_GAMMA, DEFAULT_ERROR, MOST_PARTITIONS)


def test_the_documented_commands_are_those_that_there_are() -> None:
    assert re.findall(r"^\| `([a-z]+)` \|", DOCUMENT, re.MULTILINE) == [*COMMANDS]


def test_the_examples_in_the_document_are_typed_right() -> None:
    examples = re.findall(r"`elastic ([^`]+)`(?: \||$)", DOCUMENT, re.MULTILINE)
    assert {example.split()[0] for example in examples} >= set(COMMANDS)
    for example in examples:
        name, *words = example.split()
        if name != "demo":
            loaded(name).make_context(name, words, resilient_parsing=True)


def test_every_command_knows_json_but_those_that_the_document_names() -> None:
    def knows_json(command: click.Command) -> bool:
        if isinstance(command, click.Group):
            return all(knows_json(one) for one in command.commands.values())
        return any("--json" in option.opts for option in command.params)

    assert [name for name in INSTALLED if not knows_json(loaded(name))] == ["completion"]
    assert "Every command but `demo` and `completion` knows `--json`" in DOCUMENT


def test_the_demo_is_listed_and_points_to_the_repository_where_it_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for imported in [name for name in sys.modules if name.startswith("examples.")]:
        monkeypatch.delitem(sys.modules, imported)
    monkeypatch.setitem(sys.modules, "examples", None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    for arguments in (["demo"], ["demo", "--rate", "7"]):
        refused = CliRunner().invoke(main, arguments)
        assert refused.exit_code == 1
        assert "Clone it, and run `make demo` there." in refused.output


def test_the_demo_is_found_in_the_folder_one_is_in(tmp_path: Path) -> None:
    (tmp_path / "examples" / "demo").mkdir(parents=True)
    text = "import click\n@click.command()\ndef command() -> None:\n    click.echo('it plays')\n"
    (tmp_path / "examples" / "demo" / "command.py").write_text(text)
    # As an installed script is run: neither this folder nor the repository is on the path.
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from elastic.__main__ import main; "
        f"sys.path[:] = [place for place in sys.path if place not in ('', {str(ROOT)!r})]; "
        "main(['demo'], prog_name='elastic')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
        timeout=60,
    )
    assert done.stdout == "it plays\n", done.stderr
