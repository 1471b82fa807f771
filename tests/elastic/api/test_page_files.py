"""The page consists of its own files, and its colours can be distinguished."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import elastic.api
from tests.elastic.api.conftest import Client

PAGE = Path(elastic.api.__file__).parent / "page"
FILES = sorted(PAGE.iterdir())
THEMES = re.findall(r":root[^{]*\{(.*?)\}", (PAGE / "colours.css").read_text(), re.DOTALL)

# Machado, Oliveira and Fernandes (2009), severity 1: what a colour in linear RGB becomes.
SIGHTS = {
    "normal": np.eye(3),
    "protanopic": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopic": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
TO_LMS = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]]
)  # fmt: skip
TO_OKLAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip
Colour = NDArray[np.float64]


def linear(code: str) -> Colour:
    channels = np.array([int(code[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def oklab(colour: Colour) -> Colour:
    return np.asarray(TO_OKLAB @ np.cbrt(TO_LMS @ np.clip(colour, 0, 1)))


def contrast(one: Colour, other: Colour) -> float:
    """As WCAG 2 defines it."""
    low, high = sorted(float(colour @ [0.2126, 0.7152, 0.0722]) + 0.05 for colour in (one, other))
    return high / low


def variables(theme: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", theme))


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
def test_the_colours_of_sixteen_nodes_differ_from_the_background_and_from_each_other(theme: str) -> None:
    known = variables(theme)
    nodes = [linear(known[f"node-{number}"]) for number in range(1, 17)]
    assert min(contrast(node, linear(known["ground"])) for node in nodes) >= 3
    for sight in SIGHTS.values():
        seen = [oklab(sight @ node) for node in nodes]
        assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)) > 0.06


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
def test_text_has_enough_contrast(theme: str) -> None:
    known = variables(theme)
    for ground in ("ground", "card"):
        for text in ("text", "soft", "accent", "good", "warn", "bad"):
            assert contrast(linear(known[text]), linear(known[ground])) >= 4.5, (text, ground)
    assert contrast(linear(known["on-accent"]), linear(known["accent"])) >= 4.5


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_of_the_page_loads_nothing_from_other_servers(file: Path) -> None:
    text = file.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    assert not re.search(r"localStorage|sessionStorage|document\.cookie", text)
    if file.suffix == ".html":
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", text)


def test_every_file_is_served_with_its_type(client: Client) -> None:
    types = {".html": "text/html", ".css": "text/css", ".js": "javascript", ".svg": "image/svg+xml"}
    for file in FILES:
        answer = client.get(f"/page/{file.name}")
        assert answer.status_code == 200
        assert types[file.suffix] in answer.headers["content-type"]
    assert client.get("/").text == (PAGE / "index.html").read_text()
    assert client.get("/page/..%2fserver.py").status_code == 404


def test_every_id_that_a_script_uses_is_in_the_page_or_created_by_a_script() -> None:
    html = (PAGE / "index.html").read_text()
    scripts = "".join(file.read_text() for file in FILES if file.suffix == ".js")
    there = set(re.findall(r'\bid="([\w-]+)"', html)) | set(re.findall(r'\bid: "([\w-]+)"', scripts))
    assert set(re.findall(r'(?:byId|getElementById)\("([\w-]+)"\)', scripts)) <= there
