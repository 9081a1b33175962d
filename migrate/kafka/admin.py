"""The writing half of the confluent-kafka adapter. It works in the process of `migrate.kafka.host` alone."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from operator import attrgetter
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from migrate.commit_table import CommitTable, has_metadata
from migrate.kafka.cluster_reader import ConfluentReader
from migrate.kafka.connection import LONGEST
from migrate.kafka.errors import failure_of
from migrate.kafka.frames import NOT_EXACT
from migrate.model import Commits, Failure, TopicPartition
from migrate.ports import Outcomes
from migrate.progress import batches

# More in one request than the offsets topic's batch limit allows is INVALID_COMMIT_OFFSET_SIZE.
ALTER_BATCH = 2000
# Groups of one chunk of `apply.write`, which are written before the next is sent, go over all connections.
WORTH_A_WRITER = 150
_PLACE = attrgetter("topic", "partition")


class ConfluentAdmin(ConfluentReader):
    """Reads one cluster, and alters its groups."""

    def alter(self, commits: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets, at most 2000 partitions per request.

        A group with metadata is left untouched and fails: librdkafka's Python client adds a NUL byte to it.
        """
        results: dict[str, dict[TopicPartition, Failure | None]] = {group: {} for group in commits}
        tables, remaining = {group: CommitTable.of(offsets) for group, offsets in commits.items()}, {}
        for group, offsets in tables.items():
            if has_metadata(offsets):
                results[group] = dict.fromkeys(offsets, NOT_EXACT)
            else:
                remaining[group] = batches(sorted(offsets), ALTER_BATCH)
        while parts := {group: part for group, rest in remaining.items() if (part := next(rest, None))}:
            for group, answer in self._alter_once(tables, parts).items():
                results[group] |= _results(parts[group], answer)
        return results

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, Failure | None]:
        """Delete empty groups with all their offsets; a group that is already gone is a `Failure`."""

        def submit(client: AdminClient, group: str) -> "Future[Any]":
            return client.delete_consumer_groups([group], **LONGEST)[group]

        answers = self._connection.gather(sorted(set(groups)), submit, self._concurrency, writing=True)
        return {group: answer if isinstance(answer, Failure) else None for group, answer in answers.items()}

    def _alter_once(
        self, tables: Mapping[str, CommitTable], parts: Mapping[str, Sequence[TopicPartition]]
    ) -> dict[str, Any]:
        def submit(client: AdminClient, group: str) -> "Future[Any]":
            # Without `metadata` and leader epoch: "" would be stored as a NUL byte, and the source's epoch
            # would feed the consumer's truncation check on the target.
            offsets = [KafkaPartition(*place, tables[group].at(place)) for place in parts[group]]
            request = [ConsumerGroupTopicPartitions(group, offsets)]
            return client.alter_consumer_group_offsets(request, **LONGEST)[group]

        return self._gathered(sorted(parts), submit, WORTH_A_WRITER, writing=True)


def _results(part: Sequence[TopicPartition], answer: Any) -> dict[TopicPartition, Failure | None]:
    if isinstance(answer, Failure):
        return dict.fromkeys(part, answer)
    answers = answer.topic_partitions or ()
    # By identity: comparing a KafkaError with None leaves a Python exception pending.
    if all(p.error is None for p in answers) and list(map(_PLACE, answers)) == list(part):
        return dict.fromkeys(part)
    # An answer that leaves a partition out says nothing about it: read back before deciding.
    unanswered = Failure("NO_ANSWER", "the answer leaves this partition out", True, True)
    failures = {
        TopicPartition(p.topic, p.partition): None if p.error is None else failure_of(p.error, writing=True)
        for p in answers
    }
    return {partition: failures.get(partition, unanswered) for partition in part}
