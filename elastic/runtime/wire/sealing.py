"""Any Python value as signed text inside a JSON message; what is not signed with the secret is never rebuilt."""

import base64
from typing import Any

from storage import Secret
from storage.codec import pack, unpack

_PLACE = "wire/value"


def sealed(value: Any, secret: Secret) -> str:
    # In a tuple, so that None and other small things are values like any other.
    return base64.b64encode(bytes(pack({"value": (value,)}, key=_PLACE, secret=secret))).decode()


def unsealed(text: str, secret: Secret) -> Any:
    return unpack(base64.b64decode(text), key=_PLACE, secret=secret).parts["value"][0]
