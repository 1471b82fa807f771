"""The operator state manager: snapshots, input log, manifest and garbage collection of one operator, over any store.

A controller calls `Manifests.recover()` once. For every batch the senders `InputLog.append`, and it then calls
`commit_batch`. For every snapshot or migration it opens a lease, the nodes `StateManager.save_many` under it, it calls
`commit` and closes the lease. Now and then anybody calls `Collector.collect()`. After a crash the next controller
recovers: every unit's state is the one that the manifest names, plus the replay of the log after it.
"""

from storage.state.batch_time import BatchTime, SourceBatch
from storage.state.collector import Collected, Collector
from storage.state.input_log import InputLog, Slice
from storage.state.leases import Lease, Leases
from storage.state.manager import PackedState, Save, SavedState, StateManager
from storage.state.manifest import Manifest, OpenRound
from storage.state.manifests import Manifests
from storage.state.refs import BEFORE_FIRST_BATCH, LogRef, StateRef
from storage.state.transfer import Progress, Transfer
from storage.state.unit import Unit
from storage.state.units import Units

__all__ = [
    "BEFORE_FIRST_BATCH",
    "BatchTime",
    "Collected",
    "Collector",
    "InputLog",
    "Lease",
    "Leases",
    "LogRef",
    "Manifest",
    "Manifests",
    "OpenRound",
    "PackedState",
    "Progress",
    "Save",
    "SavedState",
    "Slice",
    "SourceBatch",
    "StateManager",
    "StateRef",
    "Transfer",
    "Unit",
    "Units",
]
