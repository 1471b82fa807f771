"""Signatures on the network with the secret of a job: the token of every call, and values inside JSON messages."""

import base64
import hashlib
import hmac
from typing import Any

from storage import Secret
from storage.codec import pack, unpack

_KEY = "wire/value"


def wire_token(secret: Secret, life: str) -> str:
    """Return the token of one run of a job; processes of an earlier run do not have it."""
    return hmac.new(secret.reveal(), f"spark-elastic wire {life}".encode(), hashlib.sha256).hexdigest()


def seal(value: Any, secret: Secret) -> str:
    """Return any Python value as signed text."""
    # In a tuple, so that None and other small things are values like any other.
    return base64.b64encode(bytes(pack({"value": (value,)}, key=_KEY, secret=secret))).decode()


def unseal(text: str, secret: Secret) -> Any:
    """Return the value of a signed text; a text that the secret did not sign is refused before it is unpickled."""
    return unpack(base64.b64decode(text), key=_KEY, secret=secret).parts["value"][0]
