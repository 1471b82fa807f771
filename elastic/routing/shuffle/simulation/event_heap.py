"""The reference of the simulator: a heap of events, one row at a time.

Instances have one queue each and execute one row after the other. Events at the same moment come in this order: rows
finish, messages arrive (by instance, then in the order sent), rows arrive. So the result does not depend on how events
are found.
"""

import heapq
from collections import deque
from typing import NamedTuple

import numpy as np

from elastic.routing.shuffle.schedulers import Nodes
from elastic.routing.shuffle.simulation.instance import Message, OperatorInstance, SyncRequest
from elastic.routing.shuffle.simulation.scheduler import OnlineScheduler
from elastic.routing.shuffle.simulation.stream import SimulatedStream
from elastic.routing.shuffle.sketch import Floats, SketchShape

_FINISH, _DELIVER, _ARRIVE = range(3)


class Trace(NamedTuple):
    """The instance of each row, and the seconds from its arrival to its end."""

    instances: Nodes
    completion: Floats


class _Queued(NamedTuple):
    row: int
    request: SyncRequest | None


class _Event(NamedTuple):
    time: float
    kind: int
    instance: int  # or the row, if one arrives
    sequence: int
    message: Message | None = None


def simulate_by_events(
    stream: SimulatedStream,
    scheduler: OnlineScheduler,
    instances: list[OperatorInstance],
    shape: SketchShape,
    delay: float = 0.0,
) -> Trace:
    """Run all rows through the scheduler and the instances; messages to the scheduler take `delay` seconds."""
    columns = shape.columns_of(stream.hashes).T
    queues: list[deque[_Queued]] = [deque() for _ in instances]
    trace = Trace(np.zeros(stream.rows, np.int64), np.zeros(stream.rows))
    heap = [_Event(time, _ARRIVE, row, 0) for row, time in enumerate(stream.arrivals.tolist())]
    sent = 0

    def begin(instance: int, now: float) -> None:
        finish = now + stream.seconds(queues[instance][0].row, instance)
        heapq.heappush(heap, _Event(finish, _FINISH, instance, 0))

    while heap:
        now, kind, subject, _, message = heapq.heappop(heap)
        if kind == _ARRIVE:
            instance, request = scheduler.submit(subject, columns[subject], now)
            trace.instances[subject] = instance
            queues[instance].append(_Queued(subject, request))
            if len(queues[instance]) == 1:
                begin(instance, now)
        elif kind == _FINISH:
            row, request = queues[subject].popleft()
            trace.completion[row] = now - stream.arrivals[row]
            for reply in instances[subject].execute(columns[row], stream.seconds(row, subject), now, request):
                sent += 1
                heapq.heappush(heap, _Event(now + delay, _DELIVER, subject, sent, reply))
            if queues[subject]:
                begin(subject, now)
        elif message is not None:
            scheduler.receive(message)
    return trace
