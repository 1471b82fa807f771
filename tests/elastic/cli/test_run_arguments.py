"""Options of `elastic run`, from the command line to `elastic.run` and Spark, without Spark."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.errors import AnalysisException

import elastic
from elastic.__main__ import main
from elastic.cli.run_arguments import source_options, spark_conf
from elastic.errors import ExposedSecret, MissingSecret
from elastic.secret import read_secret_file
from tests.elastic.cli.test_run import FakeRunningJob

SECRET = "a confidential secret"  # noqa: S105


class RecordedReader:
    """A fake of Spark that records its calls."""

    def __init__(self, calls: dict[str, Any]) -> None:
        self.calls = calls
        self.readStream = self

    def format(self, source: str) -> "RecordedReader":
        self.calls["source"] = source
        return self

    def options(self, **options: str) -> "RecordedReader":
        self.calls["options"] = options
        return self

    def load(self, path: str | None) -> str:
        return f"stream of {path}"


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the arguments that reach Spark and `elastic.run`."""
    calls: dict[str, Any] = {}
    sessions = ModuleType("elastic.spark.session")

    def session(_: Any, conf: dict[str, str]) -> RecordedReader:
        calls["conf"] = conf
        return RecordedReader(calls)

    sessions.local_session = sessions.cluster_session = session  # type: ignore[attr-defined]
    sessions.quiet_log = lambda _: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "elastic.spark.session", sessions)

    def run(frame: str, **arguments: Any) -> FakeRunningJob:
        calls.update(arguments, frame=frame)
        return FakeRunningJob()

    monkeypatch.setattr(elastic, "run", run)
    monkeypatch.setattr("gc.freeze", lambda: None)  # not in the process of the tests
    return calls


def invoke(*options: str, store: str = "file:///tmp/words") -> Result:
    words = ["--name", "words", "--store", store, "--key", "word", *options]
    return CliRunner().invoke(main, ["run", "elastic.operators:CountByKey", *words])


def test_a_job_in_s3_keeps_its_checkpoint_in_the_given_folder(recorded: dict[str, Any]) -> None:
    done = invoke("--checkpoint", "s3a://bucket/offsets", "--master", "spark://master:7077", store="s3://bucket/prefix")
    assert done.exit_code == 0, done.output
    assert (recorded["store"], recorded["checkpoint"]) == ("s3://bucket/prefix", "s3a://bucket/offsets")


def test_a_job_in_s3_without_a_checkpoint_is_refused_before_spark_starts(recorded: dict[str, Any]) -> None:
    done = invoke(store="s3://bucket/prefix")
    assert done.exit_code == 2
    assert "Name a folder with --checkpoint" in done.stderr
    assert recorded == {}


def test_spark_gets_its_configuration_and_packages(recorded: dict[str, Any]) -> None:
    packages = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
    conf = ("--conf", "spark.elastic.heartbeat_seconds=1", "--conf", "spark.executor.memory=2g")
    done = invoke(*conf, "--packages", packages)
    assert done.exit_code == 0, done.output
    assert recorded["conf"] == {
        "spark.elastic.heartbeat_seconds": "1",
        "spark.executor.memory": "2g",
        "spark.jars.packages": packages,
    }


def test_event_time_and_watermark_reach_the_job(recorded: dict[str, Any]) -> None:
    assert invoke("--event-time", "at", "--watermark", "10 seconds").exit_code == 0
    assert (recorded["event_time"], recorded["watermark_delay"]) == ("at", "10 seconds")


def test_options_that_are_not_given_are_not_passed_on(recorded: dict[str, Any]) -> None:
    assert invoke().exit_code == 0
    assert not {"event_time", "watermark_delay", "checkpoint", "secret"} & set(recorded)


def test_sinks_of_stages_reach_the_job(recorded: dict[str, Any]) -> None:
    sinks = ("--stage-sink", "counts", "memory", "--stage-sink", "a=b", "kafka://127.0.0.1:1/topic?key=word")
    done = invoke(*sinks)
    assert done.exit_code == 0, done.output
    assert recorded["sink"] == {"counts": "memory", "a=b": "kafka://127.0.0.1:1/topic?key=word"}


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--sink", "memory", "--stage-sink", "a", "memory"], "exclude each other"),
        (["--stage-sink", "a", "memory", "--stage-sink", "a", "store"], "a stage has two sinks"),
        (["--stage-sink", "a", "heap"], "use one of"),
    ],
)
def test_sinks_that_do_not_fit_are_refused_before_spark_starts(
    recorded: dict[str, Any], options: list[str], advice: str
) -> None:
    done = invoke(*options)
    assert done.exit_code != 0
    assert advice in " ".join(done.stderr.replace("│", " ").split())
    assert recorded == {}


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
    recorded: dict[str, Any], option: str, name: str, advice: str
) -> None:
    done = invoke(option, f"{name}={SECRET}")
    assert done.exit_code == 1
    assert advice in done.stderr
    assert SECRET not in done.output
    assert recorded == {}


