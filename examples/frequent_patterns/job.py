"""Starts a job that mines the maximal frequent patterns of a stream of texts."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

import elastic
from examples.frequent_patterns.combinations import warm_up
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.pipeline import stages
from examples.frequent_patterns.window import TEXT


def patterns_job(
    texts: DataFrame,
    *,
    store: str,
    mining: Mining | None = None,
    name: str = "patterns",
    nodes: int = 4,
    tasks: int = 32,
    text: str = TEXT,
    time: str | None = None,
    **settings: Any,
) -> elastic.SparkJob:
    """Mine the column `text` of a streaming DataFrame; rows without a text are ignored.

    With `time`, a column of timestamps, the window is one of event time, and `watermark_delay` is the allowed lateness;
    without it, the window is one of processing time. `settings` are further arguments of `elastic.run`: `sink`,
    `trigger`, `autoscale`, `snapshot_seconds`. The job emits the reporter's changes (pattern, change, texts), and
    `job.state(pattern, "reporter")` returns the state of one pattern.
    """
    # Compile once here, so that the nodes find the loops in the cache.
    warm_up()
    columns = [F.col(text).alias(TEXT), *([] if time is None else [F.col(time)])]
    return elastic.run(
        texts.select(*columns).where(F.col(TEXT).isNotNull()),
        key=TEXT,
        operator=stages(mining or Mining(), time),
        name=name,
        nodes=nodes,
        tasks=tasks,
        store=store,
        event_time=time,
        **settings,
    )
