"""The heaviest keys on a node, for routings that treat them apart; nobody pays who does not ask."""

from typing import Any, Self

from elastic.routing import HeavyHitters
from elastic.routing.slots import stage_of
from elastic.runtime.node.fetching import Rows
from elastic.runtime.node.specification import NodeSpecification

_DEFAULT_SIZE = 64  # keys, where the routing asks and the settings do not say


class HeavyKeys:
    """A sketch of the keys of the first stage, since the node started."""

    def __init__(self, size: int, key: tuple[str, ...]) -> None:
        self._size = size
        self._key = key
        self._sketch = HeavyHitters(size)

    @classmethod
    def asked_for(cls, spec: NodeSpecification) -> Self | None:
        """One if the routing or the settings want it."""
        size = spec.settings.heavy_hitters or (_DEFAULT_SIZE if spec.routing.wants_heavy_hitters else 0)
        return cls(size, spec.pipeline.stages[0].key) if size else None

    def see(self, rows: Rows) -> None:
        for slot, tables in rows.items():
            if stage_of(slot) == 0:
                for table in tables:
                    self._sketch.update([table[name] for name in self._key])

    def to_json(self) -> list[list[Any]]:
        """Key as text, about how often it came, and at least how often; heaviest first."""
        return [
            [", ".join(map(str, heavy.key)), heavy.estimate, heavy.lower_bound]
            for heavy in self._sketch.top(self._size)
        ]
