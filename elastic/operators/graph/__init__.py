"""A job as a graph: inputs, stages and sinks, what flows between them, and how far time has come in each of them."""

from elastic.operators.graph.clocks import StageClock, derive_clocks
from elastic.operators.graph.feeds import Feed, Source, connect
from elastic.operators.graph.inputs import DEFAULT_INPUT, Input, InputSpec, choose_key, to_input_specs
from elastic.operators.graph.job_graph import JobGraph, order_stages
from elastic.operators.graph.watermarks import Watermarks

__all__ = [
    "DEFAULT_INPUT",
    "Feed",
    "Input",
    "InputSpec",
    "JobGraph",
    "Source",
    "StageClock",
    "Watermarks",
    "choose_key",
    "connect",
    "derive_clocks",
    "order_stages",
    "to_input_specs",
]
