"""How long a node needs, after it was given units, to be where the others are."""

import time
from typing import Any

from elastic.runtime.node.specification import NodeSpecification
from elastic.runtime.protocol import Adopt, Host, Position


class CatchingUp:
    """From an adoption until its units have taken all steps that it named."""

    def __init__(self, message: Adopt, host: Host) -> None:
        self._started = time.monotonic()
        self._units = len(message.units)
        self._replayed_before = host.replayed_rows
        self._last = max((step.position for step in message.steps), default=Position(-1, 0))
        self._steps = len(message.steps)

    def is_over(self, host: Host) -> bool:
        return host.is_past(self._last)

    def report(self, spec: NodeSpecification, host: Host) -> dict[str, Any]:
        return {
            "node": spec.node,
            "incarnation": spec.incarnation,
            "units": self._units,
            "steps": self._steps,
            "replayed_rows": host.replayed_rows - self._replayed_before,
            "seconds": time.monotonic() - self._started,
        }
