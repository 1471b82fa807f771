"""The graph of a job: inputs, stages and sinks as nodes, and what flows from one to the other as edges.

`networkx` holds, checks and orders it. It takes half a second to import, so it is imported for graphs that a user
writes, not for chains, and never on a node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from elastic.errors import CyclicGraph, UnknownSource, UnreachableStage, UnreadInput

if TYPE_CHECKING:
    import networkx as nx

SINK = "sink"  # the kind of the nodes that hold the results of a stage; no input or stage has the name of one
_SHAPES = {"input": ("([", "])"), "stage": ("[", "]"), SINK: ("[(", ")]")}


@dataclass(frozen=True)
class JobGraph:
    """The inputs and the stages of a job by name, what each stage reads, and which stages emit results.

    `sinks` has the names of the sinks that get results, by stage; those of the other stages stay in the result log.
    `sources` has the names of what a stage reads, by stage; the stages are in the order of their numbers, in which
    every stage comes after those that it reads.
    """

    inputs: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    emits_results: frozenset[str]
    sinks: Mapping[str, str] = field(default_factory=dict)

    @property
    def stages(self) -> tuple[str, ...]:
        return tuple(self.sources)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Every edge between an input or a stage and a stage."""
        return tuple((source, stage) for stage, sources in self.sources.items() for source in sources)

    def followers(self, name: str) -> tuple[str, ...]:
        """Return the stages that read an input or a stage."""
        return tuple(stage for stage, sources in self.sources.items() if name in sources)

    def to_networkx(self) -> "nx.DiGraph[Any]":
        """Return the graph with pairs of kind and name as nodes: ("input", name), ("stage", name), ("sink", stage)."""
        import networkx as nx

        graph: nx.DiGraph[Any] = nx.DiGraph()
        kinds = {**dict.fromkeys(self.stages, "stage"), **dict.fromkeys(self.inputs, "input")}
        graph.add_nodes_from((kind, name) for name, kind in kinds.items())
        graph.add_edges_from(((kinds[source], source), ("stage", stage)) for source, stage in self.edges)
        graph.add_edges_from((("stage", stage), (SINK, stage)) for stage in self.stages if stage in self.emits_results)
        return graph

    def to_mermaid(self) -> str:
        """Return the graph as a diagram of Mermaid, as documentation shows it."""
        numbers: dict[tuple[str, str], str] = {}
        lines = ["flowchart LR"]
        for kind, name in self.nodes():
            numbers[kind, name] = f"n{len(numbers)}"
            opening, closing = _SHAPES[kind]
            text = (self.sinks.get(name) or f"results of {name}") if kind == SINK else name
            lines.append(f'    {numbers[kind, name]}{opening}"{escape(text)}"{closing}')
        lines += [f"    {numbers[source]} --> {numbers[target]}" for source, target in self.links()]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the nodes by kind, and the edges as pairs of names."""
        return {
            "inputs": list(self.inputs),
            "stages": [
                {"name": stage, "reads": list(sources), "emits_results": stage in self.emits_results}
                for stage, sources in self.sources.items()
            ],
            "sinks": dict(self.sinks),
        }

    def __repr__(self) -> str:
        return f"JobGraph({', '.join(f'{source} -> {stage}' for source, stage in self.edges)})"

    def _repr_html_(self) -> str:
        from elastic.operators.graph.drawing import to_svg

        return to_svg(self)

    def nodes(self) -> list[tuple[str, str]]:
        return [
            *(("input", name) for name in self.inputs),
            *(("stage", name) for name in self.stages),
            *((SINK, name) for name in self.stages if name in self.emits_results),
        ]

    def links(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        kinds = {**dict.fromkeys(self.stages, "stage"), **dict.fromkeys(self.inputs, "input")}
        between = [((kinds[source], source), ("stage", stage)) for source, stage in self.edges]
        return [*between, *((("stage", name), (SINK, name)) for name in self.stages if name in self.emits_results)]


def order_stages(inputs: Sequence[str], sources: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the stages so that each comes after those that it reads, otherwise in the order in which they are given.

    Raises an `InvalidGraph` for names that nothing has, cycles, stages that no input reaches, and inputs that no stage
    reads.
    """
    import networkx as nx

    for stage, names in sources.items():
        for name in names:
            if name not in sources and name not in inputs:
                raise UnknownSource(stage, name, [*inputs, *sources])
    edges = [(name, stage) for stage, names in sources.items() for name in names]
    graph: nx.DiGraph[str] = nx.DiGraph(edges)
    graph.add_nodes_from([*inputs, *sources])
    if not nx.is_directed_acyclic_graph(graph):
        raise CyclicGraph([source for source, _ in nx.find_cycle(graph)])
    reached = set(inputs).union(*(nx.descendants(graph, name) for name in inputs))
    if lost := [stage for stage in sources if stage not in reached]:
        raise UnreachableStage(lost[0])
    if unread := [name for name in inputs if not graph.out_degree(name)]:
        raise UnreadInput(unread[0], list(sources))
    given = {name: number for number, name in enumerate([*inputs, *sources])}
    ordered = nx.lexicographical_topological_sort(graph, key=given.__getitem__)
    return [name for name in ordered if name in sources]
