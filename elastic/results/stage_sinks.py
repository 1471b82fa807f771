"""The sinks of a job by stage: one sink for the last stage, or one for each of several stages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote, urlsplit

from elastic.errors import ElasticError, InvalidJob, InvalidSetting
from elastic.results.description import Description
from elastic.results.errors import UnknownStage
from elastic.results.log import ResultLog
from elastic.results.sink_writer import SinkWriter
from elastic.results.sink_writers import SinkWriters
from elastic.results.sinks import SINKS, MemorySink, Sink, open_sink

SinkChoice: TypeAlias = str | Sink | Mapping[str, str | Sink]


@dataclass(frozen=True)
class StageSinks:
    """The sinks of a job by the stages whose results they get, and their names for people, which hold no secrets.

    `last` is the stage whose results a single sink gets; None if no stage emits results, as then in `by_stage`.
    """

    by_stage: Mapping[str | None, Sink]
    labels: Mapping[str | None, str]
    last: str | None

    @classmethod
    def choose(cls, sink: SinkChoice, pipeline: Description) -> "StageSinks":
        """Return the sinks that a user gave; refuses what would deliver nothing, or two stages to one sink."""
        emitting = (stage.name for stage in reversed(pipeline.stages) if stage.output_schema is not None)
        last = next(emitting, None)
        if not isinstance(sink, Mapping):
            opened = _open(sink)
            return cls({last: opened}, {last: _label(sink, opened)}, last)
        _check_stages(sink, pipeline)
        _check_targets(sink)
        by_stage: dict[str | None, Sink] = {}
        for stage, one in sink.items():
            by_stage[stage] = _open(one)
            _check_keeps_results(stage, by_stage[stage])
        return cls(by_stage, {stage: _label(one, by_stage[stage]) for stage, one in sink.items()}, last)

    @property
    def needs_log(self) -> bool:
        """Whether nodes write results to the log."""
        return any(sink.needs_log for sink in self.by_stage.values())

    @property
    def drawn(self) -> dict[str, str]:
        """The names of the sinks to which results are delivered, by stage."""
        return {stage: self.labels[stage] for stage, sink in self.by_stage.items() if stage and sink.needs_writer}

    def find_memory(self, stage: str | None) -> MemorySink:
        """Return the memory sink of a stage; without a name, the only one."""
        found = {name: sink for name, sink in self.by_stage.items() if isinstance(sink, MemorySink)}
        if not found:
            raise ElasticError('only the memory sink collects results. Run the job with sink="memory".')
        if stage is None and len(found) == 1:
            return next(iter(found.values()))
        if stage is None or stage not in found:
            raise UnknownStage(stage, [str(name) for name in found])
        return found[stage]

    def make_writers(
        self, results: ResultLog | None, *, retry_seconds: float, sink_retry_seconds: float
    ) -> SinkWriters:
        """Return a writer for each sink to which results are delivered."""

        def make() -> Iterator[tuple[str, SinkWriter]]:
            for stage, sink in self.by_stage.items():
                if results is not None and stage is not None and sink.needs_writer:
                    yield (
                        stage,
                        SinkWriter(
                            results,
                            stage,
                            sink,
                            # Results of each stage have their own identity, so that no sink confuses those of two
                            # stages.
                            part="" if stage == self.last else quote(stage, safe=""),
                            retry_seconds=retry_seconds,
                            sink_retry_seconds=sink_retry_seconds,
                        ),
                    )

        return SinkWriters(dict(make()))


def _open(sink: str | Sink) -> Sink:
    return open_sink(sink) if isinstance(sink, str) else sink


def _check_stages(sinks: Mapping[str, object], pipeline: Description) -> None:
    if not sinks:
        raise InvalidSetting("sink", {}, 'name a sink for a stage at least, or use sink="store"')
    names, emitting = [stage.name for stage in pipeline.stages], pipeline.graph.emits_results
    for stage in sinks:
        if stage not in names:
            raise UnknownStage(stage, names)
        if stage not in emitting:
            with_results = ", ".join(repr(name) for name in names if name in emitting) or "none"
            raise InvalidJob(
                f"stage {stage!r} has a sink and emits no results: its rows go to the stages that read it. Give the "
                f"sink to a stage that emits some ({with_results}), or declare a next_schema and yield ToSink(rows)."
            )


def _check_targets(sinks: Mapping[str, str | Sink]) -> None:
    """Refuse one object, or one folder, for two stages: it has one position. Topics and tables have one for each."""
    seen: dict[str | int, str] = {}
    for stage, sink in sinks.items():
        if isinstance(sink, str) and not sink.startswith("parquet:"):
            continue
        target = sink if isinstance(sink, str) else id(sink)
        if target in seen:
            raise InvalidJob(f"stages {seen[target]!r} and {stage!r} have the same sink. Give each one of its own.")
        seen[target] = stage


def _check_keeps_results(stage: str, sink: Sink) -> None:
    if not sink.needs_log:
        why = f"the results of all stages are kept, or none are. Leave stage {stage!r} out, or use sink='none'"
        raise InvalidSetting("sink", {stage: "none"}, why)


def _label(given: str | Sink, opened: Sink) -> str:
    """Return the kind of a sink and the last part of its address: neither user, password nor options."""
    classes = {getattr(make, "__self__", make): kind for kind, make in SINKS.items()}
    kind = classes.get(type(opened), type(opened).__name__)
    if not isinstance(given, str):
        return kind
    target = urlsplit(given.partition(":")[2]).path.rstrip("/").rpartition("/")[2]
    return f"{kind}: {target}" if target else kind
