"""Every error of this package: typed, with its facts as attributes, and with advice at the end of the message.

StorageError
├── InvalidStorageInput (also a ValueError)   a URL, key, unit or setting that cannot be right
│   └── UnstorableState                       a state that no codec can turn into bytes
├── ObjectMissing                             there is no object under the key
├── AlreadyExists                             put_if_absent lost: another writer was first
├── StoreUnavailable                          the store failed all attempts; try again later
│   └── StoreTimeout                          it did not answer in time
├── StoreRefused                              the store refuses the call: retrying does not help
│   ├── StoreFull                             no space left
│   └── FolderNotOwned                        the folder of a file store belongs to another user
├── BadObject                                 the object exists, but its bytes must not be used
│   ├── DamagedObject                         truncated, or with flipped bits
│   ├── ForeignObject                         not signed with this application's secret, or signed for another key
│   └── NewerFormat                           written by a later version of this package
├── UnloadableState                           the bytes are undamaged, but this process cannot rebuild the state
├── NotOwner                                  another driver has committed since: this one must stop
├── OperatorInUse                             a driver owns the operator, and has not recorded its end
├── UnknownOperator                           the store has no manifest of that operator
├── LeaseClosed                               the lease under which a state was saved is closed
└── TransferFailed                            some units of many could not be loaded
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class StorageError(Exception):
    """Base of all errors of this package.

    A pickled or copied error keeps its message and its attributes: nodes send errors to the driver.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the message alone, which the constructors here do not accept.
        return _rebuild, (type(self), self.args), self.__dict__


class InvalidStorageInput(StorageError, ValueError):
    """An invalid argument; nothing was changed."""


class UnstorableState(InvalidStorageInput):
    """A state that no codec can turn into bytes."""

    def __init__(self, key: str, part: str, kind: type, cause: BaseException) -> None:
        self.key = key
        self.part = part
        self.kind = f"{kind.__module__}.{kind.__qualname__}"  # the receiver may not have the class
        super().__init__(
            f"part {part!r} of {key!r}, a {self.kind}, cannot become bytes: {cause}. "
            "Keep locks, connections and generators out of it, or give its class __getstate__ and __setstate__."
        )


class _ObjectError(StorageError):
    """Base of errors about the object under a key; `template` is the message."""

    template: ClassVar[str]

    def __init__(self, store: str, key: str) -> None:
        self.store = store
        self.key = key
        super().__init__(self.template.format(store=store, key=key))


class ObjectMissing(_ObjectError):
    """There is no object under the key."""

    template = "{store} has no object {key!r}: it was deleted or never written. Check the operator's name."


class AlreadyExists(_ObjectError):
    """`put_if_absent` found an object: another writer was first."""

    template = "{key!r} is already in {store}: another writer was first. Read it and decide."


class StoreUnavailable(StorageError):
    """The store failed all attempts; whether a write happened is unknown."""

    def __init__(self, store: str, operation: str, key: str, reason: str, attempts: int = 1) -> None:
        self.store = store
        self.operation = operation
        self.key = key
        self.attempts = attempts
        self.reason = reason
        tried = "once" if attempts == 1 else f"{attempts} times"
        super().__init__(
            f"{store} did not {_name_call(operation, key)}, tried {tried}: {reason}. "
            "Check that the store is up; then try again."
        )


class StoreTimeout(StoreUnavailable):
    """The store did not answer in time."""


class StoreRefused(StorageError):
    """The store refuses the call, and would again: wrong credentials, no permission, a clock too far off."""

    def __init__(self, store: str, operation: str, key: str, reason: str, advice: str) -> None:
        self.store = store
        self.operation = operation
        self.key = key
        self.reason = reason
        super().__init__(f"{store} refuses to {_name_call(operation, key)}: {reason}. {advice}")


class StoreFull(StoreRefused):
    """No space is left; nothing that was stored before is harmed."""


