"""Under which address this machine is reached."""

import socket


def own_host(reached_from: str) -> str:
    """The address of the interface on the way to another one; sends nothing."""
    host, _, port = reached_from.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host.strip("[]"), int(port)))
        return str(probe.getsockname()[0])
