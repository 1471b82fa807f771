"""What ended Spark's query, as an error of one line: Spark reports a bad record with the stacks of two JVMs."""

import logging
import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from elastic.errors import StreamFailed

_log = logging.getLogger(__name__)
_LENGTH = 300
_CAUSED_BY = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_LOST_TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \(.*?\): ")
_TRACEBACK = "Traceback (most recent call last):"
_JAVA_CLASS = re.compile(r"^(?:[a-z_$][\w$]*\.)+(?=[A-Z])")


def stream_failure(name: str, error: BaseException) -> BaseException:
    """Return the error to raise for what ended the stream of a job.

    Errors of Spark become `StreamFailed`, and their full text goes to the log at INFO. All others are what they were.
    """
    if not isinstance(error, PySparkException | Py4JError):
        return error
    _log.info("the stream of %s failed: %s", name, error)
    return StreamFailed(name, innermost_reason(_text_of(error)))


def innermost_reason(text: str) -> str:
    """Return the one line of Spark's text that says what was wrong: the last cause, without stacks and packages."""
    if _TRACEBACK in text:
        line = _raised(text.rpartition(_TRACEBACK)[2])
    elif causes := _CAUSED_BY.findall(text):
        line = causes[-1]
    else:
        line = next((one for one in _LOST_TASK.split(text)[-1].splitlines() if one.strip()), "no reason was given")
    line = _JAVA_CLASS.sub("", line.strip())
    return (line[: _LENGTH - 3] + "..." if len(line) > _LENGTH else line).rstrip(".")


def _text_of(error: BaseException) -> str:
    """With that of its innermost cause at the end: PySpark keeps Java's causes as errors of their own."""
    texts = [str(error)]
    cause = error
    while (inner := getattr(cause, "_cause", None)) is not None:
        cause = inner
        texts.append(f"Caused by: {cause}")
    return "\n".join(texts)


def _raised(traceback: str) -> str:
    """The line of a Python traceback that names the error: the first that is not indented."""
    found = (line for line in traceback.splitlines() if line.strip() and not line.startswith((" ", "\t")))
    return next(found, "an error without a text")
