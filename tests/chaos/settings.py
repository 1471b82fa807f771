"""The settings of a driver, and their form as a command line."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Self

import pyarrow as pa

from tests.chaos import oracle, windowed_oracle
from tests.chaos.oracle import Stream
from tests.chaos.windowed_oracle import WindowedStream

# What a driver leaves in its folder.
STATE = "state.parquet"
OUTPUTS = "outputs.parquet"  # of a stream; a Parquet sink has its own folder
COUNTING, WINDOWS = "counting", "windows"  # operators


@dataclass(frozen=True)
class DriverSettings:
    """A job, where it runs and what it counts. Everything but `folder` and `store` has a default."""

    folder: str  # on this machine: checkpoints, outcomes, marks
    store: str
    name: str = "chaos"
    operator: str = COUNTING  # or "windows"
    master: str = "local[12]"
    sink: str = "parquet"  # or "stream": the results as a streaming DataFrame, written by Spark
    outputs: str = ""  # where the Parquet sink writes; beside the checkpoints if empty
    nodes: int = 3
    tasks: int = 24
    standbys: int = 0
    rows: int = 5_000  # in a batch
    keys: int = 2_000
    grouping: str = "hash"  # or "table": then half of the migrations move keys
    seed: int = 1
    batches: int = 5  # to take after the request to finish
    batch_ms: int = 100  # between the starts of two batches, at least
    snapshot_seconds: float = 1.0
    node_timeout_seconds: float = 10.0
    step_timeout_seconds: float = 0.0  # after which a node is ended that does not end its step; 0: never
    poison: int = -1  # a batch in which a row kills every process that takes it
    hang: int = -1  # a batch in which an operator hangs, once
    conditional: int = 1  # 0: a file store without conditional writes
    deaths: str = "[]"  # JSON: [[moment, batch], ...]
    scales: int = 0  # migrations, one after the other
    most_nodes: int = 5  # to scale out to
    modes: str = "progressive,live,suspend,restart"  # of migrations
    falls: str = "[]"  # JSON: [[step of a migration, victim], ...]

    def __post_init__(self) -> None:
        if self.sink not in ("parquet", "stream"):
            raise ValueError(f"there is no sink {self.sink!r}. Use parquet or stream.")
        if self.operator not in (COUNTING, WINDOWS):
            raise ValueError(f"there is no operator {self.operator!r}. Use {COUNTING} or {WINDOWS}.")

    @property
    def stream(self) -> Stream:
        return Stream(self.rows, self.keys, self.seed)

    @property
    def windowed_stream(self) -> WindowedStream:
        return WindowedStream(self.rows, self.keys, self.seed)

    def find_mistakes(self, last_batch: int, state: pa.Table, outputs: pa.Table) -> list[str]:
        """What is wrong with the final state and the results of the operator; nothing, if all is well."""
        if self.operator == WINDOWS:
            stream = self.windowed_stream
            wrong = windowed_oracle.wrong_state(stream, last_batch, state)
            return wrong + windowed_oracle.wrong_outputs(stream, last_batch, outputs)
        wrong = oracle.wrong_state(self.stream, last_batch, state)
        if self.grouping == "table":
            return wrong + oracle.wrong_outputs(self.stream, last_batch, oracle.count_batches(outputs))
        return wrong + oracle.wrong_outputs(self.stream, last_batch, outputs) + oracle.wrong_tasks(outputs)

    @property
    def outputs_url(self) -> str:
        return self.outputs or f"file://{self.folder}/outputs"

    @property
    def planned_deaths(self) -> tuple[tuple[str, int], ...]:
        return tuple((moment, batch) for moment, batch in json.loads(self.deaths))

    @property
    def planned_falls(self) -> tuple[tuple[str, str], ...]:
        return tuple((step, victim) for step, victim in json.loads(self.falls))

    def arguments(self) -> list[str]:
        return [f"--{name}={value}" for name, value in asdict(self).items()]

    @classmethod
    def parse(cls, arguments: Sequence[str] | None = None) -> Self:
        parser = argparse.ArgumentParser(prog="python -m tests.chaos.driver", description=__doc__)
        for field in fields(cls):
            kind = {"int": int, "float": float}.get(str(getattr(field.type, "__name__", field.type)), str)
            usual = None if field.default is MISSING else field.default
            parser.add_argument(f"--{field.name}", type=kind, required=field.default is MISSING, default=usual)
        return cls(**vars(parser.parse_args(arguments)))
