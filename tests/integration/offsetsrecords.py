"""What scenes put into an offsets topic, and what they find there by themselves."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.integration.clusters import CALL_SECONDS, QUIET, commit, commits_on
from tests.lab.reading import as_bytes, split_string, topic_reader
from tests.lab.waiting import wait_until


@contextmanager
def sent_in_transaction(bootstrap: str, group: str, topic: str) -> Iterator[Producer]:
    """A producer that has sent an offset of 99 in a transaction, which it has not ended."""
    lasting = {"transactional.id": f"id-{group}", "transaction.timeout.ms": 900_000}
    producer = Producer({"bootstrap.servers": bootstrap, **lasting, **QUIET})
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})) as consumer:
        producer.init_transactions(CALL_SECONDS)
        producer.begin_transaction()
        place = [TopicPartition(topic, 0, 99)]
        producer.send_offsets_to_transaction(place, consumer.consumer_group_metadata(), CALL_SECONDS)
        yield producer


def in_transaction(bootstrap: str, outcome: str, stack: ExitStack) -> Producer:
    """Commit in a transaction that is committed, aborted or stays open, over a commit that stands; return who did."""
    group = f"transaction-{outcome}"
    commit(bootstrap, {group: {("t", 0): 1}})
    producer = stack.enter_context(sent_in_transaction(bootstrap, group, "t"))
    if outcome == "committed":
        producer.commit_transaction(CALL_SECONDS)
        wait_until(lambda: commits_on(bootstrap, [group]) == {group: {("t", 0): 99}}, CALL_SECONDS, "the commit")
    elif outcome == "aborted":
        producer.abort_transaction(CALL_SECONDS)
    else:
        stack.callback(ended, producer)
    return producer


def ended(producer: Producer) -> None:
    """Abort a transaction, unless it has been committed meanwhile."""
    with suppress(KafkaException):
        producer.abort_transaction(CALL_SECONDS)


def partition_of(group: str, partitions: int) -> int:
    """The offsets topic's partition, as `Utils.abs(groupId.hashCode()) % n` has it; for names in ASCII."""
    code = 0
    for letter in group:
        code = (31 * code + ord(letter)) % 2**32
    return abs(code - 2**32 if code >= 2**31 else code) % partitions


def taken_away(bootstrap: str) -> frozenset[tuple[str, str, int]]:
    """Group, topic and partition of the commits whose newest record is a tombstone, read raw."""
    newest: dict[bytes, bytes | None] = {}
    with topic_reader(bootstrap) as reader:
        for partition in reader.partitions("__consumer_offsets"):
            for message in reader.records("__consumer_offsets", partition):
                newest[as_bytes(message.key()) or b""] = as_bytes(message.value())
    return frozenset(place_of(key) for key, value in newest.items() if value is None and key[:2] == b"\0\1")


def place_of(key: bytes) -> tuple[str, str, int]:
    """What Kafka's OffsetCommitKey names."""
    group, rest = split_string(key[2:])
    topic, rest = split_string(rest)
    return group, topic, int.from_bytes(rest, "big")
