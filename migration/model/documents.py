"""Parse JSON documents; invalid ones raise the same error as any other invalid input."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from migration.errors import InvalidInput


def parse_json(text: str, error: type[InvalidInput]) -> Any:
    """Parse `text`; raise `error` if it is no JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as cause:
        raise error(f"not JSON: {cause}. Write documents with to_json().") from cause


@contextmanager
def refuse_malformed(kind: str, error: type[InvalidInput]) -> Iterator[None]:
    """Raise `error` instead of what reading a field raises that is missing or has another type."""
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError) as cause:
        if isinstance(cause, InvalidInput):
            raise
        raise error(f"not {kind} document: {cause!r}. Write documents with to_json().") from cause
