"""The Kafka sink: results as records of a topic, each batch in one transaction."""

from elastic.results.kafka.sink import KafkaSink

__all__ = ["KafkaSink"]
