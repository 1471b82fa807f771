"""Routing: which unit a row belongs to, and which nodes have that unit. Runs in a REPL without Java.

`hash_keys` hashes keys, a `Routing` maps hashes to units and units to nodes, `split` groups rows by unit. Where a key
may be in several units, or any unit may take a row, a `UnitChooser` chooses among them by load.
"""

from elastic.routing.groupings import (
    GROUPINGS,
    HASH,
    SPLITS,
    Grouping,
    Groupings,
    HashGrouping,
    PartialGrouping,
    ShuffleGrouping,
    TableGrouping,
    parse_grouping,
)
from elastic.routing.hashing import check_key, hash_key, hash_keys, hash_rows, spark_hash_expression, to_tasks
from elastic.routing.key_table import KeyTable
from elastic.routing.key_targets import HOME, KeyOrders, KeyTargets
from elastic.routing.routing import Routing
from elastic.routing.split import SplitRows, split
from elastic.routing.unit_chooser import RowPlacer, UnitChooser

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
    "RowPlacer",
    "ShuffleGrouping",
    "SplitRows",
    "TableGrouping",
    "UnitChooser",
    "check_key",
    "hash_key",
    "hash_keys",
    "hash_rows",
    "parse_grouping",
    "spark_hash_expression",
    "split",
    "to_tasks",
]
