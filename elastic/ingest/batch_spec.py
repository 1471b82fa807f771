"""The specification of a batch that the driver sends to the sender of every source partition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from elastic.operators.combiner import Combiner
from elastic.operators.graph import Feed
from elastic.routing import Routing
from elastic.routing.shuffle import Forecast
from elastic.settings import Settings
from elastic.store_access import StoreAccess

HASH = "__elastic_hash"  # the column that Spark adds, where it does: the hash of the key
INPUT_NUMBER = "__elastic_input"  # in a job with several inputs, the column with the number of that which a row is of

Slots: TypeAlias = tuple[tuple[str, str], ...]  # pairs of a column as it comes, and its name in the job


@dataclass(frozen=True)
class StageFeed:
    """How the rows of an input reach one stage that reads it.

    `key` is what rows are grouped by, `combine` what the operator makes of rows before they travel.
    """

    stage: int
    key: tuple[str, ...]
    combine: Combiner | None = None
    feed: Feed | None = None  # None: rows are right as they are


@dataclass(frozen=True)
class InputPlan:
    """How the rows of one input become those of a batch.

    `slots` are the columns in which Spark brings them, by the names that they have in the job, if these differ: inputs
    share columns of the same type.
    """

    name: str
    event_time: str | None
    feeds: tuple[StageFeed, ...]
    slots: Slots = ()

    def unpack(self, rows: pa.Table) -> pa.Table:
        """Return the columns of the input, without what tells inputs apart."""
        if self.slots:
            names = [name for _, name in self.slots]
            return rows.select([slot for slot, _ in self.slots]).rename_columns(names)
        return rows.drop_columns([INPUT_NUMBER]) if INPUT_NUMBER in rows.column_names else rows


@dataclass(frozen=True)
class BatchSpec:
    """How to send the rows of one batch; `addresses` are those of nodes that have their units."""

    job: str
    batch: int
    routing: Routing
    addresses: dict[str, str]
    token: str = field(repr=False)
    store: StoreAccess
    settings: Settings
    inputs: tuple[InputPlan, ...]  # in the order of their numbers
    stages: int = 1  # of the job
    # By stage, of a batch whose rows are shuffled by what they cost.
    forecasts: Mapping[int, Forecast] = field(default_factory=dict)
    senders: int = 1  # as far as that is known before

    @property
    def only_feed(self) -> StageFeed | None:
        """The way of all rows, if there is only one and it leaves them as they are."""
        feeds = [feed for plan in self.inputs for feed in plan.feeds]
        return feeds[0] if len(feeds) == 1 and feeds[0].feed is None else None
