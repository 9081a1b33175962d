"""Adapters that need a Spark session: reading MM2's topics, and Kafka's Java Admin in the session's JVM."""
