"""Table I of paper 001: messages, keys and the share of the heaviest key of every stream."""

from typing import NamedTuple

from elastic.experiments.paper001.lab import DRIFT, Lab
from elastic.experiments.results import Rows, format_number, format_table

PAPER = {
    "LN1": (16_000, 14.71),
    "LN2": (1_100, 7.01),
    "Zipf-WP": (2_900_000, 9.32),
    "Zipf-TW": (31_000_000, 2.67),
    DRIFT: (2_900, 3.29),
    "graph": (4_900_000, 0.29),
}


class DatasetRow(NamedTuple):
    """A stream, beside the one in the paper that it stands for; `most_workers`, 2 / p1, can share the heaviest key."""

    stream: str
    messages: int
    keys: int
    heaviest_percent: float
    most_workers: float
    paper_keys: int | None
    paper_heaviest_percent: float | None


def measure(lab: Lab) -> list[DatasetRow]:
    found = [lab.stream(name) for name in (*lab.stream_names, DRIFT)] + [lab.graph[0]]
    return [
        DatasetRow(
            stream.name,
            stream.messages,
            len(stream.hashes),
            100 * stream.heaviest_share,
            2 / stream.heaviest_share,
            *PAPER.get(stream.name, (None, None)),
        )
        for stream in found
    ]


def format_rows(rows: Rows) -> str:
    header = ["stream", "messages", "keys", "p1, %", "2 / p1", "paper: keys", "paper: p1, %"]
    lines = [
        [
            row.stream,
            f"{row.messages:,}",
            f"{row.keys:,}",
            format_number(row.heaviest_percent),
            format_number(row.most_workers, 1),
            format_number(row.paper_keys, 0),
            format_number(row.paper_heaviest_percent),
        ]
        for row in rows
    ]
    return format_table(header, lines)
