"""The same kernels without a compiler: whole columns at once, several times slower."""

from elastic.operators.kernels.vectorised.texts import find_texts, index_texts, insert_texts, take_texts
from elastic.operators.kernels.vectorised.words import count_rows, find_words, index_words, insert_words

NAME = "numpy"

__all__ = [
    "NAME",
    "count_rows",
    "find_texts",
    "find_words",
    "index_texts",
    "index_words",
    "insert_texts",
    "insert_words",
    "take_texts",
]
