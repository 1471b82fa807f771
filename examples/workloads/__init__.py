"""Generated streams: the same seed and batch number always give the same rows, so that a stream can be verified."""

from examples.workloads.key_stream import KeyStream
from examples.workloads.pace import Pace
from examples.workloads.texts import FileTexts, SkewedTexts, TextBatches, read_texts
from examples.workloads.trades import TRADE_SCHEMA, Trades, make_symbols

__all__ = [
    "TRADE_SCHEMA",
    "FileTexts",
    "KeyStream",
    "Pace",
    "SkewedTexts",
    "TextBatches",
    "Trades",
    "make_symbols",
    "read_texts",
]
