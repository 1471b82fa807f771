"""The graph of a job: what is refused, how it is ordered, what rows of several sources look like, how it is drawn."""

import re
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

from elastic.core.pipeline import create_runners, describe_pipeline
from elastic.errors import (
    CyclicGraph,
    InvalidGraph,
    InvalidJob,
    InvalidSetting,
    SchemasDoNotFit,
    UnknownColumn,
    UnknownSource,
    UnreachableStage,
    UnreadInput,
)
from elastic.operators import CountByKey, Stage, partial, stateless
from elastic.operators.graph import Input, InputSpec, Source, connect, order_stages
from elastic.operators.graph.drawing import to_svg
from elastic.operators.stages import build_runners, build_stages

PERSONS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
AUCTIONS = pa.schema([("auction", pa.int64()), ("seller", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
INPUTS = [InputSpec("persons", PERSONS, ("id",)), InputSpec("auctions", AUCTIONS, ("seller",))]
NAMES = ["persons", "auctions"]


def keep(name: str, key: str = "id", **options: Any) -> Stage:
    return Stage(stateless(lambda rows: rows, "id long, n long"), key, name, **options)


def test_a_chain_needs_no_names() -> None:
    stages = build_stages([keep("a"), keep("b")], "id")
    assert [(stage.name, stage.inputs) for stage in stages] == [("a", ()), ("b", ())]
    described = describe_pipeline(stages, pa.schema([("id", pa.int64()), ("n", pa.int64())]), 4)
    assert described.graph.edges == (("input", "a"), ("a", "b"))


def test_stages_come_after_those_that_they_read_and_otherwise_as_given() -> None:
    stages = build_stages(
        [keep("last", inputs=["b", "a"]), keep("b", inputs=["auctions"]), keep("a", inputs=["persons"])], "id", NAMES
    )
    assert [stage.name for stage in stages] == ["b", "a", "last"]


def test_a_stage_without_names_reads_the_one_before_it() -> None:
    stages = build_stages([keep("a", inputs=["persons"]), keep("b"), keep("c", inputs=["auctions"])], "id", NAMES)
    assert {stage.name: [name for name, _ in stage.inputs] for stage in stages} == {
        "a": ["persons"],
        "b": ["a"],
        "c": ["auctions"],
    }


@pytest.mark.parametrize(
    ("given", "kind", "match"),
    [
        ([keep("a", inputs=["person"])], UnknownSource, r"'a' reads 'person'.*Did you mean 'persons'"),
        ([keep("a", inputs=["a", *NAMES])], CyclicGraph, r"a -> a"),
        ([keep("a", inputs=["b", *NAMES]), keep("b", inputs=["a"])], CyclicGraph, r"cycle: [ab] -> [ab] -> [ab]"),
        ([keep("a", inputs=["persons"])], UnreadInput, r"no stage reads input 'auctions'"),
        ([keep("persons", inputs=NAMES)], InvalidJob, r"a stage and an input are named 'persons'"),
    ],
)
def test_what_is_no_graph_is_refused(given: list[Stage], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        build_runners(build_stages(given, "id", NAMES), INPUTS)


def test_a_stage_reads_everything_once() -> None:
    with pytest.raises(InvalidJob, match=r"stage 'a' reads something twice"):
        keep("a", inputs=["persons", "persons"])


def test_a_stage_that_nothing_reaches_is_refused() -> None:
    with pytest.raises(UnreachableStage):
        order_stages(["a"], {"x": ["a"], "lonely": []})


def test_all_of_these_are_one_family() -> None:
    for kind in (CyclicGraph, SchemasDoNotFit, UnknownSource, UnreachableStage, UnreadInput):
        assert issubclass(kind, InvalidGraph)


# Rows of several sources.


def feeds_of(*sources: Source, key: tuple[str, ...] = ("id",)) -> tuple[pa.Schema, Any]:
    return connect("join", key, sources)


def test_rows_of_several_sources_have_the_columns_of_all_and_name_their_source() -> None:
    schema, feeds = feeds_of(Source("persons", PERSONS), Source("auctions", AUCTIONS, ("seller",)))
    assert schema.names == ["id", "name", "ts", "auction", "seller", "input"]
    auctions = pa.table({"auction": [7], "seller": [3], "ts": [0]}, pa.schema(AUCTIONS))
    [row] = feeds[1](auctions).to_pylist()
    assert {**row, "ts": None} == {
        "id": 3,
        "name": None,
        "ts": None,
        "auction": 7,
        "seller": 3,
        "input": "auctions",
    }


def test_rows_of_one_source_stay_as_they_are() -> None:
    schema, [feed] = feeds_of(Source("persons", PERSONS))
    rows = PERSONS.empty_table()
    assert schema is PERSONS
    assert feed(rows) is rows


def test_a_single_source_whose_key_has_another_name_gets_the_key_and_no_tag() -> None:
    schema, [feed] = feeds_of(Source("auctions", AUCTIONS, ("seller",)))
    assert schema.names == ["auction", "seller", "ts", "id"]
    assert feed(pa.table({"auction": [7], "seller": [3], "ts": [0]}, pa.schema(AUCTIONS)))["id"].to_pylist() == [3]


OTHER = pa.schema([("id", pa.int64()), ("ts", pa.string())])


@pytest.mark.parametrize(
    ("sources", "key", "match"),
    [
        (
            [Source("persons", PERSONS), Source("other", OTHER)],
            ("id",),
            r"'ts' has type timestamp.* and string in 'other'",
        ),
        (
            [Source("persons", PERSONS), Source("other", pa.schema([("id", pa.string())]))],
            ("id",),
            r"'id' has type int64 in 'persons' and string",
        ),
        ([Source("persons", PERSONS), Source("auctions", AUCTIONS, ("seller", "auction"))], ("id",), r"has 1 columns"),
        ([Source("persons", PERSONS), Source("other", OTHER, ("ts",))], ("id",), r"has a column of that name already"),
        (
            [Source("persons", PERSONS), Source("other", pa.schema([*OTHER.remove(1), ("k", pa.int64())]), (), ("k",))],
            ("id",),
            r"keyed by 'id', and 'other' has that column, but its key is 'k'",
        ),
        (
            [Source("persons", PERSONS), Source("other", pa.schema([("id", pa.int64()), ("input", pa.string())]))],
            ("id",),
            r"'other' has a column 'input'",
        ),
    ],
)
def test_sources_that_do_not_fit_are_refused(sources: list[Source], key: tuple[str, ...], match: str) -> None:
    with pytest.raises(SchemasDoNotFit, match=match):
        connect("join", key, sources)


def test_a_column_that_is_not_there_cannot_become_the_key() -> None:
    with pytest.raises(UnknownColumn):
        feeds_of(Source("persons", PERSONS), Source("auctions", AUCTIONS, ("buyer",)))


# Inputs.


def test_an_input_selects_and_renames_columns() -> None:
    each = Input(name="auctions", columns={"id": "seller", "at": "ts"}, event_time="at", key="id")
    assert each.bind(AUCTIONS).schema.names == ["id", "at"]
    with pytest.raises(UnknownColumn):
        Input(columns=["buyer"]).bind(AUCTIONS)
    with pytest.raises(UnknownColumn):
        Input(event_time="at").bind(AUCTIONS)


@pytest.mark.parametrize("options", [{"watermark_delay": "1 second"}, {"idle_after": "1 second"}])
def test_a_watermark_needs_event_times(options: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting):
        Input(**options)


def test_two_inputs_of_the_same_name_are_refused() -> None:
    with pytest.raises(InvalidJob, match=r"two inputs are named 'persons'"):
        build_runners(build_stages(keep("a"), "id"), [INPUTS[0], INPUTS[0]])


def test_the_only_input_gives_way_to_a_stage_that_has_its_name() -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    described = describe_pipeline(build_stages([keep("input"), keep("b")], "id"), schema, 4)
    assert described.graph.edges == (("input-2", "input"), ("input", "b"))
    assert [runner.name for runner in create_runners(described, "fail")] == ["input", "b"]


# Partial stages.


def test_partials_go_to_their_own_operator_only() -> None:
    before, after = partial(Stage(CountByKey(), "id", "count", inputs=["persons"]))
    stages = build_stages([before, after, keep("n", inputs=["auctions"])], "id", NAMES)
    assert [stage.name for stage in stages] == ["partial-count", "count", "n"]
    with pytest.raises(InvalidJob, match=r"must be followed by its own operator"):
        build_stages([before, after, keep("b", inputs=["partial-count", "auctions"])], "id", NAMES)


# Drawing.


def described_graph() -> Any:
    stages = [
        keep("usd", "seller", inputs=["auctions"]),
        Stage(CountByKey(), "id", "join <b>", inputs=["usd", "persons"]),
    ]
    return describe_pipeline(build_stages(stages, "id", NAMES), INPUTS, 4).graph


def test_the_graph_is_drawn_as_mermaid_and_as_svg_from_the_same_nodes() -> None:
    graph = described_graph()
    assert graph.to_mermaid().splitlines() == [
        "flowchart LR",
        '    n0(["auctions"])',
        '    n1(["persons"])',
        '    n2["usd"]',
        '    n3["join &lt;b&gt;"]',
        '    n4[("results of join &lt;b&gt;")]',
        "    n0 --> n2",
        "    n2 --> n3",
        "    n1 --> n3",
        "    n3 --> n4",
    ]
    svg = ET.fromstring(to_svg(graph))  # noqa: S314 - our own text
    titles = [each.text for each in svg.iter() if each.tag.endswith("title")]
    assert titles == ["input auctions", "input persons", "stage usd", "stage join <b>", "results of join <b>"]
    assert len([each for each in svg.iter() if each.tag.endswith("path")]) == 4
    assert repr(graph) == "JobGraph(auctions -> usd, usd -> join <b>, persons -> join <b>)"
    assert re.match(r"<svg", graph._repr_html_())


def test_the_graph_is_one_of_networkx() -> None:
    graph = described_graph().to_networkx()
    assert list(graph.predecessors(("sink", "join <b>"))) == [("stage", "join <b>")]
    assert set(graph.predecessors(("stage", "join <b>"))) == {("stage", "usd"), ("input", "persons")}


def test_the_graph_travels_as_json() -> None:
    assert described_graph().to_json() == {
        "inputs": ["auctions", "persons"],
        "stages": [
            {"name": "usd", "reads": ["auctions"], "emits_results": False},
            {"name": "join <b>", "reads": ["usd", "persons"], "emits_results": True},
        ],
        "sinks": {},
    }
