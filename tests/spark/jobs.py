"""What tests of running jobs share: a folder as a stream, and a job on it."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import elastic
from elastic.operators import CountByKey

SCHEMA = "key string, value long, ts timestamp"


class Feed:
    """A stream of JSON files; every `send` is at least one batch of its own, once it is processed."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def frame(self, schema: str = SCHEMA) -> DataFrame:
        return self._spark.readStream.schema(schema).json(str(self._folder))

    def send(self, *rows: dict[str, Any]) -> None:
        number = len(list(self._folder.glob("*.json")))
        written = self._folder / f".{number:06d}"  # Spark does not look at hidden files
        written.write_text("\n".join(json.dumps(row) for row in rows))
        written.rename(self._folder / f"{number:06d}.json")

    def send_keys(self, *keys: str | None) -> None:
        self.send(*({"key": key, "value": number} for number, key in enumerate(keys)))


def start(frame: DataFrame, store: Path, **changes: Any) -> "elastic.Job":
    """A small counting job, unless told otherwise."""
    settings: dict[str, Any] = {
        "key": "key",
        "operator": CountByKey(),
        "name": "counts",
        "nodes": 2,
        "tasks": 8,
        "store": store.as_uri(),
        "sink": "memory",
        **changes,
    }
    return elastic.run(frame, **settings)
