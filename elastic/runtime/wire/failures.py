"""Typed errors as JSON: a node's failure is raised on the driver as what it was, and nothing is unpickled."""

from typing import Any

from elastic import errors
from storage.errors import StorageError


def failure_to_json(error: BaseException) -> dict[str, Any]:
    """Its type, message and those facts that are JSON."""
    facts = {name: value for name, value in vars(error).items() if isinstance(value, str | int | float | type(None))}
    ours = isinstance(error, errors.ElasticError | StorageError)
    message = str(error) if ours else f"{type(error).__name__}: {error}"
    return {"type": type(error).__name__, "message": message, "facts": facts}


def failure_from_json(document: dict[str, Any]) -> errors.ElasticError:
    """The same error again; one of a type that is not the engine's own comes back as the base of ours."""
    kind = getattr(errors, document["type"], errors.ElasticError)
    if not (isinstance(kind, type) and issubclass(kind, errors.ElasticError)):
        kind = errors.ElasticError
    error = kind.__new__(kind)
    error.args = (document["message"],)
    vars(error).update(document["facts"])
    return error
