"""How hostile a simulated world is."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Faults:
    """Probabilities of faults by call, and how often each disturbance comes, relative to the others."""

    # Calls between processes.
    lost: float = 0.02  # not delivered
    lost_answer: float = 0.03  # delivered, and the caller does not know
    late: float = 0.02  # delivered some time after the caller has given up on it
    slow: float = 0.05  # delivered in time, but after others that were sent later
    hang: float = 0.1  # of the calls that fail, so many only after their timeout
    # Calls to the store.
    store: float = 0.015  # fails; half of the writes that fail have happened
    slow_store: float = 0.03
    # Numbers of standbys to choose from.
    standbys: tuple[int, ...] = (0,)
    # Disturbances; see `Chaos`.
    disturbances: Mapping[str, float] = field(default_factory=dict)


CRASHES = {
    "kill_node": 3,
    "ambush_node": 5,
    "vanish_node": 1,
    "cut_off_node": 2,
    "declare_node_lost": 2,
    "cut_node_from_store": 2,
    "kill_driver": 2,
    "replace_driver": 0.5,
    "stop_driver": 0.7,
    "snapshot": 3,
    "store_outage": 0.5,
    "look_up": 1,
    "rekey": 6,
    "control_rekeying": 1,
    "split": 3,
}

# A node that is lost, and soon after it the one that has taken over, or that follows.
STANDBYS = {
    "kill_node": 4,
    "kill_two_nodes": 3,
    "kill_owner_and_standby": 3,
    "ambush_node": 6,
    "vanish_node": 1,
    "cut_off_node": 2,
    "declare_node_lost": 2,
    "cut_node_from_store": 1,
    "kill_driver": 1,
    "replace_driver": 0.3,
    "stop_driver": 0.3,
    "snapshot": 3,
    "store_outage": 0.3,
    "look_up": 1,
    "rekey": 3,
    "control_rekeying": 1,
    "split": 2,
}

WORLDS = {
    "crashes": Faults(disturbances=CRASHES),
    "crashes and migrations": Faults(disturbances={**CRASHES, "migrate": 8, "control_migration": 3}),
    # A driver that dies ends every migration, and with it what could go wrong there: so it seldom does.
    "migrations and lost nodes": Faults(
        disturbances={
            "migrate": 10,
            "control_migration": 3,
            "kill_node": 2,
            "ambush_node": 8,
            "vanish_node": 1,
            "cut_off_node": 2,
            "declare_node_lost": 2,
            "cut_node_from_store": 1,
            "kill_driver": 0.3,
            "snapshot": 2,
            "rekey": 6,
            "control_rekeying": 1,
            "split": 3,
        }
    ),
    "standbys and lost nodes": Faults(standbys=(1, 1, 2), disturbances=STANDBYS),
    "standbys and migrations": Faults(
        standbys=(0, 1, 2), disturbances={**STANDBYS, "migrate": 8, "control_migration": 3, "kill_node": 2}
    ),
}
