"""A Spark task that becomes a node: what it returns, and that a retry by Spark is no second life."""

import os
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from elastic.spark import node_entry
from elastic.spark.node_entry import StartFailed, host_node


@dataclass(frozen=True)
class Spec:
    """What the entry reads and sets of a `NodeSpec`."""

    node: str
    incarnation: str
    executor: str = ""


SPEC: Any = Spec("node-1", "node-1.1.1")
SEEN: Any = replace(SPEC, executor=str(os.getppid()))  # with what all nodes of an executor have in common


class FakeNode:
    """A node that leaves at once, or cannot start."""

    error: Exception | None = None

    def __init__(self, spec: Any) -> None:
        assert spec == SEEN
        if self.error is not None:
            raise self.error

    def run(self) -> str:
        return "the driver ended it"


@pytest.fixture(autouse=True)
def attempt(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The attempt of Spark's task; tests change its number."""
    attempt = SimpleNamespace(number=0)
    context = SimpleNamespace(attemptNumber=lambda: attempt.number)
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: context)
    monkeypatch.setattr(node_entry, "NodeProcess", FakeNode)
    return attempt


def test_a_task_is_the_node_until_the_node_leaves() -> None:
    assert list(host_node(SPEC, [])) == ["the driver ended it"]


@pytest.mark.parametrize("number", [1, 2])
def test_a_retry_by_spark_is_no_second_life_of_the_incarnation(attempt: SimpleNamespace, number: int) -> None:
    attempt.number = number
    [left] = host_node(SPEC, [])
    assert isinstance(left, str)
    assert left.startswith("node-1.1.1 was lost")


def test_a_node_that_cannot_start_returns_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeNode, "error", OSError("no licence"))
    assert list(host_node(SPEC, [])) == [StartFailed("OSError: no licence")]


class FakeSpare:
    """A spare that gets a name at once, or leaves."""

    named: Any = SEEN
    left = "the driver asked it to leave"

    def __init__(self, spec: Any) -> None:
        assert spec.node == ""

    def wait(self) -> Any:
        return self.named


def test_a_task_without_a_name_is_a_spare_and_becomes_the_node_that_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_entry, "Spare", FakeSpare)
    nameless: Any = Spec("", "spare-1")
    assert list(host_node(nameless, [])) == ["the driver ended it"]
    monkeypatch.setattr(FakeSpare, "named", None)
    assert list(host_node(nameless, [])) == ["the driver asked it to leave"]
