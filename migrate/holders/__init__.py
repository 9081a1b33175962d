"""Readers of positions that are kept outside Kafka: files, and the checkpoint folders of Spark queries."""
