"""How operator state becomes bytes and comes back: arrives with the operator state manager."""
