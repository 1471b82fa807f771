"""What a run must end with, computed without the engine: the counts of a stream whose rows are known.

Batch b of the stream holds the values b*R to (b+1)*R - 1, and a value's key is a fixed mix of it. So after any batch
the count of every key is known, and so is its content, a polynomial over the very values that came, in their order: a
row lost and another one doubled, or two rows exchanged, would leave the counts as they are, and not the content.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from migration.model.mixing import mix_numbers

Numbers = NDArray[np.int64]
SHOWN = 3  # differences of one kind that are worth reading
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no value is lost in a product modulo 2^64
PARTITIONS = 2  # of the source; partition p of a batch holds the values that are p modulo this, in ascending order


def mix_values(values: Any) -> NDArray[np.uint64]:
    """Return numbers that are as scattered as random ones."""
    return mix_numbers(np.asarray(values).astype(np.uint64))


def extend_content(content: NDArray[np.uint64], places: Numbers, values: Numbers) -> None:
    """Take rows in order: c becomes c * factor + mix_values(value) at the place of each, modulo 2^64."""
    order = np.argsort(places, kind="stable")
    touched, starts, counts = np.unique(places[order], return_index=True, return_counts=True)
    powers = np.concatenate([np.ones(1, np.uint64), np.cumprod(np.full(counts.max(), _FACTOR))])
    after = np.repeat(starts + counts, counts) - 1 - np.arange(len(order))  # rows of the same place that follow
    terms = mix_values(values[order]) * powers[after]
    content[touched] = content[touched] * powers[counts] + np.add.reduceat(terms, starts)


@dataclass(frozen=True)
class Output:
    """What a batch must give: for each of its keys how often it came, and count and content after it."""

    batch: int
    key: Numbers
    increment: Numbers
    count: Numbers
    content: Numbers


@dataclass(frozen=True)
class Stream:
    """A seeded stream: `rows` in every batch, spread over `keys`."""

    rows: int
    keys: int
    seed: int

    def key_expression(self) -> str:
        """The key of a row in Spark's SQL; a linear congruence that stays below 2^63 for 10^9 rows."""
        return f"((value * 1103515245 + {12345 + self.seed}) % 2147483648) % {self.keys}"

    def key_of(self, values: Numbers) -> Numbers:
        """The same in NumPy."""
        return ((values * 1103515245 + (12345 + self.seed)) % 2147483648) % self.keys

    def values_of(self, batch: int) -> Numbers:
        """The values of a batch, in the order in which they are processed: one source partition after the other."""
        values = np.arange(batch * self.rows, (batch + 1) * self.rows, dtype=np.int64)
        return np.concatenate([values[partition::PARTITIONS] for partition in range(PARTITIONS)])

    def outputs(self, last_batch: int) -> Iterator[Output]:
        """Batch by batch; the last one holds the final state of its keys."""
        count, content = np.zeros(self.keys, np.int64), np.zeros(self.keys, np.uint64)
        for batch in range(last_batch + 1):
            values = self.values_of(batch)
            key = self.key_of(values)
            increment = np.bincount(key, minlength=self.keys)
            count += increment
            extend_content(content, key, values)
            found = np.flatnonzero(increment)
            yield Output(batch, found, increment[found], count[found], content[found].view(np.int64))

    def state(self, last_batch: int) -> pa.Table:
        """Key, count and content of every key that came, in order of the key."""
        values = np.concatenate([self.values_of(batch) for batch in range(last_batch + 1)])
        key = self.key_of(values)
        content = np.zeros(self.keys, np.uint64)
        extend_content(content, key, values)
        count = np.bincount(key, minlength=self.keys)
        found = np.flatnonzero(count)
        return pa.table({"key": found, "count": count[found], "content": content[found].view(np.int64)})


def content_hash(state: pa.Table) -> str:
    """One number for all keys with their counts and contents, whatever order they come in."""
    found = mix_values(state["key"].to_numpy())
    for name in ("count", "content"):
        found = mix_values(found + mix_values(state[name].to_numpy().view(np.uint64)))
    return f"{int(np.add.reduce(found, dtype=np.uint64)):016x}"


def wrong_state(stream: Stream, last_batch: int, state: pa.Table) -> list[str]:
    """What is wrong with a final state; nothing, if all is well."""
    expected = stream.state(last_batch)
    found = state.select(expected.column_names).sort_by("key")
    if found.equals(expected):
        return [] if content_hash(state) == content_hash(expected) else ["equal states have different hashes"]
    problems = [f"the state has {found.num_rows} keys, not {expected.num_rows}"] if len(found) != len(expected) else []
    right = {row["key"]: row for row in expected.to_pylist()}
    different = [row for row in found.to_pylist() if row != right.get(row["key"])]
    return problems + [f"the state has {row}, not {right.get(row['key'])}" for row in different[:SHOWN]]


def wrong_outputs(stream: Stream, last_batch: int, outputs: pa.Table) -> list[str]:
    """What is wrong with the outputs of a whole run: each result must be there once, and no other."""
    problems = wrong_batches(last_batch, outputs)
    outputs = outputs.sort_by([("_batch", "ascending"), ("key", "ascending")])
    starts = np.searchsorted(outputs["_batch"].to_numpy(), np.arange(last_batch + 2))
    wrong = [
        expected.batch
        for expected in stream.outputs(last_batch)
        if not _is_same(expected, outputs.slice(starts[expected.batch], np.diff(starts)[expected.batch]))
    ]
    if wrong:
        problems.append(f"the outputs of {len(wrong)} batches are not what they must be: {wrong[:SHOWN]}")
    return problems


def count_batches(outputs: pa.Table) -> pa.Table:
    """Number the batches of outputs as the source does: the engine counts ticks, which have no rows, too."""
    _, numbers = np.unique(outputs["_batch"].to_numpy(), return_inverse=True)
    return outputs.set_column(outputs.schema.get_field_index("_batch"), "_batch", pa.array(numbers))


def wrong_tasks(outputs: pa.Table) -> list[str]:
    """Whether all results of a key come from one task."""
    places = outputs.group_by("key").aggregate([("_task", "min"), ("_task", "max")])
    return [] if places["_task_min"].equals(places["_task_max"]) else ["a key was in two tasks"]


def wrong_batches(last_batch: int, outputs: pa.Table) -> list[str]:
    """Whether all results are of batches that were committed."""
    found = np.unique(outputs["_batch"].to_numpy())
    unexpected = found[(found < 0) | (found > last_batch)]
    return [f"there are outputs of batches that were never committed: {unexpected.tolist()}"] if len(unexpected) else []


def _is_same(expected: Output, found: pa.Table) -> bool:
    return all(
        np.array_equal(getattr(expected, name), found[name].to_numpy())
        for name in ("key", "increment", "count", "content")
    )
