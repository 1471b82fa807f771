"""Everything a node needs to know to start; travels to it inside the Spark task."""

from dataclasses import dataclass, field

from elastic.results import Description
from elastic.routing import Routing
from elastic.runtime.access import StoreAccess
from elastic.settings import Settings


@dataclass(frozen=True)
class NodeSpecification:
    """One incarnation of one node of a job."""

    job: str
    node: str
    incarnation: str
    controller: str  # its address
    host: str | None  # to listen on; None: the address under which this machine reaches the controller
    token: str = field(repr=False)
    store: StoreAccess
    pipeline: Description
    routing: Routing
    settings: Settings
    keeps_results: bool  # whether anybody wants what goes to the sink
