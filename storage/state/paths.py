"""The keys of an operator's objects; the one place that spells them.

operators/<name>/state/<lease>/<unit>-<batch>-<nonce>.state       a unit's state, saved under a lease
operators/<name>/log/<batch>/<round>-<partition>-<chunk>-<nonce>.log   input of one source partition
operators/<name>/manifest/<number>.manifest                       a version of the manifest
operators/<name>/leases/<lease>.json                              an open lease

Numbers have leading zeros, so that the order of the keys is the order of the numbers.
"""

import secrets

from storage.errors import InvalidStorageInput
from storage.state.refs import LogRef
from storage.stores.keys import check_key, to_key_segment

_NUMBER_DIGITS = 20  # any 64-bit number


class Paths:
    """The keys of one operator's objects."""

    def __init__(self, operator: str) -> None:
        self.operator = operator
        root = f"operators/{to_key_segment(operator)}"
        self.root = f"{root}/"
        self.states = f"{root}/state/"
        self.logs = f"{root}/log/"
        self.manifests = f"{root}/manifest/"
        self.leases = f"{root}/leases/"
        check_key(self.manifest(0))

    def state(self, lease: str, unit_segment: str, batch: int) -> str:
        """Return a new key: every saved state has its own."""
        return check_key(f"{self.states}{lease}/{unit_segment}-{batch}-{secrets.token_hex(8)}.state")

    def log(self, ref: LogRef) -> str:
        place = f"{ref.round:04d}-{ref.partition:06d}-{ref.chunk:04d}"
        return f"{self.logs}{ref.batch:0{_NUMBER_DIGITS}d}/{place}-{ref.nonce}.log"

    def manifest(self, number: int) -> str:
        return f"{self.manifests}{number:0{_NUMBER_DIGITS}d}.manifest"

    def lease(self, lease: str) -> str:
        return check_key(f"{self.leases}{lease}.json")

    def lease_of_state(self, key: str) -> str:
        return key.removeprefix(self.states).partition("/")[0]

    def lease_of_file(self, key: str) -> str:
        return key.removeprefix(self.leases).removesuffix(".json")

    def batch_of_log(self, key: str) -> int:
        return _parse_number(key, key.removeprefix(self.logs).partition("/")[0])

    def number_of_manifest(self, key: str) -> int:
        return _parse_number(key, key.removeprefix(self.manifests).removesuffix(".manifest"))


def _parse_number(key: str, digits: str) -> int:
    if not digits.isdecimal():
        raise InvalidStorageInput(f"{key!r} is not an object of an operator. Move it out of the operator's folder.")
    return int(digits)
