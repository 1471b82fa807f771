"""The command line tells what is installed."""

from click.testing import CliRunner

from elastic import __version__
from elastic.__main__ import main
from migration import kernel_info


def test_the_version_names_the_kernels_in_use() -> None:
    shown = CliRunner().invoke(main, ["--version"])
    assert shown.exit_code == 0
    assert f"elastic {__version__}" in shown.output
    assert kernel_info().name in shown.output