@pytest.mark.parametrize(
    "name",
    ["spark.hadoop.fs.s3a.aws.credentials.provider", "spark.authenticate.secret.file", "spark.sql.tokenizer.size"],
)
def test_names_that_only_refer_to_secrets_are_allowed(name: str) -> None:
    assert spark_conf(((name, "value"),), None) == {name: "value"}


def test_an_option_of_the_source_may_be_in_a_file(recorded: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "jaas").write_text(f"{SECRET}\n")
    done = invoke("--source", "kafka", "--option", f"kafka.sasl.jaas.config=@{tmp_path / 'jaas'}")
    assert done.exit_code == 0, done.output
    assert recorded["options"] == {"kafka.sasl.jaas.config": SECRET}
    missing = invoke("--option", f"kafka.sasl.jaas.config=@{tmp_path / 'absent'}")
    assert missing.exit_code == 2
    assert "No such file" in missing.stderr


def test_the_secret_may_be_in_a_file_that_only_its_user_can_read(recorded: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o644)
    refused = invoke("--secret-file", str(file))
    assert refused.exit_code == 1
    assert "other users may read it" in refused.stderr
    assert recorded == {}
    file.chmod(0o600)
    assert invoke("--secret-file", str(file)).exit_code == 0
    assert recorded["secret"] == SECRET
    with pytest.raises(MissingSecret, match="No such file"):
        read_secret_file(tmp_path / "absent")


def test_a_refused_secret_keeps_its_facts() -> None:
    with pytest.raises(ExposedSecret) as refused:
        source_options((("password", SECRET),))
    assert (refused.value.where, refused.value.name) == ("--option", "password")


def test_a_sink_that_cannot_be_opened_is_refused_before_spark_starts(recorded: dict[str, Any]) -> None:
    done = invoke("--sink", "kafka:counts")
    assert done.exit_code == 1
    assert "kafka://127.0.0.1:9092/topic" in done.stderr
    assert recorded == {}


def test_results_go_from_topic_to_topic(recorded: dict[str, Any]) -> None:
    source = ("--source", "kafka", "--option", "kafka.bootstrap.servers=broker:9092", "--option", "subscribe=texts")
    done = invoke(*source, "--sink", "kafka://127.0.0.1:1/counts?key=word")
    assert done.exit_code == 0, done.output
    assert recorded["source"] == "kafka"
    assert recorded["options"] == {"kafka.bootstrap.servers": "broker:9092", "subscribe": "texts"}
    assert repr(recorded["sink"]) == "KafkaSink('counts', '127.0.0.1:1', next=0)"


@pytest.mark.parametrize(
    ("options", "store", "status", "advice"),
    [
        ([], "/srv/words", 2, "use file:///srv/words"),
        ([], "ftp://host/words", 2, "no store has the scheme 'ftp'"),
        ([], "s3://[words", 2, "is not a URL"),
        (["--name", "../words"], "file:///tmp/words", 1, "start with a letter or digit"),
    ],
)
def test_a_store_or_a_name_that_cannot_be_right_is_refused_before_spark_starts(
    recorded: dict[str, Any], options: list[str], store: str, status: int, advice: str
) -> None:
    done = invoke(*options, store=store)
    assert done.exit_code == status
    assert advice in done.stderr
    assert recorded == {}


def test_a_credential_in_the_url_of_a_store_is_not_repeated(recorded: dict[str, Any]) -> None:
    for store in (f"s3://user:{SECRET}@bucket", f"user:{SECRET}@bucket", f"@{SECRET}"):
        done = invoke(store=store)
        assert done.exit_code == 2
        assert SECRET not in done.output
    assert recorded == {}


@pytest.mark.usefixtures("recorded")
def test_a_source_that_spark_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: RecordedReader, path: str | None) -> str:
        raise AnalysisException(f"[PATH_NOT_FOUND] Path does not exist: {path}.\n\tat org.apache.spark.Some.call(x:1)")

    monkeypatch.setattr(RecordedReader, "load", refuse)
    done = invoke("--path", "/texts")
    assert done.exit_code == 1
    assert done.stderr == (
        "Error: Spark could not read the source: [PATH_NOT_FOUND] Path does not exist: /texts. "
        "Check --source and its --packages, --path, --option, --schema and --select.\n"
    )
