"""State <-> bytes: versioned, compressed, checksummed and signed. One codec a file; all are in `CODECS`."""

from storage.codec.codecs import CODECS, estimate_encoded_size
from storage.codec.compression import COMPRESSIONS
from storage.codec.envelope import Unpacked, pack, unpack, unpack_part
from storage.codec.header import FORMAT_VERSION, HEADER_GUESS_BYTES, Header, HeaderTooShort, Part, read_header
from storage.codec.json_documents import Json
from storage.codec.parts import StoredParts, fetch_header
from storage.codec.payload import JSON
from storage.codec.secret import Secret
from storage.codec.signatures import replace_signatures

__all__ = [
    "CODECS",
    "COMPRESSIONS",
    "FORMAT_VERSION",
    "HEADER_GUESS_BYTES",
    "JSON",
    "Header",
    "HeaderTooShort",
    "Json",
    "Part",
    "Secret",
    "StoredParts",
    "Unpacked",
    "estimate_encoded_size",
    "fetch_header",
    "pack",
    "read_header",
    "replace_signatures",
    "unpack",
    "unpack_part",
]
