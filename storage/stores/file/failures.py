"""What the operating system says, as the typed errors of this package."""

import errno
from collections.abc import Mapping

from storage.errors import StorageError, StoreFull, StoreRefused, StoreTimeout, StoreUnavailable

_PERMISSIONS = "Give this process's user the right to read and write the folder, or choose another folder."
_ABILITIES = "Choose a folder on a file system that has locks, hard links and times to the microsecond."

# What trying again does not help against. Anything else may pass: StoreUnavailable.
_REFUSALS: Mapping[int | None, tuple[type[StoreRefused], str]] = {
    errno.ENOSPC: (StoreFull, "Free some space; nothing that was stored before is harmed."),
    errno.EDQUOT: (StoreFull, "Free some space or raise the quota; nothing that was stored before is harmed."),
    errno.EFBIG: (StoreRefused, "Raise the limit on the size of files (ulimit -f), or store smaller objects."),
    errno.EACCES: (StoreRefused, _PERMISSIONS),
    errno.EPERM: (StoreRefused, _PERMISSIONS),
    errno.EROFS: (StoreRefused, _PERMISSIONS),
    errno.ENOTDIR: (StoreRefused, "Choose another folder, or move away the file that is in its place."),
    errno.ENOTSUP: (StoreRefused, _ABILITIES),
    errno.ENOSYS: (StoreRefused, _ABILITIES),
    errno.ENOLCK: (StoreRefused, _ABILITIES),
    errno.ESHUTDOWN: (StoreRefused, "Open the store again."),
}


def typed(failure: OSError, store: str, operation: str, key: str) -> StorageError:
    """The error to raise for it."""
    reason = failure.strerror or str(failure)
    if isinstance(failure, TimeoutError):
        return StoreTimeout(store, operation, key, reason)
    if failure.errno not in _REFUSALS:
        return StoreUnavailable(store, operation, key, reason)
    error, advice = _REFUSALS[failure.errno]
    return error(store, operation, key, reason, advice)
