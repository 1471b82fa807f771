"""Self-join of trades over a sliding window of event time, checked against a batch join."""
