"""The address under which other machines reach this one."""

import socket


def find_own_host(address: str) -> str:
    """Return the address of the interface through which an address `host:port` is reached; sends nothing."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host.strip("[]"), int(port)))
        return str(probe.getsockname()[0])
