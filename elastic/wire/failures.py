"""Typed errors as JSON: a node's failure is raised on the driver as what it was, and nothing is unpickled."""

from typing import Any

from elastic import errors
from storage.errors import StorageError


def failure_to_json(error: BaseException) -> dict[str, Any]:
    """Return the type and message of an error, and those of its attributes that are JSON."""
    attributes = {
        name: value for name, value in vars(error).items() if isinstance(value, str | int | float | type(None))
    }
    is_own = isinstance(error, errors.ElasticError | StorageError)
    message = str(error) if is_own else f"{type(error).__name__}: {error}"
    return {"type": type(error).__name__, "message": message, "facts": attributes}


def failure_from_json(document: dict[str, Any]) -> errors.ElasticError:
    """Return the error again; an error of a type that is not the engine's own becomes an `ElasticError`."""
    kind = getattr(errors, document["type"], errors.ElasticError)
    if not (isinstance(kind, type) and issubclass(kind, errors.ElasticError)):
        kind = errors.ElasticError
    error = kind.__new__(kind)
    error.args = (document["message"],)
    vars(error).update(document["facts"])
    return error
