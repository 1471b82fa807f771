"""Failures of Spark as typed errors with one-line reasons: Spark's own texts contain the stacks of two JVMs."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from elastic.errors import SparkLost, SparkRefused, StreamFailed

_log = logging.getLogger(__name__)
_STREAM_REASON_LENGTH = 300
_NODE_REASON_LENGTH = 600  # Spark's own log has the full text
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_CAUSED_BY = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_LOST_TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \(.*?\): ")
_TRACEBACK = "Traceback (most recent call last):"
_JAVA_CLASS = re.compile(r"^(?:[a-z_$][\w$]*\.)+(?=[A-Z])")
_EXTERNAL_CAUSES = {
    "Python worker exited unexpectedly": "its process died",
    "ExecutorLostFailure": "its executor was lost",
    "cancelled": "its Spark job was cancelled",
    "SparkContext was shut down": "Spark was stopped",
}


@contextmanager
def detect_lost_jvm() -> Iterator[None]:
    """Raise `SparkLost` if Py4J cannot reach the JVM, which the driver's Python process outlives.

    Errors that Spark itself raises pass unchanged.
    """
    try:
        yield
    except Py4JJavaError:
        raise
    except (Py4JError, OSError, EOFError) as error:
        raise SparkLost(f"{type(error).__name__}: {error}") from error


@contextmanager
def explain_refusal(step: str, advice: str) -> Iterator[None]:
    """Raise `SparkRefused` for what Spark raises in the block, a call that the user's arguments decide."""
    loggers = [PySparkLogger.getLogger(name) for name in _QUERY_LOGGERS]
    # PySpark logs such an error with the stack of the JVM before it raises it.
    for logger in loggers:
        logger.addFilter(_drop)
    try:
        yield
    except (PySparkException, Py4JError) as error:
        _log.debug("Spark could not %s: %s", step, error)
        # What has a condition of Spark's is said for users; its causes are about classes that were not found.
        is_explained = isinstance(error, PySparkException) and error.getCondition() is not None
        raise SparkRefused(
            step, find_root_cause(str(error) if is_explained else _format_causes(error)), advice
        ) from error
    finally:
        for logger in loggers:
            logger.removeFilter(_drop)


def _drop(_: logging.LogRecord) -> bool:
    return False


def to_stream_error(name: str, error: BaseException) -> BaseException:
    """Return the error to raise for what ended the stream of a job.

    Errors of Spark become `StreamFailed`, and their full text goes to the log at INFO. Other errors stay as they are.
    """
    if not isinstance(error, PySparkException | Py4JError):
        return error
    _log.info("the stream of %s failed: %s", name, error)
    return StreamFailed(name, find_root_cause(_format_causes(error)))


def find_root_cause(text: str) -> str:
    """Return the one line of Spark's text that names the root cause, without stacks and Java packages."""
    if _TRACEBACK in text:
        line = _find_raised(text.rpartition(_TRACEBACK)[2])
    elif causes := _CAUSED_BY.findall(text):
        line = causes[-1]
    else:
        line = next((one for one in _LOST_TASK.split(text)[-1].splitlines() if one.strip()), "no reason was given")
    line = _JAVA_CLASS.sub("", line.strip())
    return (line[: _STREAM_REASON_LENGTH - 3] + "..." if len(line) > _STREAM_REASON_LENGTH else line).rstrip(".")


def find_external_cause(text: str) -> str | None:
    """Return what ended a node's process from outside according to Spark's text, None if the node itself failed."""
    return next((cause for known, cause in _EXTERNAL_CAUSES.items() if known in text), None)


def find_own_cause(error: BaseException) -> str:
    """Return why a node failed: its Python error without the traceback, else Spark's text without the JVM's stack."""
    text = str(error).partition("\n\tat ")[0].strip()
    if _TRACEBACK[:-1] in text:
        lines = text.splitlines()
        last_frame = max(number for number, line in enumerate(lines) if line.startswith("  ") or "Traceback" in line)
        if innermost := "\n".join(lines[last_frame + 1 :]).strip():
            return innermost[:_NODE_REASON_LENGTH]
    text = text.rpartition("most recent failure: ")[2].strip()
    return f"{type(error).__name__}: {text[:_NODE_REASON_LENGTH]}"


def _format_causes(error: BaseException) -> str:
    """Return the text of an error and of all its causes: PySpark keeps Java's causes as separate errors."""
    texts = [str(error)]
    cause = error
    while (inner := getattr(cause, "_cause", None)) is not None:
        cause = inner
        texts.append(f"Caused by: {cause}")
    return "\n".join(texts)


def _find_raised(traceback: str) -> str:
    """Return the line of a Python traceback that names the error: the first that is not indented."""
    found = (line for line in traceback.splitlines() if line.strip() and not line.startswith((" ", "\t")))
    return next(found, "an error without a text")
