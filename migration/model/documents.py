"""JSON at the door: text that is no JSON is refused like any other wrong input."""

import json
from typing import Any

from migration.errors import InvalidInput


def parsed(text: str, refusal: type[InvalidInput]) -> Any:
    """The document in `text`, or `refusal`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as cause:
        raise refusal(f"not JSON: {cause}. Write documents with to_json().") from cause
