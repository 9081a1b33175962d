"""A lab on one machine: real Kafka clusters and a real dedicated MirrorMaker 2, started from Kafka's jars."""
