"""Copies that a hand has changed."""

from confluent_kafka import Message, Producer

from tests.integration.clusters import CALL_SECONDS, QUIET, identity, read_logs, recreate_topic


def write_anew(bootstrap: str, copy: str, partitions: int, lost: str, changed: str = "") -> None:
    """Put another topic in the place of a copy, without the copies of one record, and with another value in another."""
    there = list[Message]()
    read_logs(bootstrap, [(copy, p) for p in range(partitions)], there.append)
    recreate_topic(bootstrap, copy, partitions)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    for message in there:
        name, headers = identity(message), message.headers()
        value = b"changed" if name == changed else message.value()
        if name != lost:
            at = message.timestamp()[1]
            producer.produce(copy, value, message.key(), message.partition(), timestamp=at, headers=headers)
    assert producer.flush(CALL_SECONDS) == 0
