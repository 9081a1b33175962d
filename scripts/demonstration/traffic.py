"""The source's traffic: five topics, some 44,000 records, each with an identity of its own in its header `id`."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from confluent_kafka import KafkaError, Message, Producer

from scripts.demonstration.counting import Written
from scripts.demonstration.stage import DemoError
from tests.lab.cluster import Cluster

Place = tuple[str, int]
"""A topic and a partition, by the source's names."""

CALL_SECONDS = 30.0
ROUNDS = 100
ROUNDS_AT_FIRST = 50
ROUND_SECONDS = 0.05
ABORT_EVERY = 5
CUSTOMERS = 400


@dataclass(frozen=True, slots=True)
class Topic:
    """`partitions` are written to in turn; `empty` more follow that never get a record."""

    name: str
    partitions: int
    records: int
    empty: int = 0
    transactional: bool = False
    compacted: bool = False


TOPICS = (
    Topic("orders", 3, 24_000),
    Topic("payments", 2, 8_000, transactional=True),
    Topic("customers", 1, 4_000, compacted=True),
    Topic("clicks", 2, 8_000),
    Topic("returns", 1, 400, empty=1),
)
COMPACTION = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}


class Traffic:
    """Producers on the source. `written` keeps every record by the offset at which it was acknowledged."""

    def __init__(self, source: Cluster) -> None:
        self.source = source
        self.written: dict[Place, list[Written]] = {}
        self.aborted = 0
        self._numbers: Iterator[int] = count()
        self._trouble: list[BaseException] = []
        self._ended = threading.Event()
        self._may_go_on = threading.Event()
        self._thread = threading.Thread(target=self._write_everything, daemon=True)

    def create_topics(self) -> None:
        for topic in TOPICS:
            partitions = topic.partitions + topic.empty
            self.source.create_topic(topic.name, partitions, COMPACTION if topic.compacted else None)
            self.written.update({(topic.name, p): [] for p in range(partitions)})

    def start(self) -> None:
        """Begin to write, in a thread of its own: half of all, and the other half from `go_on` on."""
        self._thread.start()

    def go_on(self) -> None:
        self._may_go_on.set()

    def raise_trouble(self) -> None:
        """Raise what went wrong in the thread."""
        if self._trouble:
            raise self._trouble[0]

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def finish(self) -> None:
        """Wait until everything is written and acknowledged."""
        self._thread.join(120)
        if self._thread.is_alive():
            raise DemoError("the producers did not come to their end within 120 s.")
        self.raise_trouble()

    @property
    def records(self) -> int:
        return sum(len(records) for records in self.written.values())

    def _write_everything(self) -> None:
        try:
            plain, transactional = self._producer(), self._producer({"transactional.id": "payments-app"})
            transactional.init_transactions(CALL_SECONDS)
            for number in range(ROUNDS):
                if number == ROUNDS_AT_FIRST:
                    plain.flush(CALL_SECONDS)
                    self._may_go_on.wait()
                for topic in TOPICS:
                    if topic.transactional:
                        # The last one is committed: then the log's last record is one that readers see.
                        self._write_transaction(transactional, topic, aborted=number % ABORT_EVERY == 1)
                    else:
                        self._write_round(plain, topic)
                plain.poll(0)
                self._ended.wait(ROUND_SECONDS)  # the pace of live traffic, which is about 8,000 records a second
            if plain.flush(CALL_SECONDS) or transactional.flush(CALL_SECONDS):
                raise DemoError("not all records were acknowledged in time.")
        except BaseException as error:
            self._trouble.append(error)

    def _write_transaction(self, producer: Producer, topic: Topic, aborted: bool) -> None:
        producer.begin_transaction()
        self._write_round(producer, topic, committed=not aborted)
        if aborted:
            # Flushed, or the records would be dropped on this side instead of aborted on the broker's.
            producer.flush(CALL_SECONDS)
            producer.abort_transaction(CALL_SECONDS)
            self.aborted += topic.records // ROUNDS
        else:
            producer.commit_transaction(CALL_SECONDS)

    def _write_round(self, producer: Producer, topic: Topic, committed: bool = True) -> None:
        for i in range(topic.records // ROUNDS):
            number = next(self._numbers)
            key = f"c{number % CUSTOMERS}" if topic.compacted else f"k{number}"
            self._send(producer, topic.name, i % topic.partitions, key, f"{topic.name}/{number}", committed)

    def _send(self, producer: Producer, topic: str, partition: int, key: str, name: str, committed: bool) -> None:
        def delivered(problem: KafkaError | None, message: Message) -> None:
            if problem is not None:
                raise DemoError(f"writing to {topic} failed: {problem.str()}")
            self.written[topic, partition].append(Written(message.offset() or 0, name, key, committed))

        producer.produce(
            topic, f"this is {name}", key, partition, on_delivery=delivered, headers=[("id", name.encode())]
        )

    def _producer(self, more: dict[str, str] | None = None) -> Producer:
        settings = {
            "bootstrap.servers": self.source.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
        }
        return Producer(settings | (more or {}))
