"""Routing: which unit a row belongs to, and which nodes own that unit. Runs in a REPL without Java.

`hash_keys` hashes keys, a `Routing` maps hashes to units and units to nodes, `split` groups rows by unit.
"""

from elastic.routing.hashing import check_key, hash_key, hash_keys, spark_hash_expression, to_tasks
from elastic.routing.heavy_hitters import HeavyHitters, HeavyKey
from elastic.routing.interval import IntervalRouting
from elastic.routing.protocol import Routing
from elastic.routing.routings import ROUTINGS, routing_from_json
from elastic.routing.split import SplitRows, split

__all__ = [
    "ROUTINGS",
    "HeavyHitters",
    "HeavyKey",
    "IntervalRouting",
    "Routing",
    "SplitRows",
    "check_key",
    "hash_key",
    "hash_keys",
    "routing_from_json",
    "spark_hash_expression",
    "split",
    "to_tasks",
]
