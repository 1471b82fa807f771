"""Nexmark: queries over persons, auctions and bids of an online auction, written with the ready-made operators.

After Tucker et al., "NEXMark - a benchmark for queries over data streams" (2002), and the numbering that Beam and Flink
use. Each query is an entry of `queries.QUERIES`; `events.make_events` makes the same events for the same seed.
"""
