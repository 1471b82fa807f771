"""The command line as a whole: its commands, its imports, and its documentation."""

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
from elastic.cli import options
from migration import kernel_info

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "command_line.md").read_text()
INSTALLED = [name for name in COMMANDS if name != "demo"]  # the demo is only in the repository
HEAVY = ("numba", "pyspark", "scipy", "matplotlib", "fastapi")


def load(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def run_and_list_imports(*commands: list[str]) -> tuple[str, list[str]]:
    """Run commands in a new process; return their output and the heavy modules that were imported."""
    program = (
        "import sys; from elastic.__main__ import main\n"
        f"for words in {commands!r}: main(words, prog_name='elastic', standalone_mode=False)\n"
        f"print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
    return done.stdout, done.stderr.split()


def test_the_version_names_the_kernels_in_use() -> None:
    published = CliRunner().invoke(main, ["--version"])
    assert published.exit_code == 0
    assert f"elastic {__version__}" in published.output
    assert kernel_info().name in published.output


def test_help_lists_all_commands_and_imports_nothing_heavy() -> None:
    published, heavy = run_and_list_imports(["--help"])
    listed = re.findall(r"^  (\w+) ", published.partition("Commands:")[2], re.MULTILINE)
    assert (listed, heavy) == ([*COMMANDS], [])


def test_the_help_of_a_command_imports_neither_spark_nor_the_compiler() -> None:
    published, heavy = run_and_list_imports(*([name, "--help"] for name in INSTALLED))
    assert heavy == []
    for name in INSTALLED:
        assert f"Usage: elastic {name} " in published


@pytest.mark.parametrize("name", INSTALLED)
def test_every_command_of_the_table_exists_and_has_help(name: str) -> None:
    command = load(name)
    assert command.name == name
    assert command.help


@pytest.mark.parametrize("name", INSTALLED)
def test_every_option_has_help(name: str) -> None:
    command = load(name)
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    options = [option for one in commands for option in one.params if isinstance(option, click.Option)]
    assert [option.opts for option in options if not option.help] == []


def test_copied_choices_and_defaults_equal_their_originals() -> None:
    from elastic.experiments import paper000, paper001, paper002, paper003, paper004
    from elastic.experiments.paper000 import engine
    from elastic.experiments.paper001 import engine as engine001
    from elastic.experiments.paper004 import engine as engine004
    from mdp.exact import DEFAULT_ERROR
    from mdp.process import DEFAULT_GAMMA
    from mdp.projection import METHODS, MOST_PARTITIONS
    from migration import STRATEGIES
    from migration.keys import KEY_STRATEGIES

    assert tuple(STRATEGIES) == options.STRATEGIES
    assert tuple(KEY_STRATEGIES) == options.KEY_STRATEGIES
    assert tuple(paper000.EXPERIMENTS) == options.PAPER000_EXPERIMENTS
    assert tuple(paper001.EXPERIMENTS) == options.PAPER001_EXPERIMENTS
    assert tuple(engine.ENGINE_EXPERIMENTS) == options.PAPER000_ENGINE_EXPERIMENTS
    assert tuple(paper002.EXPERIMENTS) == options.PAPER002_EXPERIMENTS
    assert tuple(engine001.ENGINE_EXPERIMENTS) == options.PAPER001_ENGINE_EXPERIMENTS
    assert tuple(engine004.ENGINE_EXPERIMENTS) == options.PAPER004_ENGINE_EXPERIMENTS
    assert tuple(paper004.EXPERIMENTS) == options.PAPER004_EXPERIMENTS
    assert (METHODS, tuple(paper003.EXPERIMENTS)) == (options.METHODS, options.PAPER003_EXPERIMENTS)
    assert (options.GAMMA, options.ERROR, options.MAX_PARTITIONS) == (DEFAULT_GAMMA, DEFAULT_ERROR, MOST_PARTITIONS)


def test_the_document_lists_all_commands() -> None:
    assert re.findall(r"^\| `([a-z]+)` \|", DOCUMENT, re.MULTILINE) == [*COMMANDS]


def test_the_examples_in_the_document_are_valid() -> None:
    examples = re.findall(r"`elastic ([^`]+)`(?: \||$)", DOCUMENT, re.MULTILINE)
    assert {example.split()[0] for example in examples} >= set(COMMANDS)
    for example in examples:
        name, *words = example.split()
        if name != "demo":
            load(name).make_context(name, words, resilient_parsing=True)


def test_every_command_has_json_output_except_those_that_the_document_names() -> None:
    def has_json(command: click.Command) -> bool:
        if isinstance(command, click.Group):
            return all(has_json(one) for one in command.commands.values())
        return any("--json" in option.opts for option in command.params)

    assert [name for name in INSTALLED if not has_json(load(name))] == ["completion"]
    assert "Every command except `demo` and `completion` has `--json`" in DOCUMENT


def test_the_demo_refers_to_the_repository_where_it_cannot_be_imported(
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


def test_the_demo_is_found_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "examples" / "demo").mkdir(parents=True)
    text = "import click\n@click.command()\ndef command() -> None:\n    click.echo('the demo')\n"
    (tmp_path / "examples" / "demo" / "command.py").write_text(text)
    # As an installed script is run: neither this folder nor the repository is on the path.
    program = (
        f"import sys; from pathlib import Path; sys.path.insert(0, {str(ROOT)!r}); from elastic.__main__ import main; "
        "sys.path[:] = [place for place in sys.path if place and not Path(place, 'examples', 'demo').exists()]; "
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
    assert done.stdout == "the demo\n", done.stderr
