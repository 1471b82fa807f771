"""Stored descriptions of jobs hold pickled operators, which refer to the classes of this package by module and name."""

from elastic import operators

MODULES = {
    "Context": "context",
    "CountByKey": "library",
    "KeyedColumns": "columns.keyed_columns",
    "KeyedOperator": "keyed",
    "Operator": "operator",
    "Stage": "stages",
    "State": "operator",
    "StatelessOperator": "stateless",
    "Timer": "timers",
    "ToNext": "destinations",
    "ToSelf": "destinations",
    "ToSink": "destinations",
    "ValueState": "keyed",
}


def test_classes_that_pickled_operators_use_stay_in_their_modules() -> None:
    assert {name: getattr(operators, name).__module__ for name in MODULES} == {
        name: f"elastic.operators.{module}" for name, module in MODULES.items()
    }
