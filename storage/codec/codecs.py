"""All codecs by name. A new one is a file and an entry here; a name, once written to a store, keeps its meaning."""

from collections.abc import Mapping

from storage.codec import arrow_table, json_documents, mapping, numpy_arrays, pickled, raw_bytes
from storage.codec.payload import Codec, Payload

# In the order in which they are asked; the last one takes everything.
CODECS: Mapping[str, Codec] = {
    "arrow": arrow_table.CODEC,
    "numpy": numpy_arrays.CODEC,
    "mapping": mapping.CODEC,
    "json": json_documents.CODEC,
    "bytes": raw_bytes.CODEC,
    "pickle": pickled.CODEC,
}


def encode(value: object) -> tuple[str, Payload]:
    """Return the name of the first codec that preserves the value, and the payload it made."""
    return next((name, payload) for name, codec in CODECS.items() if (payload := codec.encode(value)) is not None)


def estimate_encoded_size(value: object) -> int:
    """Estimate, quickly, how many bytes the value becomes before compression; for memory budgets."""
    return next(size for codec in CODECS.values() if (size := codec.estimate_size(value)) is not None)
