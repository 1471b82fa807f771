"""The kernels compiled by numba.

Keys must come as read-only arrays, always: numba compiles once for each combination of writable and read-only.
"""

from elastic.operators.kernels.compiled.compiler import NAME
from elastic.operators.kernels.compiled.texts import find_texts, index_texts, insert_texts, take_texts
from elastic.operators.kernels.compiled.words import count_rows, find_words, index_words, insert_words

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
