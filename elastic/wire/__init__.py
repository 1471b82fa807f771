"""Calls between driver, nodes and senders: the port that they use, and Arrow Flight behind it."""

from elastic.wire.flight import FlightNetwork
from elastic.wire.network import CALL_SECONDS, Endpoint, Holding, Network, Peer, PeerUnavailable, Refused
from elastic.wire.reliable_sender import ReliableSender
from elastic.wire.signing import wire_token

__all__ = [
    "CALL_SECONDS",
    "Endpoint",
    "FlightNetwork",
    "Holding",
    "Network",
    "Peer",
    "PeerUnavailable",
    "Refused",
    "ReliableSender",
    "wire_token",
]
