"""All kinds of routing by name; adding one takes one file and one entry here."""

from typing import Any

from elastic.errors import InvalidJob
from elastic.routing.interval import IntervalRouting
from elastic.routing.protocol import Routing

ROUTINGS: dict[str, type[Routing]] = {IntervalRouting.kind: IntervalRouting}


def routing_from_json(document: dict[str, Any]) -> Routing:
    """Return the routing that `to_json` of any kind wrote."""
    kind = document.get("kind")
    if kind not in ROUTINGS:
        known = ", ".join(map(repr, sorted(ROUTINGS)))
        raise InvalidJob(f"unknown routing kind {kind!r}, only {known}. Open the store with the version that wrote it.")
    return ROUTINGS[kind].from_json(document)
