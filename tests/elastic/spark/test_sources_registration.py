"""Registering the data sources with a session, without Spark."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from elastic.spark.sources import register_sources
from storage import Secret


class RecordedSession:
    """Stands for a session: keeps what is registered."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.sparkContext = MagicMock()  # its JVM has loggers
        self.dataSource = SimpleNamespace(register=lambda source: self.names.append(source.name()))


def test_a_second_job_of_a_session_registers_nothing_again() -> None:
    session: Any = RecordedSession()
    secret = Secret.of("a secret of this test")
    register_sources(session, secret)
    register_sources(session, Secret.of("a secret of this test"))
    assert session.names == ["elastic", "elastic-state"]


def test_another_secret_or_another_session_is_registered() -> None:
    first, second = RecordedSession(), RecordedSession()
    sessions: list[Any] = [first, first, second]
    for session, secret in zip(
        sessions, ["a secret of this test", "another secret of it", "another secret of it"], strict=True
    ):
        register_sources(session, Secret.of(secret))
    assert first.names == ["elastic", "elastic-state"] * 2
    assert second.names == ["elastic", "elastic-state"]
