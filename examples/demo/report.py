"""The report of a demo: a table for the terminal, and a self-contained HTML page."""

import base64
import platform
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template

import pyspark
from rich.table import Table

import elastic
from examples.demo.proof import Proof
from examples.demo.response_times import summarise
from examples.demo.timeline import Timeline

_TEMPLATE = Path(__file__).with_name("report.html")
_HEADER = ("step", "batches", "median ms", "p90 ms", "max ms")
_STANDBYS = (
    "Every task has a standby on another node, which follows its batches. When a node is lost, its standbys become the "
    "owners; when it is back, it follows them, and roles switch back without moving state."
)
_TOP = 12  # patterns shown


def to_table(timeline: Timeline) -> Table:
    """Return a table of the response times of each step."""
    table = Table(title="response times, from text to patterns", title_justify="left")
    for column in _HEADER:
        table.add_column(column, justify="left" if column == _HEADER[0] else "right")
    for row in _rows(timeline):
        table.add_row(*row)
    return table


def write(timeline: Timeline, proof: Proof, picture: Path, path: Path) -> Path:
    image = base64.b64encode(picture.read_bytes()).decode()
    last = timeline.changes[-1].patterns if timeline.changes else {}
    several = {pattern: texts for pattern, texts in last.items() if " " in pattern}  # single words are less interesting
    best = sorted(several.items(), key=lambda item: (-item[1], item[0]))[:_TOP]
    steps = [(period.title, period.summary) for period in timeline.periods if period.summary]
    page = Template(_TEMPLATE.read_text()).substitute(
        standbys=_STANDBYS if timeline.has_standbys else "",
        verdict="exact" if proof.holds else "wrong",
        proof=escape(str(proof)),
        picture=f"data:image/png;base64,{image}",
        responses=_html(_HEADER, _rows(timeline)),
        steps=_html(("step", "result"), steps),
        patterns=_html(("pattern", "texts"), ((name, str(count)) for name, count in best)),
        count=f"{len(last):,}",
        texts=f"{proof.texts:,}",
        versions=escape(
            f"spark-elastic {elastic.__version__}, Spark {pyspark.__version__}, Python {platform.python_version()}"
        ),
    )
    path.write_text(page)
    return path


def _rows(timeline: Timeline) -> Iterable[Sequence[str]]:
    for period in timeline.periods:
        found = summarise(timeline, period)
        if period.kind != "warming":
            cells = [f"{value:,.0f}" for value in found[:3]] if found.batches else ["none"] * 3
            yield (period.title, f"{found.batches}", *cells)


def _html(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
