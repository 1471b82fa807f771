"""Splitting keys: rows of one key on two workers or more, so that no key overloads a node (paper 001).

`choose_targets` and `choose_targets_with_heads` route arrays of hashes by PKG and W-Choices, with load estimates that
the caller keeps. `PARTITIONERS` has these and their baselines behind one protocol, for simulations. Pure: no I/O.
"""

from elastic.routing.splitting.head_choices import choose_targets_with_heads, create_sketch, head_share
from elastic.routing.splitting.key_assignments import KeyFrequencies
from elastic.routing.splitting.pair_split import split_pairs, split_with_heads
from elastic.routing.splitting.partitioners import PARTITIONERS, Partitioner
from elastic.routing.splitting.space_saving import KeyEstimates, SpaceSaving
from elastic.routing.splitting.targets import Targets
from elastic.routing.splitting.two_choices import choose_targets

__all__ = [
    "PARTITIONERS",
    "KeyEstimates",
    "KeyFrequencies",
    "Partitioner",
    "SpaceSaving",
    "Targets",
    "choose_targets",
    "choose_targets_with_heads",
    "create_sketch",
    "head_share",
    "split_pairs",
    "split_with_heads",
]
