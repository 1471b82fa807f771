"""Lets the engine run on simulated threads: also its modules that use Python's own threads, clocks and random names."""

import logging
import random
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

from elastic import threads
from elastic.core.messages import Heartbeat
from elastic.driver import event_loop
from tests.elastic.simulation.scheduler import Scheduler

_PACKAGES = ("elastic.", "storage.")


@contextmanager
def simulated(scheduler: Scheduler, chance: random.Random, tell: Callable[..., None]) -> Iterator[None]:
    """Replace threads, clocks and random names in all modules of the engine; warnings become part of the story."""
    replacements = {
        id(threading): _Stand(threading, _threading()),
        id(time): _Stand(time, _time(scheduler)),
        id(secrets): _Stand(secrets, _secrets(chance)),
        id(Future): _future_class(scheduler),
        id(ThreadPoolExecutor): lambda size, **named: scheduler.pool(size, named.get("thread_name_prefix", "pool")),
    }
    with ExitStack() as stack:
        stack.enter_context(threads.replaced_by(scheduler))
        for module, name, original in _uses():
            stack.enter_context(_replaced(module, name, replacements[id(original)]))
        for package in ("elastic", "storage"):
            stack.enter_context(_heard(logging.getLogger(package), logging.WARNING, tell))
        stack.enter_context(_heard(logging.getLogger(event_loop.__name__), logging.DEBUG, tell))
        yield


class _Stand(ModuleType):
    """A module, some of whose names stand for something else."""

    def __init__(self, original: ModuleType, names: dict[str, Any]) -> None:
        super().__init__(original.__name__)
        self._original = original
        vars(self).update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def _future_class(scheduler: Scheduler) -> Any:
    """What is called as `Future()` and, in annotations, subscripted."""

    class AnyFuture:
        def __new__(cls) -> Any:
            return scheduler.future()

        def __class_getitem__(cls, _: Any) -> Any:
            return Future

    return AnyFuture


def _threading() -> dict[str, Any]:
    return {
        "Lock": threads.Lock,
        "RLock": threads.RLock,
        "Condition": threads.Condition,
        "Event": threads.Event,
        "Thread": lambda target, name, daemon=True: threads.Thread(target, name),  # noqa: ARG005
        "current_thread": threads.current_thread,
    }


def _time(scheduler: Scheduler) -> dict[str, Any]:
    return {
        "monotonic": scheduler.monotonic,
        "perf_counter": scheduler.monotonic,
        "time": lambda: scheduler.time_ns() / 1e9,
        "time_ns": scheduler.time_ns,
        "sleep": scheduler.sleep,
    }


def _secrets(chance: random.Random) -> dict[str, Any]:
    return {
        "token_hex": lambda size=16: chance.randbytes(size).hex(),
        "token_bytes": chance.randbytes,
    }


_found: list[tuple[ModuleType, str, Any]] = []


def _uses() -> list[tuple[ModuleType, str, Any]]:
    """Modules of the engine that use one of these, with the name that they use; searched once."""
    if not _found:
        originals = (threading, time, secrets, Future, ThreadPoolExecutor)
        for module_name, module in list(sys.modules.items()):
            if module_name.startswith(_PACKAGES) and module is not threads:
                uses = [(name, value) for name, value in vars(module).items() if any(value is one for one in originals)]
                _found.extend((module, name, value) for name, value in uses)
    return _found


def _replaced(module: ModuleType, name: str, value: Any) -> Any:
    return mock.patch.object(module, name, value)


@contextmanager
def _heard(logger: logging.Logger, level: int, tell: Callable[..., None]) -> Iterator[None]:
    handler = _Story(level, tell)
    logger.addHandler(handler)
    before = logger.propagate, logger.level
    logger.propagate = False
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.propagate = before[0]
        logger.setLevel(before[1])
        logger.removeHandler(handler)


class _Story(logging.Handler):
    """Adds what is logged to the story: warnings, and the decisions of the driver's loop."""

    def __init__(self, level: int, tell: Callable[..., None]) -> None:
        super().__init__(level)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.DEBUG:
            self._add_decision(record.args)
            return
        # Its arguments may change, so it becomes text now; warnings are few.
        error = "" if record.exc_info is None else f" ({record.exc_info[1]!r})"
        self._tell("log:", record.getMessage() + error)

    def _add_decision(self, arguments: Any) -> None:
        [decision] = arguments
        if not isinstance(decision.event, Heartbeat) or decision.commands:
            self._tell("loop:", decision)  # a frozen value; most stories are never read
