"""Options of `elastic run`, from the command line to `elastic.run` and Spark, without Spark."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

import elastic
from elastic.__main__ import main
from elastic.cli.run_arguments import source_options, spark_conf
from elastic.errors import ExposedSecret, MissingSecret
from elastic.secret import read_secret_file
from tests.elastic.cli.test_run import Running

SECRET = "a secret that nobody may see"  # noqa: S105


class RecordedReader:
    """Stands for Spark: keeps what it is asked for."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.sparkContext = self
        self.readStream = self

    def setLogLevel(self, _: str) -> None: ...  # noqa: N802 - Spark's name

    def format(self, source: str) -> "RecordedReader":
        self.asked["source"] = source
        return self

    def options(self, **options: str) -> "RecordedReader":
        self.asked["options"] = options
        return self

    def load(self, path: str | None) -> str:
        return f"stream of {path}"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What reached Spark and `elastic.run`."""
    recorded: dict[str, Any] = {}
    sessions = ModuleType("elastic.runtime.session")

    def session(_: Any, conf: dict[str, str]) -> RecordedReader:
        recorded["conf"] = conf
        return RecordedReader(recorded)

    sessions.local_session = sessions.cluster_session = session  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "elastic.runtime.session", sessions)

    def run(frame: str, **arguments: Any) -> Running:
        recorded.update(arguments, frame=frame)
        return Running()

    monkeypatch.setattr(elastic, "run", run)
    return recorded


def typed(*more: str, store: str = "file:///tmp/words") -> Result:
    words = ["--name", "words", "--store", store, "--key", "word", *more]
    return CliRunner().invoke(main, ["run", "elastic.operators:CountByKey", *words])


def test_a_job_in_s3_keeps_its_offsets_where_checkpoint_says(asked: dict[str, Any]) -> None:
    done = typed("--checkpoint", "s3a://bucket/offsets", "--master", "spark://master:7077", store="s3://bucket/prefix")
    assert done.exit_code == 0, done.output
    assert (asked["store"], asked["checkpoint"]) == ("s3://bucket/prefix", "s3a://bucket/offsets")


def test_a_job_in_s3_without_a_checkpoint_is_refused_before_spark_starts(asked: dict[str, Any]) -> None:
    done = typed(store="s3://bucket/prefix")
    assert done.exit_code == 2
    assert "Name a folder with --checkpoint" in done.stderr
    assert asked == {}


def test_spark_gets_its_configuration_and_packages(asked: dict[str, Any]) -> None:
    packages = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"
    conf = ("--conf", "spark.elastic.heartbeat_seconds=1", "--conf", "spark.executor.memory=2g")
    done = typed(*conf, "--packages", packages)
    assert done.exit_code == 0, done.output
    assert asked["conf"] == {
        "spark.elastic.heartbeat_seconds": "1",
        "spark.executor.memory": "2g",
        "spark.jars.packages": packages,
    }


def test_event_time_and_watermark_reach_the_job(asked: dict[str, Any]) -> None:
    assert typed("--event-time", "at", "--watermark", "10 seconds").exit_code == 0
    assert (asked["event_time"], asked["watermark_delay"]) == ("at", "10 seconds")


def test_what_is_not_given_is_left_to_the_job(asked: dict[str, Any]) -> None:
    assert typed().exit_code == 0
    assert not {"event_time", "watermark_delay", "checkpoint", "secret"} & set(asked)


@pytest.mark.parametrize(
    ("option", "name", "advice"),
    [
        ("--set", "secret", "ELASTIC_SECRET, or name a file that holds the secret with --secret-file"),
        ("--conf", "spark.elastic.secret", "spark-defaults.conf"),
        ("--conf", "spark.hadoop.fs.s3a.secret.key", "spark-defaults.conf"),
        ("--conf", "spark.hadoop.fs.s3a.access.key", "spark-defaults.conf"),
        ("--option", "kafka.sasl.jaas.config", "kafka.sasl.jaas.config=@FILE"),
        ("--option", "kafka.ssl.keystore.password", "=@FILE"),
    ],
)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(
    asked: dict[str, Any], option: str, name: str, advice: str
) -> None:
    done = typed(option, f"{name}={SECRET}")
    assert done.exit_code == 1
    assert advice in done.stderr
    assert SECRET not in done.output
    assert asked == {}


@pytest.mark.parametrize(
    "name",
    ["spark.hadoop.fs.s3a.aws.credentials.provider", "spark.authenticate.secret.file", "spark.sql.tokenizer.size"],
)
def test_names_around_secrets_are_no_secrets(name: str) -> None:
    assert spark_conf(((name, "value"),), None) == {name: "value"}


def test_an_option_of_the_source_may_be_in_a_file(asked: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "jaas").write_text(f"{SECRET}\n")
    done = typed("--source", "kafka", "--option", f"kafka.sasl.jaas.config=@{tmp_path / 'jaas'}")
    assert done.exit_code == 0, done.output
    assert asked["options"] == {"kafka.sasl.jaas.config": SECRET}
    missing = typed("--option", f"kafka.sasl.jaas.config=@{tmp_path / 'absent'}")
    assert missing.exit_code == 2
    assert "No such file" in missing.stderr


def test_the_secret_may_be_in_a_file_that_only_its_user_can_read(asked: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o644)
    refused = typed("--secret-file", str(file))
    assert refused.exit_code == 1
    assert "others may read it" in refused.stderr
    assert asked == {}
    file.chmod(0o600)
    assert typed("--secret-file", str(file)).exit_code == 0
    assert asked["secret"] == SECRET
    with pytest.raises(MissingSecret, match="No such file"):
        read_secret_file(tmp_path / "absent")


def test_a_refused_secret_keeps_its_facts() -> None:
    with pytest.raises(ExposedSecret) as refused:
        source_options((("password", SECRET),))
    assert (refused.value.where, refused.value.name) == ("--option", "password")
