"""Options, parameter types, choices and defaults that commands share.

Choices and defaults of packages that load the compiler are copied here, so that help and completion start fast. A test
compares the copies with their originals.
"""

from typing import Any

import click

from elastic.durations import parse_duration_ms
from elastic.errors import InvalidSetting

STRATEGIES = ("ssm", "mtm", "even", "consistent-hash")  # migration.STRATEGIES
# migration.keys.KEY_STRATEGIES
KEY_STRATEGIES = (
    *("knap", "mixed", "mixed-bf", "min-mig", "min-table", "llfd", "simple", "readj"),
    *("switch-first", "ftlb", "task-b"),
)
METHODS = ("auto", "exact", "approximate")  # mdp.projection.METHODS
PAPER000_EXPERIMENTS = (
    *(f"figure{number}" for number in range(7, 13)),
    *(f"figure{number}" for number in range(17, 22)),
)  # elastic.experiments.paper000.EXPERIMENTS
PAPER000_ENGINE_EXPERIMENTS = ("figure13", "figure14", "figure15", "figure16")  # elastic.experiments.paper000.engine
PAPER001_EXPERIMENTS = (
    *("table1", "table2", "figure2", "figure3", "figure4", "figure5a", "figure5b", "memory", "speed"),
)  # elastic.experiments.paper001.EXPERIMENTS
PAPER001_ENGINE_EXPERIMENTS = ("splitting",)  # elastic.experiments.paper001.engine
PAPER002_EXPERIMENTS = (
    *("figure7", "figure8", "figure9", "nodes", "fluctuation", "share", "standbys", "service-level", "second-hash"),
)  # elastic.experiments.paper002.EXPERIMENTS
PAPER002_ENGINE_EXPERIMENTS = ("figure10", "figure11")  # elastic.experiments.paper002.engine
PAPER003_EXPERIMENTS = ("figure9", "figure10", "figure11", "figure12", "figure14", "quality")
PAPER004_EXPERIMENTS = (*(f"figure{number}" for number in range(4, 13)), "senders")
PAPER004_ENGINE_EXPERIMENTS = ("completion", "overhead")  # elastic.experiments.paper004.engine
GAMMA = 0.8  # mdp.process.DEFAULT_GAMMA
ERROR = 0.002  # mdp.exact.DEFAULT_ERROR
MAX_PARTITIONS = 6_000_000  # mdp.projection.MOST_PARTITIONS

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


class Duration(click.ParamType[float]):
    """A duration in seconds, or with a unit: 90s, 15m, 1h, 1d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return parse_duration_ms(str(value), self.name, default_unit="s") / 1_000
        except InvalidSetting:
            self.fail(f"expected a duration such as 3600, 90s, 15m, 1h or 1d, got {value!r}.", param, ctx)


class NameValue(click.ParamType[tuple[str, str]]):
    """NAME=VALUE"""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not name or not equals:
            self.fail(f"expected NAME=VALUE, got {name!r}.", param, ctx)
        return name, text
