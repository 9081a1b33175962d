"""Scenes on a real MirrorMaker 2, in which every record carries an identity of its own in its header `id`.

A scene keeps what it wrote and committed itself, and reads both logs raw: together that is the truth by which
`oracle` judges. Names carry a random suffix, so that many scenes fit on one lab; what else is random follows
from a seed.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random, SystemRandom
from typing import Any

from confluent_kafka import (
    KafkaError,
    Message,
    Producer,
)

from tests.integration import oracle
from tests.integration.clusters import (
    CALL_SECONDS,
    QUIET,
    Commits,
    Partition,
    all_syncs,
    bounds,
    by_place,
    commit,
    create_topic,
    partitions_of,
    read_logs,
    recreate_topic,
)
from tests.integration.lookalikes import told_apart
from tests.integration.oracle import Truth, Written
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until

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

    `written` holds every record ever written, aborted ones too; `commits` the committed source offsets. `extras` are
    further headers: name, value, and the share of the records that carry it; `carriers` says which ones do. `bare`
    is the share of the records without any header, whose identity stands at the beginning of their value. `twins`
    is the share of the records that look in every part like others, neighbours mostly; `looks` says how they look.
    `keys` holds each record's key, `tombstones` those without a value, `compacted` the topics that a cleaner works on.
    """

    lab: Lab
    name: str
    seed: int
    dice: Random = field(init=False)
    suffix: str = field(init=False)
    topics: dict[str, int] = field(default_factory=dict)
    written: dict[Partition, list[Written]] = field(default_factory=dict)
    commits: Commits = field(default_factory=dict)
    kills: int = 0
    extras: Sequence[tuple[str, bytes | None, float]] = ()
    carriers: dict[str, set[str]] = field(default_factory=dict)
    bare: float = 0.0
    twins: float = 0.0
    keys: dict[str, str] = field(default_factory=dict)
    looks: dict[str, str] = field(default_factory=dict)
    tombstones: set[str] = field(default_factory=set)
    compacted: set[str] = field(default_factory=set)
    _bursts: dict[Partition, list[tuple[int, str]]] = field(default_factory=dict)
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
        if "compact" in (config or {}).get("cleanup.policy", ""):
            self.compacted.add(topic)
        for p in range(partitions):
            self.written[topic, p] = []
        return topic

    def create_anew(self, topic: str) -> None:
        """Delete a source topic and create it again: what was written there, and committed, is no more."""
        recreate_topic(self.lab.source_bootstrap, topic, self.topics[topic])
        for p in range(self.topics[topic]):
            self.written[topic, p] = []
            for places in self.commits.values():
                places.pop((topic, p), None)

    @property
    def partitions(self) -> list[Partition]:
        return sorted(self.written)

    @property
    def records(self) -> int:
        """How many records were written, aborted ones too."""
        return sum(map(len, self.written.values()))

    @property
    def places(self) -> dict[tuple[str, str, int], int]:
        """The committed source offset of every group, topic and partition."""
        return by_place(self.commits)

    # Writing

    @property
    def now_ms(self) -> int:
        """The scene's own time; records that are written now have one within a minute of it."""
        return self._clock_ms

    def let_pass(self, milliseconds: int) -> None:
        """Let the scene's own clock run on before the next record."""
        self._clock_ms += milliseconds

    def write(self, partitions: Collection[Partition], records: int, jitter_ms: int = 60_000) -> None:
        """Write plain records with keys and values that often look alike, in no good order of time."""
        producer = self._producer()
        for _ in range(records):
            topic, p = self.dice.choice(sorted(partitions))
            self._clock_ms += 5
            at = self._clock_ms + self.dice.randint(-jitter_ms, jitter_ms)
            self._send(producer, topic, p, f"k{self.dice.randrange(50)}", "v" * self.dice.randrange(200), at)
        self._finish(producer)

    def write_synced_early(self, partitions: Collection[Partition], records: int) -> None:
        """Write plain records, of which MM2 knows a sync at the beginning: it can translate every commit among them.

        MM2 lets a newer sync replace one that still waits, and writes no checkpoint of a commit below its first.
        """
        for place in partitions:
            self.write([place], 1)
        wait_until(lambda: all_syncs(self.lab).keys() >= set(partitions), CALL_SECONDS, "a sync of every partition")
        self.write(partitions, records - len(partitions))

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

    @contextmanager
    def open_transaction(self, place: Partition, records: int) -> Iterator[None]:
        """Write records in a transaction that is open within the block, and is aborted at its end."""
        producer = self._producer(transactional=True)
        producer.init_transactions(CALL_SECONDS)
        producer.begin_transaction()
        for _ in range(records):
            self._clock_ms += 5
            self._send(producer, *place, f"k{self.dice.randrange(50)}", "t", self._clock_ms, committed=False)
        self._finish(producer)
        try:
            yield
        finally:
            producer.abort_transaction(CALL_SECONDS)

    def write_locally(self, partitions: Collection[Partition], records: int) -> None:
        """Write to the copies on the target, as a stranger there does; such records are nobody's here."""
        producer = self._producer(self.lab.target_bootstrap)
        for _ in range(records):
            topic, p = self.dice.choice(sorted(partitions))
            at = self._clock_ms + self.dice.randint(-1000, 1000)
            headers: dict[str, str | bytes | None] = {"id": f"local-{next(self._numbers)}".encode()}
            key = f"k{self.dice.randrange(50)}"
            producer.produce(self.copy(topic), "v" * self.dice.randrange(200), key, p, timestamp=at, headers=headers)
        self._finish(producer)

    def _producer(self, bootstrap: str | None = None, transactional: bool = False) -> Producer:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap or self.lab.source_bootstrap,
            "enable.idempotence": True,
            "linger.ms": 2,
            "queue.buffering.max.messages": 1_000_000,
            **QUIET,
        }
        if transactional:
            settings["transactional.id"] = f"{self.suffix}-{next(self._numbers)}"
            # A busy machine takes longer for a command than the minute after which brokers abort by default.
            settings["transaction.timeout.ms"] = 600_000
        return Producer(settings)

    def _send(
        self, producer: Producer, topic: str, p: int, key: str, value: str | None, at: int, committed: bool = True
    ) -> None:
        name = f"{topic}/{p}/{next(self._numbers)}"

        def delivered(problem: KafkaError | None, message: Message) -> None:
            assert problem is None, f"writing {name}: {problem}"
            self.written[topic, p].append(Written(message.offset() or 0, name, committed))

        headers: dict[str, str | bytes | None] = {"id": name.encode()}
        if self.twins and self.dice.random() < self.twins:
            at, key = self._like_others((topic, p), at, key)
            self.looks[name] = value = f"twin-{at}-{key}"
            headers = {}
        self.keys[name] = key
        if value is None:
            self.tombstones.add(name)
        if self.bare and value is not None and self.dice.random() < self.bare:
            headers, value = {}, f"{name} {value}"
        for header, content, share in self.extras if headers else ():
            if self.dice.random() < share:
                headers[header] = content
                self.carriers.setdefault(header, set()).add(name)
        producer.produce(topic, value, key, p, on_delivery=delivered, timestamp=at, headers=headers)
        producer.poll(0)

    def _like_others(self, place: Partition, at: int, key: str) -> tuple[int, str]:
        """Time and key of the record before, of one long ago, or of a new kind."""
        known, chance = self._bursts.setdefault(place, []), self.dice.random()
        if not known or chance < 0.35:
            known.append((at, key))
        elif chance < 0.45:
            known.append(self.dice.choice(known))
        return known[-1]

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

    def wait_replicated(self, compare_last: bool = True) -> None:
        self.lab.mirror.wait_until_replicated(self.topics, compare_last=compare_last)

    # Truth

    def contradictions(self, truth: Mapping[Partition, Truth]) -> list[str]:
        """What is wrong with a truth that was read: then nothing may be judged by it."""
        return [
            f"{topic}-{p}: {complaint}"
            for (topic, p), place in truth.items()
            for complaint in oracle.contradictions(place, topic in self.compacted)
        ]

    def truth(self) -> dict[Partition, Truth]:
        """Read both logs as they are now, and put them beside what was written; by source partition."""
        source = read_logs(self.lab.source_bootstrap, self.partitions)
        target = read_logs(self.lab.target_bootstrap, [(self.copy(t), p) for t, p in self.partitions])
        found = {}
        for (t, p), written in self.written.items():
            original, copy = source[t, p], target[self.copy(t), p]
            if self.looks:
                original = told_apart(written, original, self.looks)
                copy = told_apart(written, copy, self.looks)
            found[t, p] = Truth(tuple(written), original, copy)
        return found
