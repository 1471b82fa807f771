"""The operator state manager: snapshots, input log, manifest and garbage collection of one operator, over any store.

A driver calls `Manifests.recover()` once. For every batch the senders call `InputLog.append`, and the driver then calls
`commit_batch`. For every snapshot or migration the driver opens a lease, the nodes call `StateManager.save` under it,
and the driver calls `commit` and closes the lease. Any process may call `Collector.collect()` at any time. After a
crash the next driver recovers: every unit's state is the one that the manifest names, plus the replay of the log after
it.
"""

from storage.state.batch_time import BatchTime, InputTime, SourceBatch
from storage.state.collector import CollectionResult, Collector
from storage.state.input_log import LOG_OBJECT_BYTES, LOG_PART_BYTES, LOGGED_BYTES, InputLog
from storage.state.leases import Lease, Leases
from storage.state.manager import PackedState, SavedState, StateManager
from storage.state.manifest import Manifest, OpenRound
from storage.state.manifests import Manifests
from storage.state.refs import BEFORE_FIRST_BATCH, LogRef, StateRef
from storage.state.resigning import Resigned, resign
from storage.state.unit_id import TASKS_PER_STAGE, UnitId
from storage.state.unit_states import UnitStates

__all__ = [
    "BEFORE_FIRST_BATCH",
    "LOGGED_BYTES",
    "LOG_OBJECT_BYTES",
    "LOG_PART_BYTES",
    "TASKS_PER_STAGE",
    "BatchTime",
    "CollectionResult",
    "Collector",
    "InputLog",
    "InputTime",
    "Lease",
    "Leases",
    "LogRef",
    "Manifest",
    "Manifests",
    "OpenRound",
    "PackedState",
    "Resigned",
    "SavedState",
    "SourceBatch",
    "StateManager",
    "StateRef",
    "UnitId",
    "UnitStates",
    "resign",
]
