"""Stored descriptions of jobs hold pickled operators, which refer to the classes of this package by module and name."""

from elastic import operators

MODULES = {
    "Aggregate": "aggregates.aggregate",
    "Context": "context",
    "CountByKey": "library",
    "DropDuplicates": "deduplicate",
    "Enrich": "joins.enrich",
    "IntervalJoin": "joins.stream_join",
    "KeyedColumns": "columns.keyed_columns",
    "KeyedOperator": "keyed",
    "Operator": "operator",
    "Side": "joins.sides",
    "Stage": "stages",
    "State": "operator",
    "StatelessOperator": "stateless",
    "Timer": "timers",
    "ToNext": "destinations",
    "ToSelf": "destinations",
    "ToSink": "destinations",
    "TopK": "top_k",
    "ValueState": "keyed",
    "WindowJoin": "joins.stream_join",
}


def test_classes_that_pickled_operators_use_stay_in_their_modules() -> None:
    assert {name: getattr(operators, name).__module__ for name in MODULES} == {
        name: f"elastic.operators.{module}" for name, module in MODULES.items()
    }
