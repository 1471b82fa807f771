"""Task slots are counted wherever the master and its configuration say how many there are, and never all are taken."""

from types import SimpleNamespace
from typing import Any

import pytest

from elastic.errors import TooFewSlots
from elastic.settings import Settings
from elastic.spark import slots
from elastic.spark.slots import check_slots, compute_slots

DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}


@pytest.mark.parametrize(
    ("master", "conf", "registered", "counted"),
    [
        ("local", {}, 1, 1),
        ("local[4]", {}, 4, 4),
        ("local[4, 3]", {}, 4, 4),
        ("local[*]", {}, 2, 2),
        ("local[*,2]", {"spark.default.parallelism": "64"}, 2, 2),
        ("local[5]", {"spark.task.cpus": "2"}, 2, 2),
        ("local-cluster[3,2,1024]", {}, 0, 6),
        ("local-cluster[3, 3, 1024]", {"spark.task.cpus": "2"}, 0, 3),
        ("spark://host:7077", {}, 8, 8),
        ("spark://host:7077", DYNAMIC, 8, None),
        ("yarn", {}, 0, 2),
        ("yarn", {"spark.executor.instances": "3", "spark.executor.cores": "4", "spark.task.cpus": "2"}, 2, 6),
        ("k8s://https://host", {"spark.executor.instances": "2"}, 5, 5),
        ("yarn", DYNAMIC, 8, None),
        ("yarn", {**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "4"}, 8, None),
        ("yarn", {**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "4", "spark.executor.cores": "3"}, 3, 12),
    ],
)
def test_slots_are_counted_from_the_master_its_settings_and_its_executors(
    master: str, conf: dict[str, str], registered: int, counted: int | None
) -> None:
    assert compute_slots(master, conf.get, processors=2, registered=registered) == counted


def spark_with(monkeypatch: pytest.MonkeyPatch, master: str, *counts: int | None, **conf: str) -> Any:
    """A context whose slots are these numbers, one after the other; the last one stays."""
    left = list(counts)
    monkeypatch.setattr(slots, "count_slots", lambda _: left.pop(0) if len(left) > 1 else left[0])
    settings = {name.replace("_", "."): value for name, value in conf.items()}
    return SimpleNamespace(master=master, getConf=lambda: settings)


def test_a_request_that_leaves_no_slot_to_the_senders_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = spark_with(monkeypatch, "local[4]", 4)
    check_slots(spark, 3, Settings())
    with pytest.raises(TooFewSlots) as caught:
        check_slots(spark, 4, Settings())
    assert (caught.value.nodes, caught.value.slots, caught.value.needed) == (4, 4, 5)
    assert "at most 3 nodes" in str(caught.value)
    with pytest.raises(TooFewSlots):
        check_slots(spark, 3, Settings(sender_slots=2))


def test_nodes_of_other_jobs_hold_slots_too(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = spark_with(monkeypatch, "local[8]", 8)
    check_slots(spark, 4, Settings(), other_slots=3)
    with pytest.raises(TooFewSlots) as caught:
        check_slots(spark, 4, Settings(), other_slots=4)
    assert (caught.value.nodes, caught.value.needed) == (4, 9)


def test_where_slots_cannot_be_counted_nothing_is_refused_and_the_user_can_say_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark = spark_with(monkeypatch, "yarn", None)
    check_slots(spark, 1_000, Settings())
    with pytest.raises(TooFewSlots):
        check_slots(spark, 10, Settings(task_slots=10))
    check_slots(spark_with(monkeypatch, "local[2]", 2), 10, Settings(task_slots=11))


def test_executors_of_a_standalone_cluster_get_time_to_register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_POLL_SECONDS", 0.001)
    check_slots(spark_with(monkeypatch, "spark://host:7077", 0, 2, 4), 3, Settings(), wait_seconds=10.0)
    with pytest.raises(TooFewSlots):
        check_slots(spark_with(monkeypatch, "spark://host:7077", 0, 2), 3, Settings(), wait_seconds=0.01)


def test_a_cluster_that_cannot_grow_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for spark in (
        spark_with(monkeypatch, "local[2]", 2),
        spark_with(monkeypatch, "spark://host:7077", 2, spark_cores_max="2"),
    ):
        with pytest.raises(TooFewSlots):
            check_slots(spark, 2, Settings(), wait_seconds=3600.0)


def test_spares_need_slots_too_and_are_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = spark_with(monkeypatch, "local[5]", 5)
    check_slots(spark, 3, Settings(spares=1))
    check_slots(spark, 2, Settings(spares=1), other_slots=1)
    with pytest.raises(
        TooFewSlots, match=r"4 nodes and 1 spare need 6 task slots.*at most 3 nodes, fewer spares"
    ) as no:
        check_slots(spark, 4, Settings(spares=1))
    assert (no.value.needed, no.value.spares) == (6, 1)
