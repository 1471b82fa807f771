"""Objects that get other signatures: their parts stay as they are."""

from collections.abc import Sequence

from storage.codec.envelope import unpack
from storage.codec.header import find_signers, read_header, reseal_header
from storage.codec.payload import align, as_bytes_view
from storage.codec.secret import Secret
from storage.errors import ForeignObject
from storage.stores.protocol import Bytes


def replace_signatures(
    data: Bytes, *, key: str, known: Sequence[Secret], wanted: Sequence[Secret]
) -> memoryview | None:
    """Return a whole object signed with the `wanted` secrets, at most two; None if these signed it already.

    The object is verified first: `BadObject` if it is damaged, or signed with none of the `known` secrets.
    """
    view = as_bytes_view(data)
    signer = _find_signer(view, key, known)
    unpack(view, key=key, secret=signer)
    header = read_header(view, key=key, secret=signer)
    if find_signers(view, header, known) == list(wanted):
        return None
    return memoryview(reseal_header(view, header, wanted) + view[align(header.length) :])


def _find_signer(view: memoryview, key: str, known: Sequence[Secret]) -> Secret:
    """Return a secret that signed the object."""
    for secret in known[:-1]:
        try:
            read_header(view, key=key, secret=secret)
        except ForeignObject:
            continue
        return secret
    read_header(view, key=key, secret=known[-1])
    return known[-1]
