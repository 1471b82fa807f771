"""The heaviest keys of a stream, in bounded memory."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from elastic.errors import InvalidJob, MissingPackage

_COUNTERS_PER_KEY = 8  # spare counters, which keep the estimates accurate


class HeavyKey(NamedTuple):
    """A key with bounds of its number of rows: at least `lower_bound`, at most `estimate`."""

    key: tuple[Any, ...]
    estimate: int
    lower_bound: int


class HeavyHitters:
    """A frequent-items sketch (Apache DataSketches) over the keys of all rows so far.

    It has counters for about eight times `size` keys, whatever the number of keys in the stream, and is exact while
    they suffice; then the error of a count is at most about half of `rows / size`. Updating costs about a microsecond
    per different key of a batch. Not thread-safe.
    """

    def __init__(self, size: int) -> None:
        try:
            import datasketches
        except ImportError as missing:
            raise MissingPackage("tracking heavy keys", "datasketches", "sketches") from missing
        if size < 1:
            raise InvalidJob(f"cannot track {size} heavy keys. Track at least one.")
        self.size = size
        self._sketch = datasketches.frequent_items_sketch((size * _COUNTERS_PER_KEY * 4 // 3).bit_length())
        self._bound = datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return int(self._sketch.total_weight)

    def update(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Count the keys of more rows, given as key columns."""
        names = [str(position) for position in range(len(columns))]
        counts = pa.table(list(columns), names).group_by(names).aggregate([([], "count_all")])
        keys = zip(*(counts[name].to_pylist() for name in names), strict=True)
        for key, count in zip(keys, counts["count_all"].to_pylist(), strict=True):
            self._sketch.update(key, count)

    def top(self, count: int) -> list[HeavyKey]:
        """Return the `count` heaviest keys, heaviest first; reliable up to `size` of them."""
        found = self._sketch.get_frequent_items(self._bound)
        keys = [HeavyKey(key, estimate, lower) for key, estimate, lower, _ in found]
        return sorted(keys, key=lambda heavy: (-heavy.estimate, repr(heavy.key)))[:count]
