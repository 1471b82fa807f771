"""Routing: which unit a row belongs to, and which nodes have that unit. Runs in a REPL without Java.

`hash_keys` hashes keys, a `Routing` maps hashes to units and units to nodes, `split` groups rows by unit. Where a key
may be in several units, a `UnitChooser` chooses among them by load.
"""

from elastic.routing.groupings import (
    GROUPINGS,
    HASH,
    SPLITS,
    Grouping,
    Groupings,
    HashGrouping,
    PartialGrouping,
    TableGrouping,
    parse_grouping,
)
from elastic.routing.hashing import check_key, hash_key, hash_keys, spark_hash_expression, to_tasks
from elastic.routing.key_table import KeyTable
from elastic.routing.key_targets import HOME, KeyOrders, KeyTargets
from elastic.routing.partial import UnitChooser
from elastic.routing.routing import Routing
from elastic.routing.split import SplitRows, split

__all__ = [
    "GROUPINGS",
    "HASH",
    "HOME",
    "SPLITS",
    "Grouping",
    "Groupings",
    "HashGrouping",
    "KeyOrders",
    "KeyTable",
    "KeyTargets",
    "PartialGrouping",
    "Routing",
    "SplitRows",
    "TableGrouping",
    "UnitChooser",
    "check_key",
    "hash_key",
    "hash_keys",
    "parse_grouping",
    "spark_hash_expression",
    "split",
    "to_tasks",
]
