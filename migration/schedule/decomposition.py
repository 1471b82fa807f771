"""Traffic as a bipartite graph, decomposed into matchings: the one mechanism behind both optimal schedules."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from migration.schedule.transfers import Pair

if TYPE_CHECKING:
    import networkx as nx

_Edge = tuple[int, int]  # sender, receiver, as numbers of the padded graph


class Matching(NamedTuple):
    """Traffic of pairs that have no node in common.

    Invariant: every sender and every receiver is in at most one pair, and 0 < shares[pair] <= weight.
    """

    weight: int
    shares: dict[Pair, int]


def matchings(traffic: Mapping[Pair, int]) -> Iterator[Matching]:
    """Decompose the traffic; the weights add up to D, the most that any node sends or receives.

    Birkhoff and von Neumann: in a bipartite graph whose nodes all have the degree D > 0, counted in traffic, some edges
    form a perfect matching. Subtract its smallest amount from each of its edges, and all degrees are equal again. So
    pad the traffic to such a graph and repeat until nothing is left. Every matching uses up an edge, so there are at
    most |traffic| + 2n - 1. A node of degree D has a share in each of them, so no schedule is shorter.

    Matchings of large amounts come first: edges below a threshold wait until the others hold no perfect matching, then
    the threshold halves. This changes no bound, but needs far fewer matchings (Liu et al., "Scheduling Techniques for
    Hybrid Circuit/Packet Networks", CoNEXT 2015).

    Each matching is the one before it, repaired: an augmenting path (Berge) replaces each edge that fell below the
    threshold, in O(E) for E edges. Takes whole numbers of any size.
    """
    # Imported late: most processes make no schedule, and the import takes longer than most schedules do.
    import networkx as nx

    senders = {sender: number for number, sender in enumerate(dict.fromkeys(sender for sender, _ in traffic))}
    receivers = {receiver: number for number, receiver in enumerate(dict.fromkeys(receiver for _, receiver in traffic))}
    size = max(len(senders), len(receivers))
    pair_of = {(senders[sender], size + receivers[receiver]): (sender, receiver) for sender, receiver in traffic}
    unsent = {edge: traffic[pair] for edge, pair in pair_of.items()}
    amounts, degree = _pad(unsent, size)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(2 * size))
    partner: dict[int, int] = {}
    unmatched = list(range(size))
    threshold, waiting = degree, list(amounts)
    while degree:
        graph.add_edges_from(edge for edge in waiting if amounts[edge] >= threshold)
        waiting = [edge for edge in waiting if 0 < amounts[edge] < threshold]
        while unmatched and _augment(graph, partner, unmatched[-1]):
            unmatched.pop()
        if unmatched:
            threshold = (threshold + 1) // 2
            continue
        matched = [(sender, partner[sender]) for sender in range(size)]
        weight = min(amounts[edge] for edge in matched)
        shares = {edge: min(unsent[edge], weight) for edge in matched if unsent.get(edge)}
        for edge, share in shares.items():
            unsent[edge] -= share
        for edge in matched:
            amounts[edge] -= weight
            if amounts[edge] < threshold:
                _drop(graph, partner, edge)
                unmatched.append(edge[0])
                waiting.append(edge)
        degree -= weight
        yield Matching(weight, {pair_of[edge]: share for edge, share in shares.items()})


def _augment(graph: "nx.Graph[int]", partner: dict[int, int], sender: int) -> bool:
    """Match one more sender, along a shortest path of edges outside and inside the matching in turn; False without one.

    Breadth first from the sender to any receiver without a partner. `reached_from` holds the sender before each
    receiver on the path.
    """
    reached_from: dict[int, int] = {}
    layer = [sender]
    while layer:
        following = []
        for node in layer:
            for receiver in graph.neighbors(node):
                if receiver in reached_from:
                    continue
                reached_from[receiver] = node
                if receiver not in partner:
                    _flip(partner, reached_from, receiver)
                    return True
                following.append(partner[receiver])
        layer = following
    return False


def _flip(partner: dict[int, int], reached_from: Mapping[int, int], end: int) -> None:
    """Walk back from the end of an augmenting path: its edges outside the matching are in it now, the others not."""
    receiver: int | None = end
    while receiver is not None:
        sender = reached_from[receiver]
        released = partner.get(sender)
        partner[sender], partner[receiver] = receiver, sender
        receiver = released


def _drop(graph: "nx.Graph[int]", partner: dict[int, int], edge: _Edge) -> None:
    graph.remove_edge(*edge)
    for node in edge:
        del partner[node]


def _pad(traffic: Mapping[_Edge, int], size: int) -> tuple[dict[_Edge, int], int]:
    """The traffic, filled up until all of `size` senders and receivers have the largest degree; and that degree."""
    degrees = [0] * (2 * size)
    for edge, amount in traffic.items():
        for node in edge:
            degrees[node] += amount
    largest = max(degrees, default=0)
    padded = {edge: amount for edge, amount in traffic.items() if amount}
    missing = [largest - degree for degree in degrees]
    sender, receiver = 0, size
    while sender < size and receiver < 2 * size:  # the north-west corner rule: each step completes a node
        amount = min(missing[sender], missing[receiver])
        if amount:
            padded[sender, receiver] = padded.get((sender, receiver), 0) + amount
        missing[sender] -= amount
        missing[receiver] -= amount
        if missing[sender]:
            receiver += 1
        else:
            sender += 1
    return padded, largest
