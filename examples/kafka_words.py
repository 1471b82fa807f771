"""Counts the words of a Kafka topic into another one, each count exactly once for readers of committed records.

    python -m scripts.kafka_broker texts counts         # a broker to try it on, in another terminal
    python -m examples.kafka_words texts counts

Stop it with Ctrl-C or kill -9 and start it again: it continues where it stopped.
"""

from pathlib import Path

import click
from pyspark.sql import DataFrame, SparkSession

import elastic
from elastic.operators import CountByKey
from elastic.results import KafkaSink
from scripts.kafka_broker import connector_jars, connector_package, find_kafka


@click.command()
@click.argument("texts")
@click.argument("counts")
@click.option("--brokers", default="127.0.0.1:9092", show_default=True, help="host:port of brokers, with commas")
@click.option("--store", default="build/kafka_words", type=click.Path(path_type=Path), help="folder for state")
@click.option("--nodes", default=2, show_default=True, help="number of nodes")
@click.option("--once", is_flag=True, help="stop after counting the available texts")
def main(texts: str, counts: str, brokers: str, store: Path, nodes: int, once: bool) -> None:
    """Count the words of the topic TEXTS, and write every new count to the topic COUNTS."""
    spark = elastic.local_session(nodes, conf=connector())
    words = read(spark, brokers, texts).selectExpr("explode(split(lower(CAST(value AS STRING)), '\\\\W+')) AS word")
    with elastic.run(
        words.where("word != ''"),
        key="word",
        operator=CountByKey(),
        name="kafka-words",
        nodes=nodes,
        store=store.absolute().as_uri(),
        sink=KafkaSink(counts, brokers, key="word"),
    ) as job:
        if once:
            job.process_all_available()
        else:
            click.echo(f"counting the words of {texts} into {counts}; stop with Ctrl-C")
            job.await_termination()


def connector() -> dict[str, str]:
    """Return Spark's configuration for its Kafka connector: the downloaded one, else Spark downloads it."""
    return {"spark.jars": connector_jars()} if find_kafka() else {"spark.jars.packages": connector_package()}


def read(spark: SparkSession, brokers: str, topic: str) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    # Of texts that their producers have committed, from the first one on.
    return reader.option("startingOffsets", "earliest").option("kafka.isolation.level", "read_committed").load()


if __name__ == "__main__":
    main()
