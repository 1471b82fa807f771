"""Compact statistics (paper 000, section IV): plan over records that stand for many keys of the same kind.

A node reports `group_keys(loads).records`, encoded with `encode_records`; the driver merges the reports, plans with
`plan_records`, and every node materialises its share of the plan.
"""

from migration.keys.compact.discretise import DEFAULT_R, discretise
from migration.keys.compact.encoding import decode_records, encode_records
from migration.keys.compact.grouping import GroupedKeys, group_keys
from migration.keys.compact.materialise import materialise
from migration.keys.compact.plan import RecordPlan, plan_records
from migration.keys.compact.records import KeyRecords, merge_records
from migration.keys.compact.strategies import RECORD_STRATEGIES

__all__ = [
    "DEFAULT_R",
    "RECORD_STRATEGIES",
    "GroupedKeys",
    "KeyRecords",
    "RecordPlan",
    "decode_records",
    "discretise",
    "encode_records",
    "group_keys",
    "materialise",
    "merge_records",
    "plan_records",
]
