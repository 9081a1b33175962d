"""Scenes on a real MirrorMaker 2, in which every record carries an identity of its own in its header `id`.

A scene keeps what it wrote and committed itself, and reads both logs raw: together that is the truth by which
`oracle` judges. Names carry a random suffix, so that many scenes fit on one lab; what else is random follows
from a seed.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random, SystemRandom
from typing import Any

from confluent_kafka import (
    KafkaError,
    Message,
    Producer,
)

from tests.integration.clusters import (
    CALL_SECONDS,
    QUIET,
    AnyLab,
    Commits,
    Partition,
    bounds,
    commit,
    create_topic,
    partitions_of,
    read_logs,
)
from tests.integration.oracle import Truth, Written

# Every batch of the compacted topic lies this far behind the one before it, in record time: a new segment.
SEGMENT_MS = 1000
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": str(SEGMENT_MS),
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}


@dataclass(repr=False)
class Scene:
    """Topics that the scene writes to on the source, and the groups that it commits for.

    `written` holds every record ever written, aborted ones too; `commits` the committed source offsets.
    """

    lab: AnyLab
    name: str
    seed: int
    dice: Random = field(init=False)
    suffix: str = field(init=False)
    topics: dict[str, int] = field(default_factory=dict)
    written: dict[Partition, list[Written]] = field(default_factory=dict)
    commits: Commits = field(default_factory=dict)
    kills: int = 0
    _numbers: Iterator[int] = field(default_factory=count)
    _clock_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)
        self.suffix = f"{self.name}-{SystemRandom().randrange(16**6):06x}"
        # An hour ago, so that the scene's own clock may run ahead of the real one without reaching the future.
        self._clock_ms = int(time.time() * 1000) - 3_600_000

    def __repr__(self) -> str:
        return f"scene {self.suffix} (seed {self.seed})"

    def topic(self, name: str) -> str:
        return f"{name}-{self.suffix}"

    def group(self, name: str) -> str:
        return f"{name}-{self.suffix}"

    def copy(self, topic: str) -> str:
        return self.lab.options.target_topic(topic)

    def create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> str:
        topic = self.topic(name)
        create_topic(self.lab.source_bootstrap, topic, partitions, config)
        self.topics[topic] = partitions
        for p in range(partitions):
            self.written[topic, p] = []
        return topic

    @property
    def partitions(self) -> list[Partition]:
        return sorted(self.written)

    @property
    def places(self) -> dict[tuple[str, str, int], int]:
        """The committed source offset of every group, topic and partition."""
        return {(g, t, p): offset for g, at in self.commits.items() for (t, p), offset in at.items()}

    # Writing

    def write(self, partitions: Collection[Partition], records: int, jitter_ms: int = 60_000) -> None:
        """Write plain records with keys and values that often look alike, in no good order of time."""
        producer = self._producer()
        for _ in range(records):
            topic, p = self.dice.choice(sorted(partitions))
            self._clock_ms += 5
            at = self._clock_ms + self.dice.randint(-jitter_ms, jitter_ms)
            self._send(producer, topic, p, f"k{self.dice.randrange(50)}", "v" * self.dice.randrange(200), at)
        self._finish(producer)

    def write_compacted(self, partitions: Collection[Partition], records: int, keys: int = 600) -> None:
        """Write few keys again and again, tombstones among them, in steps that each end a segment."""
        producer = self._producer()
        for i in range(records):
            topic, p = self.dice.choice(sorted(partitions))
            value = None if self.dice.random() < 0.05 else "c" * self.dice.randrange(100)
            self._send(producer, topic, p, f"k{self.dice.randrange(keys)}", value, self._clock_ms)
            if i % 250 == 249:
                producer.flush(CALL_SECONDS)
                self._clock_ms += 2 * SEGMENT_MS
        self._finish(producer)

    def write_transactions(
        self, partitions: Collection[Partition], records: int, abort: float = 0.25, longest: int = 60
    ) -> None:
        """Write transactions of 1 to `longest` records over all partitions; some are aborted."""
        producer = self._producer(transactional=True)
        producer.init_transactions(CALL_SECONDS)
        left = records
        while left > 0:
            size = min(left, self.dice.randint(1, longest))
            left -= size
            committed = self.dice.random() >= abort
            producer.begin_transaction()
            for _ in range(size):
                topic, p = self.dice.choice(sorted(partitions))
                self._clock_ms += 5
                key, value = f"k{self.dice.randrange(50)}", "t" * self.dice.randrange(100)
                self._send(producer, topic, p, key, value, self._clock_ms, committed)
            assert producer.flush(CALL_SECONDS) == 0, "a transaction's records were not written in time"
            if committed:
                producer.commit_transaction(CALL_SECONDS)
            else:
                producer.abort_transaction(CALL_SECONDS)

    def _producer(self, transactional: bool = False) -> Producer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.lab.source_bootstrap,
            "enable.idempotence": True,
            "linger.ms": 2,
            "queue.buffering.max.messages": 1_000_000,
            **QUIET,
        }
        if transactional:
            settings["transactional.id"] = f"{self.suffix}-{next(self._numbers)}"
        return Producer(settings)

    def _send(
        self, producer: Producer, topic: str, p: int, key: str, value: str | None, at: int, committed: bool = True
    ) -> None:
        name = f"{topic}/{p}/{next(self._numbers)}"

        def delivered(problem: KafkaError | None, message: Message) -> None:
            assert problem is None, f"writing {name}: {problem}"
            self.written[topic, p].append(Written(message.offset() or 0, name, committed))

        headers: dict[str, str | bytes | None] = {"id": name.encode()}
        producer.produce(topic, value, key, p, on_delivery=delivered, timestamp=at, headers=headers)
        producer.poll(0)

    def _finish(self, producer: Producer) -> None:
        assert producer.flush(CALL_SECONDS) == 0, "not all records were written in time"

    # Groups

    def source_ends(self) -> dict[Partition, tuple[int, int]]:
        return bounds(self.lab.source_bootstrap, self.partitions)

    def commit(self, commits: Mapping[str, Mapping[Partition, int]]) -> None:
        commit(self.lab.source_bootstrap, commits)
        for group, places in commits.items():
            self.commits.setdefault(group, {}).update(places)

    # MirrorMaker

    def copied(self) -> int:
        """How far the copies of this scene's topics reach, in offsets of all partitions together."""
        known = partitions_of(self.lab.target_bootstrap, [self.copy(topic) for topic in self.topics])
        return sum(high for _, high in bounds(self.lab.target_bootstrap, known).values())

    def wait_replicated(self) -> None:
        self.lab.mirror.wait_until_replicated(self.topics)

    # Truth

    def truth(self) -> dict[Partition, Truth]:
        """Read both logs as they are now, and put them beside what was written; by source partition."""
        source = read_logs(self.lab.source_bootstrap, self.partitions)
        target = read_logs(self.lab.target_bootstrap, [(self.copy(t), p) for t, p in self.partitions])
        return {
            (t, p): Truth(tuple(written), source[t, p], target[self.copy(t), p])
            for (t, p), written in self.written.items()
        }
