"""What a demo leaves behind: a table for the terminal, and a page for a browser that needs nothing but itself."""

import base64
import platform
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template

import pyspark
from rich.table import Table

import elastic
from examples.demo.diary import Diary
from examples.demo.proof import Proof
from examples.demo.responses import summary

_TEMPLATE = Path(__file__).with_name("report.html")
_HEADER = ("what", "batches", "median ms", "p90 ms", "worst ms")
_TOP = 12  # patterns shown


def table(diary: Diary) -> Table:
    """Response times before, during and after."""
    shown = Table(title="response times, from text to patterns", title_justify="left")
    for column in _HEADER:
        shown.add_column(column, justify="left" if column == _HEADER[0] else "right")
    for row in _rows(diary):
        shown.add_row(*row)
    return shown


def write(diary: Diary, proof: Proof, picture: Path, path: Path) -> Path:
    image = base64.b64encode(picture.read_bytes()).decode()
    last = diary.changes[-1].patterns if diary.changes else {}
    several = {pattern: texts for pattern, texts in last.items() if " " in pattern}  # a single word says little
    best = sorted(several.items(), key=lambda item: (-item[1], item[0]))[:_TOP]
    happened = [(episode.title, episode.said) for episode in diary.episodes if episode.said]
    page = Template(_TEMPLATE.read_text()).substitute(
        verdict="exact" if proof.holds else "wrong",
        proof=escape(str(proof)),
        picture=f"data:image/png;base64,{image}",
        responses=_html(_HEADER, _rows(diary)),
        happened=_html(("what", "what came of it"), happened),
        patterns=_html(("pattern", "texts"), ((name, str(count)) for name, count in best)),
        count=f"{len(last):,}",
        texts=f"{proof.texts:,}",
        versions=escape(
            f"spark-elastic {elastic.__version__}, Spark {pyspark.__version__}, Python {platform.python_version()}"
        ),
    )
    path.write_text(page)
    return path


def _rows(diary: Diary) -> Iterable[Sequence[str]]:
    for episode in diary.episodes:
        found = summary(diary, episode)
        if episode.kind != "warming":
            shown = [f"{value:,.0f}" for value in found[:3]] if found.batches else ["none"] * 3
            yield (episode.title, f"{found.batches}", *shown)


def _html(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
