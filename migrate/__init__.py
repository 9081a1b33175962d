"""mm2-migrate: move Kafka consumer groups to the cluster that MirrorMaker 2 has been filling.

Importing this package imports neither pyspark nor confluent_kafka: `--help` and `show` answer at once.
"""

__version__ = "0.1.0"
