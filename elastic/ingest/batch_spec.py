"""What a sender must know about a batch; travels to every source partition."""

from dataclasses import dataclass, field

from elastic.operators.combiner import Combiner
from elastic.routing import Routing
from elastic.routing.shuffle import NO_FORECAST, Forecast
from elastic.settings import Settings
from elastic.store_access import StoreAccess

HASH = "__elastic_hash"  # the column that Spark adds, where it does: the hash of the key


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
    key: tuple[str, ...]  # what rows are grouped by
    event_time: str | None
    combine: Combiner | None  # what the operator makes of rows before they travel
    forecast: Forecast = NO_FORECAST  # of a batch whose rows are shuffled by what they cost
    senders: int = 1  # as far as that is known before
