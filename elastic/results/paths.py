"""Where a job's results and its description are; the one place that spells their keys.

operators/<job>/results/data/<batch>-<nonce>.rows    what one node made in one round of one batch
operators/<job>/results/index/<batch>.index          which of those objects count
operators/<job>/results/gaps/<first>-<last>.gap      batches without results, because the job kept none
operators/<job>/results/identity.json                a name for this run of batch numbers
operators/<job>/description.pipeline                 the stages, with their operators and schemas

Batches have leading zeros, so that the order of the keys is the order of the batches.
"""

import secrets

from storage.stores.keys import checked_key, name_segment

_BATCH_DIGITS = 12


class ResultPaths:
    """The keys of one job."""

    def __init__(self, job: str) -> None:
        root = f"operators/{name_segment(job)}"
        self.data = f"{root}/results/data/"
        self.indexes = f"{root}/results/index/"
        self.gaps = f"{root}/results/gaps/"
        self.identity = checked_key(f"{root}/results/identity.json")
        self.description = checked_key(f"{root}/description.pipeline")

    def new_data(self, batch: int) -> str:
        """A new key every time: result objects are never written twice."""
        return f"{self.data}{batch:0{_BATCH_DIGITS}d}-{secrets.token_hex(8)}.rows"

    def index(self, batch: int) -> str:
        return f"{self.indexes}{batch:0{_BATCH_DIGITS}d}.index"

    def gap(self, batches: range) -> str:
        return f"{self.gaps}{batches.start:0{_BATCH_DIGITS}d}-{batches[-1]:0{_BATCH_DIGITS}d}.gap"

    def batch_of_data(self, key: str) -> int:
        return int(key.removeprefix(self.data).partition("-")[0])

    def batch_of_index(self, key: str) -> int:
        return int(key.removeprefix(self.indexes).removesuffix(".index"))
