"""The jobs of one server by name, and the dependencies through which routes find them."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Path, Request

from elastic.api.errors import UnknownJob
from elastic.api.metrics import create_response_histogram
from elastic.api.served_job import ServedJob
from elastic.api.watcher import Watcher
from elastic.errors import JobNameInUse


class JobRegistry:
    """One watcher for each job, and the histogram of their response times."""

    def __init__(self, jobs: Sequence[ServedJob]) -> None:
        self.response_times = create_response_histogram()
        self._watchers: dict[str, Watcher] = {}
        for job in jobs:
            if job.name in self._watchers:
                raise JobNameInUse(job.name)
            self._watchers[job.name] = Watcher(job, self.response_times.labels(job.name).observe)

    @property
    def watchers(self) -> list[Watcher]:
        return list(self._watchers.values())

    def find(self, name: str) -> Watcher:
        try:
            return self._watchers[name]
        except KeyError:
            raise UnknownJob(name, self._watchers) from None

    def start(self) -> None:
        for watcher in self.watchers:
            watcher.start()

    def stop(self) -> None:
        for watcher in self.watchers:
            watcher.stop()


async def _get_registry(request: Request) -> JobRegistry:
    registry: JobRegistry = request.app.state.registry
    return registry


Registry = Annotated[JobRegistry, Depends(_get_registry)]


def _get_watcher(
    registry: Registry, job: Annotated[str, Path(description="Name of the job.", max_length=100)]
) -> Watcher:
    return registry.find(job)


WatchedJob = Annotated[Watcher, Depends(_get_watcher)]
MigrationNumber = Annotated[int, Path(ge=1, le=10**9, description="Number of the migration, as /migrations lists it.")]
