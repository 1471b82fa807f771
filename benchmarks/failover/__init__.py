"""Measures what the stream notices of `kill -9` of a node, with standbys, with a spare and with neither."""
