"""All jobs of one server, by name."""

from collections.abc import Sequence

from elastic.api.errors import NotServed
from elastic.api.port import ServedJob
from elastic.api.watcher import Watcher
from elastic.errors import NameTaken


class Board:
    """A watcher for each job."""

    def __init__(self, jobs: Sequence[ServedJob]) -> None:
        self._watchers: dict[str, Watcher] = {}
        for job in jobs:
            if job.name in self._watchers:
                raise NameTaken(job.name)
            self._watchers[job.name] = Watcher(job)

    @property
    def watchers(self) -> list[Watcher]:
        return list(self._watchers.values())

    def find(self, name: str) -> Watcher:
        try:
            return self._watchers[name]
        except KeyError:
            raise NotServed(name, self._watchers) from None

    def start(self) -> None:
        for watcher in self.watchers:
            watcher.start()

    def stop(self) -> None:
        for watcher in self.watchers:
            watcher.stop()
