"""Which slot a row belongs to, and which nodes own it. Runs in a REPL without Java.

`key_hash` gives a key's hash, a `Routing` the slot of each hash and the nodes of each slot, `split` the rows apart.
"""

from elastic.routing.hashing import check_key, key_hash, scalar_hash, spark_hash_expression, task_of
from elastic.routing.heavy_hitters import HeavyHitters, HeavyKey
from elastic.routing.interval import IntervalRouting
from elastic.routing.protocol import Routing
from elastic.routing.routings import ROUTINGS, routing_from_json
from elastic.routing.slots import SLOTS_PER_STAGE, slot_of, stage_of, task_of_slot
from elastic.routing.split import SplitRows, split

__all__ = [
    "ROUTINGS",
    "SLOTS_PER_STAGE",
    "HeavyHitters",
    "HeavyKey",
    "IntervalRouting",
    "Routing",
    "SplitRows",
    "check_key",
    "key_hash",
    "routing_from_json",
    "scalar_hash",
    "slot_of",
    "spark_hash_expression",
    "split",
    "stage_of",
    "task_of",
    "task_of_slot",
]
