"""The options of `elastic run`, checked and converted before Spark starts."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from elastic.errors import ExposedSecret
from elastic.secret import read_secret_file

# Names with the excluded endings say where a secret is, or how it is found, and do not contain it.
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
    """Return the settings and the given arguments of `elastic.run`."""
    scheme = check_store_url(store)
    if checkpoint is None and scheme not in ("file", "memory"):
        raise click.UsageError(
            f"Spark cannot keep its checkpoint in a {scheme}: store. Name a folder with --checkpoint, the same in "
            "every run."
        )
    _refuse_secrets("--set", settings)
    given = {
        "secret": None if secret_file is None else read_secret_file(secret_file),
        "event_time": event_time,
        "watermark_delay": watermark,
        "checkpoint": checkpoint,
    }
    parsed = {setting: _parse_number(value) for setting, value in settings}
    return {**parsed, **{name: value for name, value in given.items() if value is not None}}


def check_store_url(store: str) -> str:
    """Return the scheme of a store's URL; refuse a folder, and anything else that is no such URL.

    The messages do not repeat a URL: it may hold a credential.
    """
    # Imported here because it loads NumPy.
    from storage import STORES

    try:
        scheme = urlsplit(store).scheme
    except ValueError:
        raise click.UsageError("--store is not a URL. Use file:///folder or s3://bucket/prefix.") from None
    if scheme in STORES:
        return scheme
    if not scheme and "@" not in store:
        raise click.UsageError(f"--store takes a URL. For this folder use {Path(store).absolute().as_uri()}.")
    raise click.UsageError(f"no store has the scheme {scheme!r}. Use file:///folder or s3://bucket/prefix.")


def choose_sinks(sink: str, stage_sinks: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the sinks of stages as `elastic.run` takes them; refuses those that cannot be opened."""
    # Imported here because it loads pyarrow.
    from elastic.results import open_sink

    if sink != "store":
        raise click.UsageError(f"--sink {sink} and --stage-sink exclude each other. Name its stage with --stage-sink.")
    if len(by_stage := dict(stage_sinks)) < len(stage_sinks):
        raise click.UsageError("a stage has two sinks. Give each stage one --stage-sink.")
    for one in by_stage.values():
        open_sink(one).close()
    return by_stage


def source_options(options: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the options of the source; NAME=@FILE is replaced by the content of the file."""
    _refuse_secrets("--option", [(name, value) for name, value in options if not value.startswith("@")])
    try:
        return {name: Path(text[1:]).read_text().strip() if text.startswith("@") else text for name, text in options}
    except (OSError, UnicodeDecodeError) as cause:
        raise click.UsageError(
            f"cannot read an option of the source from its file: {cause}. Check the path."
        ) from cause


def spark_conf(conf: tuple[tuple[str, str], ...], packages: str | None) -> dict[str, str]:
    """Return Spark's configuration."""
    _refuse_secrets("--conf", conf)
    return {**dict(conf), **({} if packages is None else {"spark.jars.packages": packages})}


def _refuse_secrets(option: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Raise `ExposedSecret` for a name that suggests a secret.

    The process list has already shown it; the user learns this before the secret signs anything.
    """
    for name, _ in pairs:
        if _SECRET.match(name):
            raise ExposedSecret(option, name, _ADVICE[option].format(name=name))


def _parse_number(text: str) -> Any:
    """Return the text as a number if it is one, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
