"""Spark's Python daemon: how its workers end."""

import socket

import pytest

from elastic.runtime.daemon import ends_quietly


def write_after_the_end(sock: socket.socket, authenticated: bool) -> int:
    """What PySpark's worker does when it flushes its output."""
    for _ in range(2):
        sock.sendall(b"results")
    return int(authenticated)


def test_a_worker_whose_connection_spark_has_closed_ends_without_a_traceback() -> None:
    ours, sparks = socket.socketpair()
    with ours, sparks:
        assert ends_quietly(write_after_the_end)(ours, True) == 1
        sparks.close()
        with pytest.raises(BrokenPipeError):
            write_after_the_end(ours, False)
        assert ends_quietly(write_after_the_end)(ours, False) == 1


def test_other_failures_of_a_worker_are_not_hidden() -> None:
    def fail(_: object, __: bool) -> int:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        ends_quietly(fail)(None, True)
