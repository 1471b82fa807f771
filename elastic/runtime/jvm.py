"""Calls to Spark's JVM, which may be gone: the driver's Python process outlives it."""

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

from elastic.errors import SparkLost


@contextmanager
def spark_calls() -> Iterator[None]:
    """Raise `SparkLost` where Py4J cannot reach the JVM; what Spark itself raises stays as it is."""
    try:
        yield
    except Py4JJavaError:
        raise
    except (Py4JError, OSError, EOFError) as error:
        raise SparkLost(f"{type(error).__name__}: {error}") from error
