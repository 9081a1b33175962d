"""How far MirrorMaker 2 has come, judged by what it has written, and waiting for it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from tests.lab.options import MirrorOptions
from tests.lab.reading import (
    Pair,
    TopicReader,
    latest_checkpoints,
    latest_syncs,
    replicated_offsets,
    topic_reader,
)
from tests.lab.waiting import wait_until

DEADLINE_SECONDS = 180.0
POLL_SECONDS = 0.2


class MirrorProgress:
    """Watches one flow from outside, through the two clusters' addresses."""

    def __init__(self, options: MirrorOptions, source_bootstrap: str, target_bootstrap: str) -> None:
        self.options = options
        self.source_bootstrap = source_bootstrap
        self.target_bootstrap = target_bootstrap

    def wait_until_replicated(
        self, topics: Iterable[str], deadline_seconds: float = DEADLINE_SECONDS, compare_last: bool = True
    ) -> None:
        """Wait until every record of the given source topics is on the target, with no copying under way.

        Per source partition, three things: MM2's own offsets have reached the last record that it can see
        (markers and, when it reads committed records only, aborted ones do not count); the last record of
        the copy has the same key and value; and the copy's end is the same in two looks in a row. The
        first one is what counts after a kill -9, when MM2 copies again what it had not recorded; the second
        one after a topic was created anew, when MM2's offsets are still those of the old one.
        Set `compare_last` to False for a copy that somebody else writes to as well.
        """
        wanted = sorted(topics)
        behind: list[str] = []
        ends: list[dict[tuple[str, int], int]] = [{}]

        def copied() -> bool:
            with self._readers() as (source, target):
                behind[:] = self._behind(source, target, wanted, compare_last)
                now = self._ends(target, wanted)
            same, ends[0] = now == ends[0], now
            return not behind and same

        wait_until(
            copied,
            deadline_seconds,
            f"the copies of {', '.join(wanted)}",
            lambda: "; ".join(behind) or "the copies still grow",
            POLL_SECONDS,
        )

    def wait_checkpoints(
        self,
        groups: Iterable[str],
        deadline_seconds: float = DEADLINE_SECONDS,
        caught_up: bool = False,
        quiet_seconds: float = 3.0,
    ) -> None:
        """Wait until every group has a checkpoint and MM2 has no news about offsets any more.

        No news means that nothing was added to the checkpoints and offset syncs for `quiet_seconds` (0 to
        do without). MM2 rightly writes no checkpoint for some partitions, for example when a group is behind
        the oldest sync it knows, so one partition per group is enough. With `caught_up`, a partition whose
        records a group has consumed to the last one must also have its final checkpoint, the one that
        points behind the last record of the copy; call it when the source is quiet, and replicated.
        """
        wanted = sorted(groups)
        missing: list[str] = []
        seen: list[tuple[float, tuple[int, ...]]] = [(time.monotonic(), ())]

        def there() -> bool:
            with self._readers() as (source, target):
                missing[:] = self._missing_checkpoints(source, target, wanted, caught_up)
                ends = self._news_ends(source, target)
            if ends != seen[0][1] or missing:
                seen[0] = (time.monotonic(), ends)
            return not missing and time.monotonic() - seen[0][0] >= quiet_seconds

        wait_until(
            there,
            deadline_seconds,
            f"checkpoints of {', '.join(wanted)}",
            lambda: "; ".join(missing) or "checkpoints or syncs still being added",
            POLL_SECONDS,
        )

    def checkpoints(self) -> dict[tuple[str, str, int], Pair]:
        """(group, target topic, partition) -> the newest checkpoint."""
        with topic_reader(self.target_bootstrap) as target:
            return latest_checkpoints(target, self.options.checkpoints_topic)

    def recorded(self) -> dict[tuple[str, int], int]:
        """(source topic, partition) -> the last source offset that MM2 has recorded as copied."""
        with topic_reader(self.target_bootstrap) as target:
            return replicated_offsets(target, self.options.connect_offsets_topic, self.options.source_alias)

    def recorded_end(self) -> int:
        """How many times MM2 has recorded how far it is; its heartbeats make it do so every second."""
        topic = self.options.connect_offsets_topic
        with topic_reader(self.target_bootstrap) as target:
            return sum(target.bounds(topic, p)[1] for p in target.partitions(topic))

    def missing_topics(self) -> list[str]:
        """MM2's internal topics that are not there yet."""
        options = self.options
        with self._readers() as (source, target):
            places = [(target, options.connect_offsets_topic), (target, "heartbeats")]
            if options.emit_offsets:
                places.append((target, options.checkpoints_topic))
                places.append((target if self._syncs_on_target else source, options.offset_syncs_topic))
            return [topic for reader, topic in places if not reader.partitions(topic)]

    def heartbeats_end(self) -> int:
        """The end of the heartbeats topic; 0 while there is none."""
        with topic_reader(self.target_bootstrap) as target:
            return target.bounds("heartbeats", 0)[1] if target.partitions("heartbeats") else 0

    def has_heartbeat_from(self, offset: int) -> bool:
        """Whether the heartbeats topic has a committed record at or after an offset."""
        with topic_reader(self.target_bootstrap) as target:
            if not target.partitions("heartbeats"):
                return False
            return any(True for _ in target.records("heartbeats", 0, offset))

    @contextmanager
    def _readers(self) -> Iterator[tuple[TopicReader, TopicReader]]:
        """Readers of the source, which see what MM2 sees, and of the target."""
        with (
            topic_reader(self.source_bootstrap, self.options.exactly_once) as source,
            topic_reader(self.target_bootstrap) as target,
        ):
            yield source, target

    @property
    def _syncs_on_target(self) -> bool:
        return self.options.offset_syncs_location == "target"

    def _behind(self, source: TopicReader, target: TopicReader, topics: list[str], compare_last: bool) -> list[str]:
        recorded = replicated_offsets(target, self.options.connect_offsets_topic, self.options.connectors_source_alias)
        behind = []
        for topic in topics:
            copy = self.options.target_topic(topic)
            partitions, copied_partitions = source.partitions(topic), target.partitions(copy)
            if not partitions:
                behind.append(f"{topic} is not on the source")
            for partition in partitions:
                last = source.last_record(topic, partition)
                at = recorded.get((topic, partition), -1)
                if partition not in copied_partitions:
                    behind.append(f"{copy}-{partition} is not on the target")
                elif last is None:
                    continue
                elif at < last.offset:
                    behind.append(f"{topic}-{partition} copied to {at} of {last.offset}")
                elif compare_last:
                    copied = target.last_record(copy, partition)
                    if copied is None or (copied.key, copied.value) != (last.key, last.value):
                        behind.append(f"{copy}-{partition} does not end with the record {last.offset}")
        return behind

    def _ends(self, target: TopicReader, topics: list[str]) -> dict[tuple[str, int], int]:
        copies = [self.options.target_topic(topic) for topic in topics]
        return {
            (copy, partition): target.bounds(copy, partition)[1]
            for copy in copies
            for partition in target.partitions(copy)
        }

    def _news_ends(self, source: TopicReader, target: TopicReader) -> tuple[int, ...]:
        syncs_reader = target if self._syncs_on_target else source
        places = [(target, self.options.checkpoints_topic), (syncs_reader, self.options.offset_syncs_topic)]
        return tuple(reader.bounds(topic, 0)[1] if reader.partitions(topic) else 0 for reader, topic in places)

    def _missing_checkpoints(
        self, source: TopicReader, target: TopicReader, groups: list[str], caught_up: bool
    ) -> list[str]:
        checkpoints = latest_checkpoints(target, self.options.checkpoints_topic)
        missing = [group for group in groups if not any(group == key[0] for key in checkpoints)]
        if missing or not caught_up:
            return missing
        syncs = latest_syncs(target if self._syncs_on_target else source, self.options.offset_syncs_topic)
        for group in groups:
            for (topic, partition), committed in self.committed(group).items():
                last = source.last_record(topic, partition)
                if last is None or committed <= last.offset:
                    continue
                sync = syncs.get((topic, partition))
                found = checkpoints.get((group, self.options.target_topic(topic), partition))
                if sync is None or sync.upstream != last.offset:
                    missing.append(f"sync of {topic}-{partition} at {last.offset}")
                elif found is None or found.downstream != sync.downstream + 1:
                    missing.append(f"{group} on {topic}-{partition} at the end")
        return missing

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """The group's committed offsets on the source."""
        admin = AdminClient({"bootstrap.servers": self.source_bootstrap, "log_level": 0})
        answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
        return {
            (place.topic, place.partition): place.offset
            for place in answer.topic_partitions or []
            if place.error is None and place.offset >= 0
        }
