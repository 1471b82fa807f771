"""The defaults of requests are the same in Python, in the API, on the command line and on the page."""

import inspect
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import BaseModel

import elastic.api
from elastic.api.inputs import BalanceQuery, PlanQuery, RebalanceBody, ScaleBody
from elastic.cli import scaling
from elastic.control import LEVELS, MODES, TRANSFERS, KeyRequest, ScaleRequest, make_requests
from elastic.job.job import Job
from mdp.process import DEFAULT_TAU

DEFAULTS = {option.name: option.default for option in fields(ScaleRequest) if option.default is not MISSING}
# As the API and the command line name them; `bytes_per_node` and `relax` are options of both requests there.
KEY_DEFAULTS = {
    "theta": KeyRequest.theta,
    "key_strategy": KeyRequest.strategy,
    "most_entries": KeyRequest.most_entries,
    "stage": KeyRequest.stage,
}
TARGET = {"nodes", "add", "remove"}
PAGE = Path(elastic.api.__file__).parent / "page"


def normalise(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value


def test_the_method_of_a_job_has_the_defaults() -> None:
    parameters = inspect.signature(Job.scale).parameters
    assert DEFAULTS.keys() <= parameters.keys()
    assert {name: normalise(parameters[name].default) for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (ScaleBody, DEFAULTS.keys()),
        (RebalanceBody, DEFAULTS.keys() - TARGET),
        (PlanQuery, {*TARGET, "tau", "relax", "mode"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_inputs_of_the_api_have_the_defaults(model: type[BaseModel], names: set[str]) -> None:
    found = {name: normalise(field.default) for name, field in model.model_fields.items() if name in DEFAULTS}
    found = {name: default for name, default in found.items() if (model, name) != (PlanQuery, "strategy")}
    assert found == {name: DEFAULTS[name] for name in names}


@pytest.mark.parametrize("model", [RebalanceBody, BalanceQuery])
def test_the_inputs_of_the_api_have_the_defaults_of_keys(model: type[BaseModel]) -> None:
    found = {name: field.default for name, field in model.model_fields.items()}
    assert {name: found[name] for name in KEY_DEFAULTS} == KEY_DEFAULTS
    assert found["relax"] == KeyRequest.relax == ScaleRequest.relax
    assert found.get("level", "tasks") == inspect.signature(Job.rebalance).parameters["level"].default


@pytest.mark.parametrize("level", LEVELS)
def test_a_body_without_options_is_the_default_request(level: str) -> None:
    arguments = RebalanceBody.model_validate({"level": level}).to_arguments()
    assert arguments.pop("level") == level
    if level == "tasks":
        assert ScaleRequest(**arguments) == ScaleRequest()
    elif level == "keys":
        assert KeyRequest(**arguments) == KeyRequest()
    else:
        assert make_requests(arguments) == (ScaleRequest(tau=KeyRequest.theta), KeyRequest())


@pytest.mark.parametrize("command", [scaling.scale, scaling.rebalance, scaling.plan], ids=lambda command: command.name)
def test_the_options_of_the_command_line_have_the_defaults(command: click.Command) -> None:
    context = command.make_context(command.name, [])
    found = {name: value for name, value in context.params.items() if name in DEFAULTS}
    assert found == {name: DEFAULTS[name] for name in found}
    keys = {name: value for name, value in context.params.items() if name in KEY_DEFAULTS}
    assert keys == ({} if command is scaling.scale else KEY_DEFAULTS)
    if command is not scaling.plan:
        assert {"strategy", "tau", "relax", "mode", "transfer", "tasks_per_node"} <= found.keys()


def test_the_page_has_the_defaults() -> None:
    html, script = (PAGE / "index.html").read_text(), (PAGE / "plans.js").read_text()
    inputs = {found[1]: found[0] for found in re.finditer(r'<input id="([\w-]+)"[^>]*>', html)}
    assert f'value="{ScaleRequest.tau:g}"' in inputs["tau"]
    assert f'value="{ScaleRequest.tasks_per_node}"' in inputs["tasks-per-node"]
    assert ("checked" in inputs["relax"]) == ScaleRequest.relax
    assert f'value="{KeyRequest.theta:g}"' in inputs["theta"]
    assert f'value="{KeyRequest.most_entries}"' in inputs["most-entries"]
    for constant, known in (("MODES", MODES), ("TRANSFERS", TRANSFERS)):
        listed = re.search(rf"const {constant} = \[(.*?)\]", script)
        assert listed is not None
        assert re.findall(r'"(\w+)"', listed[1]) == [*known]
    assert (next(iter(MODES)), next(iter(TRANSFERS))) == (ScaleRequest.mode, ScaleRequest.transfer)


def test_projections_and_plans_have_the_same_tolerance() -> None:
    assert ScaleRequest.tau == DEFAULT_TAU
