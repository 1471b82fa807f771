"""Parse JSON documents; invalid JSON raises the same error as any other invalid input."""

import json
from typing import Any

from migration.errors import InvalidInput


def parse_json(text: str, error: type[InvalidInput]) -> Any:
    """Parse `text`; raise `error` if it is no JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as cause:
        raise error(f"not JSON: {cause}. Write documents with to_json().") from cause
