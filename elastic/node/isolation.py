"""Steps that have killed nodes, taken in a child process: a row kills only the child, and is quarantined.

The child is a fresh interpreter without threads, so it can fork for every trial. It dies with its node.
"""

import ctypes
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle
import pyarrow as pa

from elastic.core.crashes import LIMIT
from elastic.core.pipeline import create_runners
from elastic.errors import ElasticError, PoisonedStep
from elastic.operators.calls import UnitState
from elastic.operators.context import Moment
from elastic.operators.guarded import ProcessDied
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.results import Description

Result = TypeVar("Result")
_CHUNK_BYTES = 1 << 20
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


@dataclass(frozen=True)
class _Request:
    """One step of one unit."""

    pipeline: Description
    stage: int
    saved: Any
    slices: Sequence[pa.Table]
    moment: Moment
    limit_seconds: float  # of a trial; 0: none

    def take(self) -> tuple[Any, StepOutput]:
        """Return the state after the step, as it is stored, and the output."""
        runner = create_runners(self.pipeline, "skip")[self.stage].with_trial(ForkedCalls(self.limit_seconds))
        runner.open()
        state = runner.restore(self.saved)
        output = runner.step(state, self.slices, self.moment)
        return runner.capture(state), output


class Isolation:
    """Takes steps of a node in a child process."""

    def __init__(self, node: str, pipeline: Description, limit_seconds: float) -> None:
        self._node = node
        self._pipeline = pipeline
        self._limit_seconds = limit_seconds

    def __call__(
        self, runner: StageRunner, state: UnitState, slices: Sequence[pa.Table], moment: Moment
    ) -> tuple[UnitState, StepOutput]:
        """Return the state after the step and the output; `PoisonedStep` if the child itself dies."""
        saved = runner.capture(state)
        request = _Request(self._pipeline, runner.stage, saved, tuple(slices), moment, self._limit_seconds)
        path = [entry for entry in sys.path if entry]
        child = subprocess.Popen(
            [sys.executable, "-m", "elastic.node.isolation"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )
        answer, _ = child.communicate(cloudpickle.dumps(request))
        if child.returncode != 0:
            reason = f"the process that tried its rows one by one {_describe_end(child.returncode)}"
            raise PoisonedStep(self._node, moment.batch, moment.round, [moment.task], LIMIT, reason)
        # Written by this node's own child, through a pipe that no other process has.
        after, output = pickle.loads(answer)  # noqa: S301
        if isinstance(after, Exception):
            raise after
        return runner.restore(after), output


class ForkedCalls:
    """Runs each call in a copy of this process, which must have one thread, within a time limit; 0 is none."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds

    def __call__(self, call: Callable[[], Result]) -> Result:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _try(call, writing)
        os.close(writing)
        try:
            answer = self._read(reading)
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise ProcessDied(f"the process ran for more than {self._limit_seconds:g} s and was ended") from None
        finally:
            os.close(reading)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != 0 or not answer:  # an operator may end its process as if nothing were wrong
            raise ProcessDied(f"the process {_describe_end(code)}")
        result = pickle.loads(answer)  # noqa: S301 - as above
        if isinstance(result, Exception):
            raise result
        returned: Result = result
        return returned

    def _read(self, reading: int) -> bytes:
        """Return all that the child writes until its end; `TimeoutError` if that takes too long."""
        deadline = time.monotonic() + self._limit_seconds
        parts: list[bytes] = []
        while True:
            left = max(0.0, deadline - time.monotonic()) if self._limit_seconds else None
            if not select.select([reading], [], [], left)[0]:
                raise TimeoutError
            part = os.read(reading, _CHUNK_BYTES)
            if not part:
                return b"".join(parts)
            parts.append(part)


def _try(call: Callable[[], Any], writing: int) -> None:
    """Run the call in a forked process, write its result, and end the process; never returns."""
    code = 1
    try:
        _die_with_parent()
        with suppress(OSError):  # if memory runs out, let the kernel choose this process rather than the node
            Path("/proc/self/oom_score_adj").write_text("1000")
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(_pickle_outcome(call))
        code = 0
    finally:
        os._exit(code)


def _pickle_outcome(call: Callable[[], Any]) -> bytes:
    """Return what the call returns or raises, pickled. A process that runs out of memory dies as if it was killed."""
    try:
        return bytes(cloudpickle.dumps(call()))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - raised in the process that asked
        try:
            return bytes(cloudpickle.dumps(error))
        except Exception:  # noqa: BLE001 - a user's exception may hold anything
            return bytes(cloudpickle.dumps(ElasticError(f"{type(error).__name__}: {error}. Correct the operator.")))


def _describe_end(code: int) -> str:
    return f"was killed by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _main() -> None:
    """Be the child: read one request from standard input, and write one answer to standard output."""
    _die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an operator prints must not get into the answer
    request: _Request = cloudpickle.loads(sys.stdin.buffer.read())
    answer = _pickle_outcome(request.take)
    outcome = pickle.loads(answer)  # noqa: S301 - pickled in the line before
    answers.write(bytes(cloudpickle.dumps((outcome, None))) if isinstance(outcome, Exception) else answer)
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    _main()
