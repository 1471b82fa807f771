"""The `elastic` command line."""

import platform

import click

from elastic import __version__
from migration import kernel_info


def _version_text() -> str:
    kernel = kernel_info()
    lines = [f"elastic {__version__}", f"python  {platform.python_version()}", f"kernels {kernel.name}"]
    if kernel.cache:
        lines.append(f"        compiled code is cached in {kernel.cache}")
    return "\n".join(lines)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message=_version_text())
def main() -> None:
    """Change the parallelism of a stateful streaming operator on Spark while it runs."""


if __name__ == "__main__":
    main()
