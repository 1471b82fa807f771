"""The description of a job in the store, by which other programs read its results and its state.

One signed object holds the names, keys and schemas of the stages, and the pickled operators. Reading the schemas
unpickles nothing, and nothing is unpickled that is not signed with the application's secret.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from elastic.errors import UnserializableOperator
from elastic.operators.graph import DEFAULT_INPUT, InputSpec, JobGraph
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
    protected: tuple[int, ...] = ()  # hashes of keys whose guests have a standby in any case
    first_version: str | None = None  # of the operator that stored states which do not name theirs; None: this one
    # The names of the inputs and stages that it reads, each with the columns that become the key, none if they have its
    # names; () means the stage before it, and for the first one all inputs.
    reads: tuple[tuple[str, tuple[str, ...]], ...] = ()
    output_delay: str | None = None

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
    """A job: its stages in order, its number of tasks, the version that its operators declare, and its inputs.

    Without `inputs` it has one, whose rows are those of the first stage. Invariant: there is at least one stage, and
    stage names are unique.
    """

    stages: tuple[StageDescription, ...]
    tasks: int
    version: str
    inputs: tuple[InputSpec, ...] = ()

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"stages {names} are not a pipeline. Give at least one stage, each with a unique name.")
        if not self.inputs:
            first = self.stages[0]
            name = DEFAULT_INPUT if DEFAULT_INPUT not in names else f"{DEFAULT_INPUT}-2"
            object.__setattr__(self, "inputs", (InputSpec(name, first.input_schema),))

    @property
    def graph(self) -> JobGraph:
        """The inputs and stages, and what each stage reads."""
        names = [stage.name for stage in self.stages]
        sources = {name: self.sources_of(number) for number, name in enumerate(names)}
        graph = JobGraph(tuple(spec.name for spec in self.inputs), sources, frozenset())
        emitting = [name for number, name in enumerate(names) if self._emits_results(number, graph.followers(name))]
        return JobGraph(graph.inputs, sources, frozenset(emitting))

    def _emits_results(self, number: int, followers: Sequence[str]) -> bool:
        """Whether a stage emits rows to the sink: the last ones do, others if they declare other rows for the next."""
        stage = self.stages[number]
        if stage.output_schema is None or not followers:
            return stage.output_schema is not None
        before = self.partial_stage_before(number)
        rows = stage.input_schema if before is None else self.stages[before].input_schema
        # Operators may learn from their input what they emit, such as windows whose late rows are results.
        return stage.operator.bind(stage.key, rows).next_schema is not None

    def sources_of(self, stage: int) -> tuple[str, ...]:
        """Return the names of the inputs and stages that a stage reads."""
        if reads := self.stages[stage].reads:
            return tuple(name for name, _ in reads)
        return (self.stages[stage - 1].name,) if stage else tuple(spec.name for spec in self.inputs)

    def followers(self, stage: int) -> list[int]:
        """Return the numbers of the stages that read a stage."""
        name = self.stages[stage].name
        return [number for number in range(stage + 1, len(self.stages)) if name in self.sources_of(number)]

    def partial_stage_before(self, stage: int) -> int | None:
        """Return the number of the partial stage whose partials a stage merges; None if there is none."""
        names = [one.name for one in self.stages]
        before = [names.index(name) for name in self.sources_of(stage) if name in names[:stage]]
        return before[0] if len(before) == 1 and self.stages[before[0]].is_partial else None

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
            "document": Json(
                {
                    "stages": document,
                    "tasks": self.tasks,
                    "version": self.version,
                    "inputs": [_input_to_json(spec) for spec in self.inputs],
                }
            ),
        }
        for number, spec in enumerate(self.inputs):
            parts[f"source-{number}"] = spec.schema.serialize().to_pybytes()
        for number, stage in enumerate(self.stages):
            parts[f"input-{number}"] = stage.input_schema.serialize().to_pybytes()
            if stage.output_schema is not None:
                parts[f"output-{number}"] = stage.output_schema.serialize().to_pybytes()
            # In a tuple, so that values of any type are pickled.
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
                tuple(stage.get("protected", ())),
                stage.get("first_version"),
                tuple((name, tuple(key)) for name, key in stage.get("reads", ())),
                stage.get("output_delay"),
            )
            for number, stage in enumerate(document["stages"])
        )
        inputs = tuple(
            _input_from_json(spec, _schema(found.parts, f"source-{number}"))
            for number, spec in enumerate(document.get("inputs", ()))  # of versions up to 0.2 there is one
        )
        return cls(stages, document["tasks"], document["version"], inputs)


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
    if stage.protected:
        document["protected"] = list(stage.protected)
    if stage.first_version is not None:
        document["first_version"] = stage.first_version
    if stage.reads:
        document["reads"] = [[name, list(key)] for name, key in stage.reads]
    if stage.output_delay is not None:
        document["output_delay"] = stage.output_delay
    return document


def _input_to_json(spec: InputSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "key": list(spec.key),
        "event_time": spec.event_time,
        "watermark_delay_ms": spec.watermark_delay_ms,
        "idle_after_ms": spec.idle_after_ms,
    }


def _input_from_json(document: Mapping[str, Any], schema: pa.Schema) -> InputSpec:
    return InputSpec(schema=schema, **{**document, "key": tuple(document["key"])})


def _schema(parts: Mapping[str, Any], name: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(parts[name]))
