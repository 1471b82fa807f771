"""Nodes in threads of this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event, Thread

from elastic import threads
from elastic.deadlines import Deadline
from elastic.driver.launcher import Ended
from elastic.node.process import NodeProcess
from elastic.node.spare import Spare
from elastic.node.spec import NodeSpec
from elastic.wire import Network


@dataclass
class Incarnation:
    """One life of a node. `process` is None until it has started, `left` until it has ended."""

    node: str
    name: str
    thread: Thread
    over: Event = field(default_factory=threads.Event)
    process: NodeProcess | Spare | None = None
    left: str | None = None
    failed: bool = False
    cancelled: bool = False


class ThreadLauncher:
    """Starts every incarnation in a thread of this process; see `elastic.driver.node_links.Launcher`.

    A thread cannot be killed: a node that is cancelled sends nothing more, and ends when its current call does.
    """

    def __init__(self, common: NodeSpec, network: Network | None = None) -> None:
        self.common = common
        self.network = network
        self.incarnations: dict[str, Incarnation] = {}

    def start(self, node: str, incarnation: str, driver: str, ended: Ended) -> None:
        spec = replace(self.common, node=node, incarnation=incarnation, driver=driver)

        def live() -> None:
            try:
                named = spec if node else self._wait_for_name(started, spec)
                if named is not None:
                    process = started.process = NodeProcess(
                        named, self.network, exit_process=lambda _: self.end(started)
                    )
                    if started.cancelled:
                        self.end(started)
                    started.left = process.run()
            except Exception as error:  # noqa: BLE001 - an operator's open() may raise anything
                started.left, started.failed = f"{type(error).__name__}: {error}", True

        def watch() -> None:
            started.thread.start()
            started.thread.join()
            started.over.set()
            ended(node, incarnation, started.left or "its thread was killed", started.failed)

        started = self.incarnations[incarnation] = Incarnation(node, incarnation, self.make_thread(live, incarnation))
        threads.Thread(watch, f"watch-{incarnation}").start()

    def cancel(self, incarnation: str) -> None:
        found = self.incarnations.get(incarnation)
        if found is not None:
            found.cancelled = True
            self.end(found)

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        deadline = Deadline(seconds)
        known = [self.incarnations[name] for name in incarnations if name in self.incarnations]
        return [one.name for one in known if not one.over.wait(deadline.left())]

    def make_thread(self, live: Callable[[], None], incarnation: str) -> Thread:
        """Return the thread, not started, in which an incarnation lives."""
        return threads.Thread(live, incarnation)

    def _wait_for_name(self, started: Incarnation, spec: NodeSpec) -> NodeSpec | None:
        spare = started.process = Spare(spec, self.network)
        if started.cancelled:
            self.end(started)
        named = spare.wait()
        started.left = spare.left
        return named

    def end(self, incarnation: Incarnation) -> None:
        """End a node, if it has started."""
        if incarnation.process is not None:
            incarnation.process.kill()
