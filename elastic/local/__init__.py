"""A job inside this process: nodes in threads and calls without sockets, for tests and for teaching; no Spark."""

from elastic.local.launcher import ThreadLauncher
from elastic.local.network import LocalNetwork

__all__ = ["LocalNetwork", "ThreadLauncher"]
