"""A sender of several inputs and stages, without nodes: what it logs, and what its uploads say of themselves."""

import secrets
from typing import Any

import pyarrow as pa

from elastic.errors import NullKey
from elastic.ingest.batch_spec import INPUT_NUMBER, BatchSpec, InputPlan, StageFeed
from elastic.ingest.partition_sender import Connections, PartitionStatus, send_partition
from elastic.local.network import LocalNetwork
from elastic.operators.graph import Feed
from elastic.routing import Routing
from elastic.settings import Settings
from elastic.store_access import StoreAccess
from migration import Assignment
from storage import Secret
from storage.state import InputLog

SECRET = Secret.of("a secret for tests only")
TAGGED = pa.schema([("key", pa.int64()), ("at", pa.int64()), ("more", pa.string()), ("input", pa.string())])


class World:
    """One endpoint for a node that has all tasks; it keeps the headers and the rows of uploads."""

    def __init__(self, **settings: Any) -> None:
        self.network = LocalNetwork()
        self.uploads: list[tuple[dict[str, Any], pa.Table]] = []
        endpoint = self.network.listen("local", "token", {}, lambda *upload: self.uploads.append(upload))
        access = StoreAccess(f"memory:sender-{secrets.token_hex(8)}", {}, SECRET.reveal())
        both = Feed("b", TAGGED, ("k", "at", None, None), "input")
        inputs = (
            InputPlan("a", "ts", (StageFeed(0, ("key",)), StageFeed(2, ("key",)))),
            InputPlan("b", "at", (StageFeed(2, ("key",), feed=both),), (("slot_1", "k"), ("slot_0", "at"))),
        )
        routing = Routing.by_hash(Assignment.even(4, 1))
        address = {"node-1": endpoint.address}
        self.spec = BatchSpec("job", 0, routing, address, "token", access, Settings(**settings), inputs, 4)
        self.connections = Connections(self.network)

    def send(self, *tables: pa.Table) -> PartitionStatus:
        batches = [batch for table in tables for batch in table.to_batches()]
        return send_partition(self.spec, 0, batches, self.connections)

    def logged(self, status: PartitionStatus) -> dict[int, list[dict[str, Any]]]:
        """Return the rows in the log, by stage."""
        log = InputLog(self.connections.store(self.spec), SECRET, "job")
        numbers = [unit.number for stage in range(4) for unit in self.spec.routing.units(stage)]
        found: dict[int, list[dict[str, Any]]] = {}
        for ref in status.logs:
            for number, rows in log.read(ref, numbers).items():
                found.setdefault(number >> 20, []).extend(rows.to_pylist())
        return found


def of_a(*keys: int | None) -> pa.Table:
    return pa.table({"key": pa.array(keys, pa.int64()), "ts": [7] * len(keys)}).append_column(
        INPUT_NUMBER, pa.array([0] * len(keys), pa.int8())
    )


def of_b(*keys: int) -> pa.Table:
    return pa.table({"slot_0": [9] * len(keys), "slot_1": keys, INPUT_NUMBER: pa.array([1] * len(keys), pa.int8())})


def test_rows_go_to_every_stage_that_reads_their_input_in_one_log_object() -> None:
    world = World()
    status = world.send(of_a(1, 2))
    assert len(status.logs) == 1
    assert (status.rows, status.seen) == (2, ((0, 7),))
    rows = [{"key": 1, "ts": 7}, {"key": 2, "ts": 7}]
    assert {stage: sorted(found, key=str) for stage, found in world.logged(status).items()} == {0: rows, 2: rows}


def test_an_upload_covers_the_stages_of_which_it_has_all_rows() -> None:
    world = World()
    world.send(of_a(1, 2))
    covered = [sorted({start >> 20 for start, _ in header["covers"]}) for header, _ in world.uploads]
    assert sorted(covered) == [[0, 1, 3], [2]]  # nothing goes to stages 1 and 3
    assert all(table.num_rows == 2 for _, table in world.uploads)


def test_columns_come_back_from_their_slots_and_the_rows_say_where_they_are_from() -> None:
    world = World()
    status = world.send(of_b(5))
    assert status.seen == ((1, 9),)
    assert world.logged(status) == {2: [{"key": 5, "at": 9, "more": None, "input": "b"}]}


def test_inputs_that_share_a_partition_are_told_apart() -> None:
    world = World()
    both = pa.concat_tables([of_a(1), of_b(5)], promote_options="default")
    status = world.send(both)
    assert (status.rows, status.seen) == (2, ((0, 7), (1, 9)))
    assert {stage: len(rows) for stage, rows in world.logged(status).items()} == {0: 1, 2: 2}


def test_a_row_without_a_key_is_refused_for_any_stage_that_needs_it() -> None:
    status = World(null_keys="fail").send(of_a(1, None))
    assert status.failure is not None
    assert status.failure["type"].endswith(NullKey.__name__) or NullKey.__name__ in str(status.failure)
    dropped = World(null_keys="drop").send(of_a(1, None))
    assert len(dropped.logs) == 1
