"""Convert additive terms: to arrays for the store, and to terms of the edges of a lattice."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from migration.planning.values import AdditiveTerms

Arrays = Mapping[str, np.ndarray[Any, Any]]
Facts = Mapping[str, Any]


def edge_terms(terms: AdditiveTerms, lattice: Lattice) -> Floats:
    """V as terms of the edges of a lattice, in their order; a start for an exact projection."""
    size = lattice.tasks + 1
    found = np.full(lattice.edges, terms.constant / lattice.parts)
    for layer in range(1, lattice.parts + 1):
        for stop in range(int(lattice.low[layer]), int(lattice.high[layer]) + 1):
            here, begin = lattice.edge_at[layer, stop], lattice.begin[layer, stop]
            edges = slice(here, here + min(stop, lattice.high[layer - 1] + 1) - begin)
            if stop < size - 1:
                found[edges] += terms.boundary[stop]
            if terms.interval is not None:
                found[edges] += terms.interval[begin : begin + len(found[edges]), stop]
    return found


def terms_to_parts(by_nodes: Mapping[int, AdditiveTerms]) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """Arrays by name and JSON metadata; of interval terms only those that are not 0."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for nodes, terms in by_nodes.items():
        arrays[f"boundary-{nodes}"] = terms.boundary
        if terms.interval is not None:
            starts, stops = np.nonzero(terms.interval)
            arrays[f"starts-{nodes}"] = starts.astype(np.int32)
            arrays[f"stops-{nodes}"] = stops.astype(np.int32)
            arrays[f"interval-{nodes}"] = terms.interval[starts, stops]
    return arrays, {"constants": {str(nodes): terms.constant for nodes, terms in by_nodes.items()}}


def terms_from_parts(nodes: int, arrays: Arrays, facts: Facts) -> AdditiveTerms:
    boundary, interval = arrays[f"boundary-{nodes}"], None
    if f"interval-{nodes}" in arrays:
        interval = np.zeros((len(boundary), len(boundary)))
        interval[arrays[f"starts-{nodes}"], arrays[f"stops-{nodes}"]] = arrays[f"interval-{nodes}"]
    return AdditiveTerms(boundary, interval, facts["constants"][str(nodes)])
