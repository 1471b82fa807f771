"""How rows come in: every source partition is split, logged and brought to the nodes; the driver makes it count."""
