"""Which names objects may have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import InvalidStorageInput
from storage.stores.keys import check_key, check_prefix, to_key_segment

segments = st.from_regex(r"[A-Za-z0-9_=-]{1,12}", fullmatch=True)
extensions = st.from_regex(r"(\.[A-Za-z0-9_-]{1,5}){1,2}", fullmatch=True)
keys = st.builds(
    lambda folders, name, extension: "/".join([*folders, name + extension]), st.lists(segments), segments, extensions
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(key=keys)
def test_a_key_and_each_of_its_beginnings_are_accepted(key: str) -> None:
    assert check_key(key) == key
    for end in range(len(key) + 1):
        assert check_prefix(key[:end]) == key[:end]


@given(key=keys, rest=keys)
def test_no_key_is_the_folder_of_another(key: str, rest: str) -> None:
    with pytest.raises(InvalidStorageInput):
        check_key(f"{key}/{rest}")


@given(text=st.text(max_size=20))
def test_what_is_accepted_holds_nothing_that_a_store_could_misread(text: str) -> None:
    try:
        check_key(text)
    except InvalidStorageInput:
        return
    assert text.isascii()
    assert not set(text) & set(" \\%?#&:*\"'<>|~")
    assert all(part and not part.startswith(".") and not part.endswith(".") for part in text.split("/"))


@pytest.mark.parametrize(
    "key",
    [
        "",
        ".",
        "..",
        "a",
        "a.",
        ".a",
        "a/",
        "/a.b",
        "a//b.c",
        "a/../b.c",
        "a.b/c.d",
        "a b.c",
        "a\n.b",
        "a.b\n",
        "a..b",
        None,
        7,
    ],
)
def test_other_names_are_refused_with_how_to_write_one(key: object) -> None:
    with pytest.raises(InvalidStorageInput, match=r"folder/name\.extension"):
        check_key(key)  # type: ignore[arg-type]


def test_a_key_fits_into_every_store() -> None:
    longest = "/".join(["f" * 199] * 4) + "/" + "n" * 96 + ".bin"
    assert len(longest) == 900
    assert check_key(longest) == longest
    for too_long in ("f" + longest, "n" * 197 + ".bin", "f" * 201 + "/a.bin"):
        with pytest.raises(InvalidStorageInput):
            check_key(too_long)


@pytest.mark.parametrize("prefix", ["/", "//", "a//", "a.b/", "a/../", "a b", "a\n", "f" * 901, None])
def test_what_begins_no_key_is_no_prefix(prefix: object) -> None:
    with pytest.raises(InvalidStorageInput, match="beginning of a key"):
        check_prefix(prefix)  # type: ignore[arg-type]


@given(name=names)
def test_any_name_can_be_a_part_of_a_key(name: str) -> None:
    assert check_key(f"{to_key_segment(name)}/a.bin")
    assert check_key(f"{to_key_segment(name)}.bin")


@given(one=names, other=names)
def test_different_names_are_different_parts(one: str, other: str) -> None:
    assert (to_key_segment(one) == to_key_segment(other)) == (one == other)


def test_plain_names_stay_readable() -> None:
    assert to_key_segment("word-count_2") == "word-count_2"
    assert to_key_segment("word count/ä=") == "word=20count=2f=c3=a4=3d"


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_a_name_without_whole_characters_is_refused(name: str) -> None:
    with pytest.raises(InvalidStorageInput, match="cannot be part of a key"):
        to_key_segment(name)
