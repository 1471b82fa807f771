"""The front door: a stream of texts in, a running job that knows their maximal frequent patterns out."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

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
) -> elastic.Job:
    """Mine the column `text` of a streaming DataFrame; rows without a text do not count.

    With `time`, a column of timestamps, the window is one of event time, and `watermark_delay` says how late texts may
    come; without, of the time at which batches come. `settings` are what else `elastic.run` takes: `sink`, `trigger`,
    `autoscale`, `snapshot_seconds`. The job gives out what the reporter tells (pattern, change, texts), and
    `job.state(pattern, "reporter")` answers for one pattern.
    """
    # Here, once: the nodes find the compiled loops in the cache instead of compiling all at the same time.
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
