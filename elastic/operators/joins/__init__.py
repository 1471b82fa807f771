"""Joins of two inputs that come as one stream, in which a column names the input of each row."""

from elastic.operators.joins.enrich import Enrich
from elastic.operators.joins.sides import Side
from elastic.operators.joins.stream_join import IntervalJoin, WindowJoin

__all__ = ["Enrich", "IntervalJoin", "Side", "WindowJoin"]
