"""Access control: tokens and allowed hosts."""

import pytest

from elastic.api.access import AllowedHosts, Token, is_loopback
from elastic.api.errors import TokenRequired, WeakToken

SECRET = "sixteen-letters-or-more"  # noqa: S105


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_a_token_is_generated_for_loopback(host: str) -> None:
    assert is_loopback(host)
    assert len(Token.for_host(host, None).secret) >= 40
    assert Token.for_host(host, None).secret != Token.for_host(host, None).secret


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.org", "localhost.example.org"])  # noqa: S104
def test_beyond_loopback_the_token_must_be_given(host: str) -> None:
    with pytest.raises(TokenRequired):
        Token.for_host(host, None)
    assert Token.for_host(host, SECRET).secret == SECRET


@pytest.mark.parametrize(
    "secret", ["", "short", "with spaces in it all", "with\nnewlines-in-it-all", "ünprintable-in-a-header"]
)
def test_a_token_that_is_weak_or_invalid_in_a_header_is_refused(secret: str) -> None:
    with pytest.raises(WeakToken):
        Token.for_host("127.0.0.1", secret)


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (f"Bearer {SECRET}", True),
        (f"bearer  {SECRET} ", True),
        (SECRET, False),
        (f"Basic {SECRET}", False),
        (f"Bearer {SECRET}x", False),
        (f"Bearer {SECRET[:-1]}", False),
        ("Bearer", False),
        ("", False),
        (None, False),
    ],
)
def test_only_the_whole_token_matches(header: str | None, allowed: bool) -> None:
    assert Token(SECRET).matches(header.encode() if header is not None else None) is allowed


def test_the_repr_of_a_token_does_not_contain_it() -> None:
    assert SECRET not in f"{Token(SECRET)!r} {Token(SECRET)}"


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        ("127.0.0.1:8080", True),
        ("localhost:1", True),
        ("LocalHost", True),
        ("[::1]:8080", True),
        ("spark.example.org:8080", True),
        ("evil.example.org", False),
        ("localhost.evil.example.org", False),
        ("192.168.0.7:8080", False),
        ("", False),
        ("[", False),
    ],
)
def test_on_loopback_only_names_of_this_machine_are_allowed(header: str, allowed: bool) -> None:
    assert AllowedHosts("127.0.0.1", ["spark.example.org"]).allows(header) is allowed


@pytest.mark.parametrize(
    ("header", "allowed"),
    [("192.168.0.7:8080", True), ("[fe80::1]:80", True), ("driver.example.org", True), ("evil.example.org", False)],
)
def test_beyond_loopback_addresses_and_known_names_are_allowed(header: str, allowed: bool) -> None:
    """DNS rebinding works with names only, not with addresses."""
    assert AllowedHosts("driver.example.org").allows(header) is allowed
