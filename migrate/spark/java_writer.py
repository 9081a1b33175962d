"""Writes through Kafka's Java Admin what librdkafka cannot: metadata byte for byte, and no offset at all.

Calls of a batch are all in flight before the first answer is waited for. Java's client finds coordinators that have
moved by itself; what it gives up on comes back as a `Failure` per partition, never as a success of the whole.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any

from migrate.errors import ClusterError
from migrate.model import Commits, Failure, TopicPartition
from migrate.ports import Outcomes
from migrate.spark.java_client import GRACE_SECONDS, JavaClient
from migrate.spark.java_errors import java_exception
from migrate.write_outcome import PASSING

# One request becomes one batch in the offsets topic, which takes 1 MiB by default.
BATCH_CHARACTERS = 128 * 1024
BATCH_PARTITIONS = 2000
RECORD_OVERHEAD = 64
_NOT_THERE = frozenset({"GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION"})

Submit = Callable[[str, Collection[TopicPartition]], Any]


class JavaOffsetWriter:
    """Commits and removes offsets of stopped groups, as `migrate.ports.ExactClient` does."""

    def __init__(self, client: JavaClient) -> None:
        self._client = client
        # Each made once: a call into the JVM costs a tenth of a millisecond.
        make = client.kafka.common.TopicPartition
        self._java = cache(lambda place: make(place.topic, place.partition))
        self._commit = client.kafka.clients.consumer.OffsetAndMetadata

    def alter(self, offsets: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets with their metadata, in requests that fit the offsets topic's batches."""
        admin, options = self._client.admin, self._options("AlterConsumerGroupOffsetsOptions")

        def submit(group: str, partitions: Collection[TopicPartition]) -> Any:
            request = self._client.jvm.java.util.HashMap()
            for place in partitions:
                commit = offsets[group][place]
                # Without a leader epoch: the source's own would feed the consumer's truncation check on the target.
                request.put(self._java(place), self._commit(commit.offset, commit.metadata))
            return admin.alterConsumerGroupOffsets(group, request, options)

        outcomes: dict[str, dict[TopicPartition, Failure | None]] = {group: {} for group in offsets}
        remaining = {group: _requests(commits) for group, commits in offsets.items()}
        while parts := {group: part for group, rest in remaining.items() if (part := next(rest, None))}:
            for group, answers in self._carry_out(parts, submit).items():
                outcomes[group] |= answers
        return outcomes

    def delete_offsets(self, partitions: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Remove single offsets; what is not there any more is done."""
        admin, options = self._client.admin, self._options("DeleteConsumerGroupOffsetsOptions")

        def submit(group: str, places: Collection[TopicPartition]) -> Any:
            request = self._client.jvm.java.util.HashSet()
            for place in places:
                request.add(self._java(place))
            return admin.deleteConsumerGroupOffsets(group, request, options)

        return {
            group: {p: None if a is None or a.code in _NOT_THERE else a for p, a in answers.items()}
            for group, answers in self._carry_out(partitions, submit).items()
        }

    def _options(self, name: str) -> Any:
        return getattr(self._client.kafka.clients.admin, name)().timeoutMs(int(self._client.deadline_seconds * 1000))

    def _carry_out(
        self, parts: Mapping[str, Collection[TopicPartition]], submit: Submit
    ) -> dict[str, dict[TopicPartition, Failure | None]]:
        running = {group: submit(group, places) for group, places in parts.items()}
        return {group: self._answers(group, parts[group], result) for group, result in running.items()}

    def _answers(
        self, group: str, places: Collection[TopicPartition], result: Any
    ) -> dict[TopicPartition, Failure | None]:
        from py4j.protocol import Py4JJavaError

        try:
            self._client.get(result.all(), self._client.deadline_seconds + GRACE_SECONDS)
            return dict.fromkeys(places)
        except Py4JJavaError:
            # One partition's error is the whole call's: each is asked for its own.
            return {place: self._one(group, place, result) for place in places}

    def _one(self, group: str, place: TopicPartition, result: Any) -> Failure | None:
        from py4j.protocol import Py4JJavaError

        try:
            self._client.get(result.partitionResult(self._java(place)), GRACE_SECONDS)
            return None
        except Py4JJavaError as error:
            try:
                failure = self._client.failure(java_exception(error), f"{place} of group {group}")
            except ClusterError as refused:
                return Failure("SASL_AUTHENTICATION_FAILED", refused.problem, outcome_unknown=True)
            # Java's client tries again by itself and reports only the last answer. That one may prove that nothing was
            # written by its own try; it proves nothing for a try before it, which the broker may have appended.
            return Failure(failure.code, failure.message, failure.code in PASSING, outcome_unknown=True)


def _requests(commits: Commits) -> Iterator[list[TopicPartition]]:
    """Split a group's commits into requests, each of a size that the offsets topic takes as one batch."""
    part: list[TopicPartition] = []
    size = 0
    for place, commit in sorted(commits.items(), key=lambda entry: entry[0]):
        length = RECORD_OVERHEAD + len(place.topic) + len(commit.metadata)
        if part and (size + length > BATCH_CHARACTERS or len(part) == BATCH_PARTITIONS):
            yield part
            part, size = [], 0
        part.append(place)
        size += length
    if part:
        yield part
