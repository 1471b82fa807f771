"""Arrow Flight between controller, nodes and senders: JSON for control, tables for rows, a token on every call."""

from elastic.runtime.wire.client import Peer, PeerUnavailable
from elastic.runtime.wire.server import Endpoint, Refused
from elastic.runtime.wire.token import wire_token

__all__ = ["Endpoint", "Peer", "PeerUnavailable", "Refused", "wire_token"]
