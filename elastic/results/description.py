"""The description of a job in the store, by which other programs read its results and its state.

One signed object holds the names, keys and schemas of the stages, and the pickled operators. Reading the schemas
unpickles nothing, and nothing is unpickled that is not signed with the application's secret.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from elastic.errors import UnserializableOperator
from elastic.results.errors import UnknownJob, UnknownStage
from elastic.results.paths import ResultPaths
from storage.codec import Json, Secret, Unpacked, pack, unpack
from storage.errors import ObjectMissing, UnstorableState
from storage.stores.protocol import Store


@dataclass(frozen=True)
class StageDescription:
    """One operator of a pipeline, with the schemas of its input and of its rows for the sink (None: it emits none)."""

    name: str
    key: tuple[str, ...]
    operator: Any
    input_schema: pa.Schema
    output_schema: pa.Schema | None = None
    grouping: str = "hash"
    cost_key: tuple[str, ...] = ()
    standbys: int | None = None  # None: as many as the setting says

    @property
    def grouped_by(self) -> tuple[str, ...]:
        """What the unit of a row depends on, or in a shuffled stage what its cost depends on; there perhaps nothing."""
        return self.cost_key or self.key

    @property
    def is_partial(self) -> bool:
        """Whether it holds partials of the stage behind it."""
        return self.grouping.partition(":")[0] == "partial"


@dataclass(frozen=True)
class Description:
    """A job: its stages in order, its number of tasks, and the version that its operators declare.

    Invariant: there is at least one stage, and stage names are unique.
    """

    stages: tuple[StageDescription, ...]
    tasks: int
    version: str

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"stages {names} are not a pipeline. Give at least one stage, each with a unique name.")

    def stage_number(self, name: str | None) -> int:
        """Return the position of the stage of that name; without a name, of the only stage, or behind a partial one."""
        names = [stage.name for stage in self.stages]
        unnamed = [number for number, stage in enumerate(self.stages) if not stage.is_partial]
        if name is None and len(unnamed) == 1:
            return unnamed[0]
        if name not in names:
            raise UnknownStage(name, names)
        return names.index(name)

    def save(self, store: Store, secret: Secret, job: str) -> None:
        """Store it, replacing an older one; raises `UnserializableOperator` if an operator cannot be pickled."""
        document = [_to_json(stage) for stage in self.stages]
        parts: dict[str, Any] = {
            "document": Json({"stages": document, "tasks": self.tasks, "version": self.version}),
        }
        for number, stage in enumerate(self.stages):
            parts[f"input-{number}"] = stage.input_schema.serialize().to_pybytes()
            if stage.output_schema is not None:
                parts[f"output-{number}"] = stage.output_schema.serialize().to_pybytes()
            # In a tuple, so that it is pickled whatever its type is.
            parts[f"operator-{number}"] = (stage.operator,)
        key = ResultPaths(job).description
        try:
            packed = pack(parts, key=key, secret=secret)
        except UnstorableState as refused:
            number = int(refused.part.rpartition("-")[2])
            raise UnserializableOperator(self.stages[number].name, refused) from refused
        store.put(key, packed)

    @classmethod
    def load(cls, store: Store, secret: Secret, job: str) -> Self:
        """Read it with the operators; raises `UnknownJob` if there is none."""
        found = _read(store, secret, job)
        document = found.parts["document"]
        stages = tuple(
            StageDescription(
                stage["name"],
                tuple(stage["key"]),
                found.parts[f"operator-{number}"][0],
                _schema(found.parts, f"input-{number}"),
                _schema(found.parts, f"output-{number}") if f"output-{number}" in found.parts else None,
                stage.get("grouping", "hash"),
                tuple(stage.get("cost_key", ())),
                stage.get("standbys"),
            )
            for number, stage in enumerate(document["stages"])
        )
        return cls(stages, document["tasks"], document["version"])


def read_result_schemas(store: Store, secret: Secret, job: str) -> dict[str, pa.Schema]:
    """Read the schemas of the stages that emit rows to the sink, by stage; unpickles nothing."""
    found = _read(store, secret, job)
    stages: Sequence[Mapping[str, Any]] = found.parts["document"]["stages"]
    return {
        stage["name"]: _schema(found.parts, f"output-{number}")
        for number, stage in enumerate(stages)
        if f"output-{number}" in found.parts
    }


def choose_stage(schemas: Mapping[str, pa.Schema], stage: str | None) -> str:
    """Return the named stage; without a name, the only one that emits rows to the sink."""
    if stage is None and len(schemas) == 1:
        return next(iter(schemas))
    if stage is None or stage not in schemas:
        raise UnknownStage(stage, schemas)
    return stage


def _read(store: Store, secret: Secret, job: str) -> Unpacked:
    key = ResultPaths(job).description
    try:
        data = store.get(key)
    except ObjectMissing:
        raise UnknownJob(job, store.url) from None
    return unpack(data, key=key, secret=secret)


def _to_json(stage: StageDescription) -> dict[str, Any]:
    document: dict[str, Any] = {"name": stage.name, "key": list(stage.key)}
    if stage.grouping != "hash":
        document["grouping"] = stage.grouping
    if stage.cost_key:
        document["cost_key"] = list(stage.cost_key)
    if stage.standbys is not None:
        document["standbys"] = stage.standbys
    return document


def _schema(parts: Mapping[str, Any], name: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(parts[name]))
