"""What a node needs to know to start; the launcher carries it to the node's process."""

from dataclasses import dataclass, field

from elastic.results import Description
from elastic.settings import Settings
from elastic.store_access import StoreAccess


@dataclass(frozen=True)
class NodeSpec:
    """One incarnation of one node of a job."""

    job: str
    node: str
    incarnation: str
    driver: str  # its address
    host: str | None  # to listen on; None: the address under which this machine reaches the driver
    token: str = field(repr=False)
    store: StoreAccess
    pipeline: Description
    settings: Settings
    keeps_results: bool  # whether the job has a sink that reads results
    executor: str = ""  # what it shares with nodes that are lost with it, beside the host
