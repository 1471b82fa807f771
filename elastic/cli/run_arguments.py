"""What `elastic run` makes of its options, checked before Spark starts."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from elastic.errors import ExposedSecret
from elastic.secret import read_secret_file

# Names that end otherwise say where a secret is, or how it is found, and are harmless.
_SECRET = re.compile(
    r"(?!.*(file|path|location|provider|class|enabled)$).*(secret|password|passwd|access[._-]?key|jaas|token$)",
    re.IGNORECASE,
)
_ADVICE = {
    "--set": "Set ELASTIC_SECRET, or name a file that holds the secret with --secret-file.",
    "--conf": "Write it into spark-defaults.conf in SPARK_CONF_DIR, in a file that only you can read.",
    "--option": "Write the value into a file that only you can read, and name that file: {name}=@FILE.",
}


def job_arguments(
    store: str,
    settings: tuple[tuple[str, str], ...],
    secret_file: Path | None,
    event_time: str | None,
    watermark: str | None,
    checkpoint: str | None,
) -> dict[str, Any]:
    """Return the settings, and those arguments of `elastic.run` that were given."""
    if checkpoint is None and urlsplit(store).scheme not in ("file", "memory"):
        raise click.UsageError(
            f"Spark cannot keep its offsets in {store}. Name a folder with --checkpoint, the same in every run."
        )
    _refuse_secrets("--set", settings)
    given = {
        "secret": None if secret_file is None else read_secret_file(secret_file),
        "event_time": event_time,
        "watermark_delay": watermark,
        "checkpoint": checkpoint,
    }
    chosen = {setting: _number(value) for setting, value in settings}
    return {**chosen, **{name: value for name, value in given.items() if value is not None}}


def source_options(options: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the options of the source; NAME=@FILE stands for the content of the file."""
    _refuse_secrets("--option", [(name, value) for name, value in options if not value.startswith("@")])
    try:
        return {name: Path(text[1:]).read_text().strip() if text.startswith("@") else text for name, text in options}
    except (OSError, UnicodeDecodeError) as cause:
        raise click.UsageError(f"an option of the source cannot be read from its file: {cause}.") from cause


def spark_conf(conf: tuple[tuple[str, str], ...], packages: str | None) -> dict[str, str]:
    """Return Spark's configuration."""
    _refuse_secrets("--conf", conf)
    return {**dict(conf), **({} if packages is None else {"spark.jars.packages": packages})}


def _refuse_secrets(option: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Raise `ExposedSecret` for a name that promises a secret.

    The process list has shown it by then; the user learns of it before the secret is used to sign anything.
    """
    for name, _ in pairs:
        if _SECRET.match(name):
            raise ExposedSecret(option, name, _ADVICE[option].format(name=name))


def _number(text: str) -> Any:
    """Return the number that the text is, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