class FolderNotOwned(StoreRefused):
    """The folder of a file store belongs to another user, who could read, replace or delete what a job stores there."""

    def __init__(self, store: str, owner: str, user: str) -> None:
        self.owner = owner
        self.user = user
        super().__init__(
            store,
            "open",
            "",
            f"the folder belongs to {owner}, and this process runs as {user}",
            f"Run it as {owner}, choose another folder, or change the owner with chown -R; where several users must "
            'share a store, open it with store_settings={"shared": True}.',
        )


class BadObject(StorageError):
    """The bytes of an object must not be used; nothing of them was unpickled."""

    def __init__(self, key: str, reason: str, advice: str) -> None:
        self.key = key
        self.reason = reason
        super().__init__(f"refused object {key!r}: {reason}. {advice}")


class DamagedObject(BadObject):
    """Truncated, half-written, or with flipped bits."""


class ForeignObject(BadObject):
    """Not signed with this application's secret, or signed for another key."""


class NewerFormat(BadObject):
    """Written by a later version of this package."""


class UnloadableState(StorageError):
    """The bytes are undamaged, but this process cannot rebuild the state from them."""

    def __init__(self, key: str, part: str, cause: BaseException) -> None:
        self.key = key
        self.part = part
        super().__init__(
            f"part {part!r} of {key!r} is undamaged, but cannot be rebuilt here: {type(cause).__name__}: {cause}. "
            "Install the same application code on every node."
        )


class NotOwner(StorageError):
    """Another driver has committed a manifest since: this one must stop."""

    def __init__(self, operator: str, mine: int, theirs: int) -> None:
        self.operator = operator
        self.mine = mine
        self.theirs = theirs
        super().__init__(
            f"manifest {theirs} of operator {operator!r} was committed by another driver; this one knows {mine}. "
            "Stop this driver, and run each operator once."
        )


class OperatorInUse(StorageError):
    """A driver owns the operator and has not recorded its end: it runs, or was killed."""

    def __init__(self, operator: str, driver_id: str, number: int) -> None:
        self.operator = operator
        self.driver_id = driver_id
        self.number = number
        super().__init__(
            f"operator {operator!r} belongs to driver {driver_id}, which committed manifest {number} and has not "
            "recorded its end. Stop the job; if its driver was killed, start and stop it once more, or fence it off "
            "(fence=True, --fence)."
        )


class UnknownOperator(StorageError):
    """The store has no manifest of that operator."""

    def __init__(self, operator: str, store: str) -> None:
        self.operator = operator
        self.store = store
        super().__init__(f"{store} has no operator {operator!r}. Check the name and the store.")


class LeaseClosed(StorageError):
    """The lease under which a state was saved is closed."""

    def __init__(self, lease: str) -> None:
        self.lease = lease
        super().__init__(f"lease {lease!r} is closed. Open a new lease, and save again under it.")


class TransferFailed(StorageError):
    """Some units failed; those that succeeded are in `succeeded`."""

    def __init__(self, reasons: Mapping[Any, BaseException], succeeded: Mapping[Any, Any]) -> None:
        self.reasons = dict(reasons)
        self.succeeded = dict(succeeded)
        named = "; ".join(f"{unit}: {_format(reason)}" for unit, reason in list(self.reasons.items())[:5])
        more = len(self.reasons) - 5
        super().__init__(
            f"{len(self.reasons)} of {len(self.reasons) + len(self.succeeded)} units failed: {named}"
            + (f"; and {more} more (see .reasons)" if more > 0 else "")
            + " Load the failed units again; the others are in .succeeded."
        )


def _rebuild(kind: type[StorageError], args: tuple[Any, ...]) -> StorageError:
    return kind.__new__(kind, *args)


def _name_call(operation: str, key: str) -> str:
    """Return a call in words; opening a store has no key."""
    return f"{operation} {key!r}" if key else operation


def _format(reason: BaseException) -> str:
    return f"{type(reason).__name__}: {reason}" if str(reason) else type(reason).__name__
