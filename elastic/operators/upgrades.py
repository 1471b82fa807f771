"""Upgrades of stored state: an operator of a new version reads what an older one stored."""

from typing import Any

from elastic.errors import UpgradeFailed
from elastic.operators.keyed import KeyedOperator
from elastic.operators.operator import Operator
from elastic.operators.quarantine import format_traceback

VERSION = "version"  # of the operator, in the metadata of a stored state


def upgrade(operator: Operator, value: Any, before: str, name: str, where: str) -> Any:
    """Return a value that version `before` of an operator stored in the form of this version; `where` names the unit.

    Key by key for a `KeyedOperator`, in the order of the keys. Raises `UpgradeFailed`.
    """
    if operator.stateless:
        return value
    key: str | None = None
    try:
        if not isinstance(operator, KeyedOperator):
            return operator.upgrade(before, value)
        upgraded = {}
        for one, entry in value.items():
            key = repr(one)
            upgraded[one] = operator.upgrade(before, entry)
    except MemoryError:
        raise
    except Exception as error:  # a user's operator may raise anything
        raise UpgradeFailed(name, where, before, operator.version, format_traceback(error), key) from error
    return upgraded
