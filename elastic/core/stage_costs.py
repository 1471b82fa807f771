"""Execution times of rows of shuffled stages: measured by nodes, pooled by the driver, used by senders.

A `StageCosts` of every node travels to the driver in heartbeats. With each batch the driver gives senders a `Forecast`;
nodes that send rows to a stage behind the first get the costs of all nodes with a step.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from elastic.routing.shuffle import ExecutionSketch, Forecast, SketchShape

SHAPE = SketchShape(rows=4, columns=512)  # counts are off by 0.5 % of all rows at most; 16 kB before compression
_FREQUENCY, _SECONDS = np.dtype("<u4"), np.dtype("<f4")


@dataclass(frozen=True)
class StageCosts:
    """Execution times of the rows of one shuffled stage on one node, as a sketch; at most 22 kB of text."""

    stage: int
    encoded: str = field(repr=False)

    @classmethod
    def of(cls, stage: int, sketch: ExecutionSketch) -> Self:
        """Return the costs in a sketch of `SHAPE`; 32 bits of each number are kept."""
        frequencies = np.minimum(sketch.frequencies, np.iinfo(_FREQUENCY).max).astype(_FREQUENCY)
        data = frequencies.tobytes() + sketch.seconds.astype(_SECONDS).tobytes()
        return cls(stage, b64encode(zlib.compress(data, 1)).decode("ascii"))

    @cached_property
    def sketch(self) -> ExecutionSketch:
        """The costs as a sketch that cannot be changed.

        Kept, because a forecast needs those of all nodes whenever one of them has sent another one.
        """
        data = zlib.decompress(b64decode(self.encoded))
        size, shape = SHAPE.rows * SHAPE.columns, (SHAPE.rows, SHAPE.columns)
        frequencies = np.frombuffer(data, _FREQUENCY, size).reshape(shape).astype(np.int64)
        seconds = np.frombuffer(data, _SECONDS, size, size * _FREQUENCY.itemsize).reshape(shape).astype(np.float64)
        frequencies.setflags(write=False)
        seconds.setflags(write=False)
        return ExecutionSketch(SHAPE, frequencies, seconds)

    def to_json(self) -> list[Any]:
        return [self.stage, self.encoded]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        return cls(*document)


@dataclass(frozen=True)
class NodeCosts:
    """Execution times of the rows of all shuffled stages on one node."""

    node: str
    stages: tuple[StageCosts, ...]

    def to_json(self) -> list[Any]:
        return [self.node, [costs.to_json() for costs in self.stages]]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        node, stages = document
        return cls(node, tuple(map(StageCosts.from_json, stages)))


def forecast_stage(costs: Iterable[NodeCosts], stage: int) -> Forecast:
    """Return what the nodes together know of a stage; O(nodes), about 0.1 ms for each that has sent another one."""
    sketches = {one.node: found.sketch for one in costs for found in one.stages if found.stage == stage}
    return Forecast.from_sketches(sketches)
