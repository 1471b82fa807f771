"""Matrices in files and stores."""

from pathlib import Path

import pytest

import storage
from mdp.errors import InvalidMatrix
from mdp.learning import HourlyMatrices, learn, load_learned, load_matrix, save_matrix

MATRIX = learn([8, 9, 8, 10, 9], 8, 12, origin={"source": "a test"})
HOURLY = HourlyMatrices(MATRIX, [None] * 23 + [MATRIX])


def places(folder: Path) -> list[str | Path]:
    return [
        folder / "new" / "matrix.json",
        str(folder / "matrix.json"),
        (folder / "store" / "matrix.json").as_uri(),
        "memory:saving/matrix.json",
    ]


@pytest.mark.parametrize("number", range(4))
def test_what_is_saved_comes_back_with_its_origin(number: int, tmp_path: Path) -> None:
    place = places(tmp_path)[number]
    save_matrix(MATRIX, place)
    assert load_matrix(place) == load_learned(place) == MATRIX
    assert load_matrix(place).origin["source"] == "a test"
    save_matrix(HOURLY, place)
    assert load_learned(place) == HOURLY
    assert load_matrix(place) == MATRIX


def test_a_place_in_a_store_names_the_store_and_the_object() -> None:
    save_matrix(MATRIX, "memory:saving/tweets.json")
    assert "tweets.json" in [entry.key for entry in storage.open("memory:saving").list()]


@pytest.mark.parametrize("place", ["nowhere/matrix.json", "memory:saving/nothing.json"])
def test_a_matrix_that_is_not_there_is_refused(place: str) -> None:
    with pytest.raises(InvalidMatrix, match="there is no matrix"):
        load_matrix(place)


@pytest.mark.parametrize("place", ["memory:saving", "s3://bucket/prefix", "file:///folder/"])
def test_a_store_without_a_name_is_refused(place: str) -> None:
    with pytest.raises(InvalidMatrix, match="names no matrix"):
        save_matrix(MATRIX, place)


@pytest.mark.parametrize("text", ["", "[]", "{}", MATRIX.to_json().replace("0.5", "0.7"), MATRIX.to_json()[:-9]])
def test_a_damaged_matrix_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "matrix.json").write_text(text)
    with pytest.raises(InvalidMatrix):
        load_matrix(tmp_path / "matrix.json")
