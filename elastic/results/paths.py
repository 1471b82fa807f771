"""Keys of a job's results and of its description.

operators/<job>/results/data/<batch>-<nonce>.rows    what one node emitted in one round of one batch
operators/<job>/results/index/<batch>.index          which of those objects belong to the batch
operators/<job>/results/gaps/<first>-<last>.gap      batches without results, because the job kept none
operators/<job>/results/identity.json                the identity of this sequence of batches
operators/<job>/description.pipeline                 the stages, with their operators and schemas

Batch numbers have leading zeros, so that keys sort by batch.
"""

import secrets

from storage.stores.keys import check_key, to_key_segment

_BATCH_DIGITS = 12


class ResultPaths:
    """The keys of one job."""

    def __init__(self, job: str) -> None:
        root = f"operators/{to_key_segment(job)}"
        self.data = f"{root}/results/data/"
        self.indexes = f"{root}/results/index/"
        self.gaps = f"{root}/results/gaps/"
        self.identity = check_key(f"{root}/results/identity.json")
        self.description = check_key(f"{root}/description.pipeline")

    def new_data(self, batch: int) -> str:
        """Return a new key: result objects are never overwritten."""
        return f"{self.data}{batch:0{_BATCH_DIGITS}d}-{secrets.token_hex(8)}.rows"

    def index(self, batch: int) -> str:
        return f"{self.indexes}{batch:0{_BATCH_DIGITS}d}.index"

    def gap(self, batches: range) -> str:
        return f"{self.gaps}{batches.start:0{_BATCH_DIGITS}d}-{batches[-1]:0{_BATCH_DIGITS}d}.gap"

    def batch_of_data(self, key: str) -> int:
        return int(key.removeprefix(self.data).partition("-")[0])

    def batch_of_index(self, key: str) -> int:
        return int(key.removeprefix(self.indexes).removesuffix(".index"))
