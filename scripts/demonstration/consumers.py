"""Real consumers: they join their group, start where it stands, and read to the ends of the logs."""

from collections.abc import Mapping
from contextlib import ExitStack

from confluent_kafka import Consumer, KafkaError, Message

from scripts.demonstration.counting import Copy
from scripts.demonstration.stage import DemoError
from scripts.demonstration.traffic import Place
from tests.lab.reading import topic_reader
from tests.lab.waiting import wait_until

READ_SECONDS = 180.0


def identity(message: Message) -> str:
    """The record's own name, from its header `id`; "?" where it has none."""
    for name, value in list(message.headers() or []):
        if name == "id" and value is not None:
            return value.decode() if isinstance(value, bytes) else str(value)
    return "?"


class GroupReader:
    """The only member of a group. `read` holds the identities that it was given, by topic and partition."""

    def __init__(self, bootstrap: str, group: str, topic: str, partitions: int) -> None:
        self.group = group
        self.read: dict[Place, list[str]] = {(topic, p): [] for p in range(partitions)}
        self.waiting = set(self.read)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "allow.auto.create.topics": False,
                "fetch.wait.max.ms": 20,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])

    def poll(self) -> None:
        for message in self._consumer.consume(5000, 0.02):
            problem = message.error()
            place = (message.topic() or "", message.partition() or 0)
            if problem is None:
                self.read[place].append(identity(message))
            elif problem.code() == KafkaError._PARTITION_EOF:
                self.waiting.discard(place)
            elif not problem.retriable() and problem.code() != KafkaError._TRANSPORT:
                raise DemoError(f"the consumer of {self.group} failed: {problem.str()}")

    def close(self) -> None:
        """Leave the group, and commit where it stands."""
        self._consumer.close()


def read_as_groups(bootstrap: str, topics: Mapping[str, tuple[str, int]]) -> dict[str, dict[Place, list[str]]]:
    """Let every group read its topic (given with its partition count) to the end, all at the same time."""
    with ExitStack() as stack:
        readers = []
        for group, (topic, partitions) in topics.items():
            reader = GroupReader(bootstrap, group, topic, partitions)
            stack.callback(reader.close)
            readers.append(reader)

        def done() -> bool:
            for reader in readers:
                if reader.waiting:
                    reader.poll()
            return not any(reader.waiting for reader in readers)

        wait_until(
            done,
            READ_SECONDS,
            "the consumers to reach the ends",
            lambda: ", ".join(f"{r.group}: {sorted(r.waiting)}" for r in readers if r.waiting),
            poll_seconds=0.0,
        )
        return {reader.group: reader.read for reader in readers}


def copies(bootstrap: str, topic: str, partitions: int) -> dict[Place, list[Copy]]:
    """Read a whole topic without a group."""
    with topic_reader(bootstrap) as reader:
        return {
            (topic, p): [Copy(m.offset() or 0, identity(m)) for m in reader.records(topic, p)]
            for p in range(partitions)
        }
