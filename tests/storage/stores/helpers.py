"""Reading one object, and many writers at once, in threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from storage.errors import AlreadyExists
from storage.stores import Store

WRITERS = 8


def bytes_at(store: Store, key: str) -> bytes:
    return bytes(store.get(key))


def won(write: Callable[..., None], *arguments: object) -> bool:
    """Whether a conditional write went through."""
    try:
        write(*arguments)
    except AlreadyExists:
        return False
    return True


def winners(attempt: Callable[[int], bool]) -> list[int]:
    """Which of the writers won; all start at the same moment, each in a thread."""
    start = Barrier(WRITERS)

    def run(writer: int) -> bool:
        start.wait(10)
        return attempt(writer)

    with ThreadPoolExecutor(WRITERS) as threads:
        return [writer for writer, success in enumerate(threads.map(run, range(WRITERS))) if success]
