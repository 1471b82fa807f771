"""Word count over tumbling windows of a text whose hot words change, checked against a batch computation."""
