"""Every key to the least loaded node."""

from migration.keys.kernels.columns import Rows
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled


@compiled
def place_all(order: Rows, work: Floats, loads: Floats, nodes: Nodes, destination: Nodes) -> None:
    """Place the keys in `order`, each on the node with the least load so far; the first of them on a tie.

    `nodes` is a heap of nodes, the least loaded first, and `loads` starts with their pinned work. O(K log nodes).
    """
    count = len(nodes)
    for row in order:
        node = nodes[0]
        destination[row] = node
        loads[node] += work[row]
        place = 0
        while True:
            child = 2 * place + 1
            if child >= count:
                break
            if child + 1 < count:
                left, right = nodes[child], nodes[child + 1]
                if loads[right] < loads[left] or (loads[right] == loads[left] and right < left):
                    child += 1
            other = nodes[child]
            if loads[other] > loads[node] or (loads[other] == loads[node] and other > node):
                break
            nodes[place] = other
            place = child
        nodes[place] = node
