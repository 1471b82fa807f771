"""How hostile a simulated world is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Faults:
    """Probabilities; those of crashes, snapshots, collections and migrations are per step of the world."""

    node_crash: float = 0.01
    controller_crash: float = 0.003
    loss: float = 0.05  # a message gets lost; its sender repeats it
    duplicate: float = 0.1  # the acknowledgement gets lost; the sender repeats a message that was received
    delay: float = 0.08  # a message takes longer than many others sent after it
    store: float = 0.02  # an operation of the store fails; half of the writes that fail have happened
    tick: float = 0.1  # instead of a batch of the source, an empty one is committed
    stop: float = 0.003  # the driver stops gracefully, and starts again
    collect: float = 0.005  # besides the collections after every snapshot
    snapshot: float = 0.05
    migration: float = 0.0
    restart: float = 0.0  # a migration stops all nodes
    direct: float = 0.0  # states of a migration go from node to node
    stage: float = 0.7  # a slice reaches its node before the commit
