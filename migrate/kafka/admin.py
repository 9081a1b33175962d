"""The confluent-kafka adapter behind `migrate.ports.ClusterAdmin`.

Every answer is looked at twice: a call that succeeds as a whole may carry an error per partition, per broker
or an offset of -1001, and each of them reads as "fine" to code that does not ask.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from sys import intern
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    TopicCollection,
    Uuid,
)
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AclOperation, AdminClient, OffsetSpec  # type: ignore[attr-defined]

from migrate.errors import ClusterError
from migrate.kafka.connection import REQUEST_TIMEOUT_SECONDS, Connection
from migrate.kafka.errors import code_of, error_of, failure_of, or_too_few_copies
from migrate.mm2.flow import Cluster
from migrate.model import (
    UNREAD_METADATA,
    ClusterFacts,
    Commit,
    Commits,
    Failure,
    GroupState,
    LogRange,
    TopicPartition,
)
from migrate.ports import Outcomes

MAX_IN_FLIGHT = 100
DESCRIBE_BATCH = 500
LOG_RANGE_BATCH = 5000
# More in one request than the offsets topic's batch limit allows is INVALID_COMMIT_OFFSET_SIZE.
ALTER_BATCH = 2000
NOT_EXACT = Failure(
    "UNSUPPORTED_BY_CLIENT", "librdkafka can neither write commit metadata byte for byte nor remove single offsets"
)
MEMBERS_NAMED = 24
NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
READ_COMMITTED, READ_UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 3.0
K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
_LONGEST: dict[str, Any] = {"request_timeout": REQUEST_TIMEOUT_SECONDS}
_STATES = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
}


class ConfluentAdmin:
    """Lists, describes and alters one cluster through librdkafka.

    `config` is a ready librdkafka configuration (`migrate.kafka.client_config`); `deadline_seconds` how long any
    request may stay without an answer; `concurrency` how many may be in flight; `secrets` what no message may
    show. Nothing is opened before the
    first call, and the first call of a client proves reachability and authentication (`ClusterError`).
    """

    def __init__(
        self,
        cluster: Cluster,
        config: Mapping[str, str],
        deadline_seconds: float = 60.0,
        concurrency: int = MAX_IN_FLIGHT,
        secrets: Collection[str] = (),
    ) -> None:
        self.side = cluster.side
        self.alias = cluster.alias
        self._cluster = cluster
        self._config = dict(config)
        self._deadline_seconds = deadline_seconds
        self._concurrency = max(1, min(concurrency, MAX_IN_FLIGHT))
        self._secrets = tuple(secrets)
        self._connection = Connection(cluster, config, deadline_seconds, self._secrets)

    def renewed(self) -> "ConfluentAdmin":
        """Return a new client: librdkafka never forgets a coordinator that has moved."""
        return ConfluentAdmin(self._cluster, self._config, self._deadline_seconds, self._concurrency, self._secrets)

    def facts(self) -> ClusterFacts:
        """Return the cluster's id, its number of brokers, and whether we may DESCRIBE it."""
        found = self._connection.answer(
            "describe the cluster",
            lambda client: client.describe_cluster(include_authorized_operations=True, **_LONGEST),
        )
        if not found.cluster_id:
            raise ClusterError(f"{self._connection.name} did not tell its cluster id.", "Check its version.")
        operations = found.authorized_operations
        may_describe = None if operations is None else AclOperation.DESCRIBE in operations
        return ClusterFacts(found.cluster_id, len(found.nodes), may_describe)

    def topics(self) -> Mapping[str, int]:
        """Return partition counts by topic name; raises `ClusterError` if one topic's are not told."""
        counts = {}
        for name, topic in self._connection.metadata().topics.items():
            if topic.error is not None and not topic.partitions:
                raise ClusterError(
                    f"{self._connection.name} did not describe topic {name}: {error_of(topic.error).str()}.",
                    "Wait until the cluster is well, or ask for DESCRIBE on the topic, then run again.",
                )
            counts[name] = len(topic.partitions)
        return counts

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return topic ids as Kafka prints them; topics that do not exist are left out."""
        # Asked only of topics that are there: no request may name, and so create, one that is not.
        wanted = sorted(set(topics) & self.topics().keys())
        if not wanted:
            return {}
        described: dict[str, Any] = self._connection.collect(
            lambda client: client.describe_topics(TopicCollection(wanted), **_LONGEST)
        )
        ids = {}
        for name, found in described.items():
            if isinstance(found, Failure):
                if found.code == "UNKNOWN_TOPIC_OR_PARTITION":
                    continue
                raise ClusterError(
                    f"{self._connection.name} did not tell the id of topic {name}: {found.code}: {found.message}.",
                    "Wait until the cluster is well, then run again.",
                )
            # Brokers before Kafka 2.8 have none: it tells one topic from another no more than silence does.
            if (told := kafka_uuid(found.topic_id)) != NO_TOPIC_ID:
                ids[name] = told
        return ids

    def groups(self) -> frozenset[str]:
        """List consumer groups; raises `ClusterError` naming each broker whose part is missing."""
        listed = self._connection.answer(
            "list its consumer groups", lambda client: client.list_consumer_groups(**_LONGEST)
        )
        if listed.errors:
            reasons = "; ".join(sorted({f"{code_of(e)}: {error_of(e).str()}" for e in listed.errors}))
            raise ClusterError(
                f"{self._connection.name} listed its consumer groups only in part: {reasons}.",
                "A shorter list would be a smaller plan. Wait until every broker answers, then run again.",
            )
        return frozenset(group.group_id for group in listed.valid)

    def group_states(self, groups: Collection[str]) -> Mapping[str, GroupState | Failure]:
        """Describe each group; what is not a consumer group has kind "other", which is never stopped."""

        def ask(wanted: Sequence[str]) -> dict[str, GroupState | Failure]:
            states: dict[str, GroupState | Failure] = {}
            for batch in _batches(wanted, DESCRIBE_BATCH):
                states |= self._described(batch)
            return states

        return self._persistently(sorted(set(groups)), ask)

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group; one bad partition fails its group."""

        def submit(client: AdminClient, group: str) -> "Future[Any]":
            request = [ConsumerGroupTopicPartitions(group)]
            futures = client.list_consumer_group_offsets(request, require_stable=require_stable, **_LONGEST)
            return futures[group]

        def ask(wanted: Sequence[str]) -> dict[str, Commits | Failure]:
            found = self._connection.gather(wanted, submit, self._concurrency)
            return {group: _commits(answer) for group, answer in found.items()}

        return self._persistently(sorted(set(groups)), ask)

    def log_ranges(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange | Failure]:
        """Return log start and last stable offset (the end that a read_committed reader sees)."""
        return self._of_logs(partitions, self._ranges)

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """Return the end that a read_uncommitted reader sees of each log."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]

        def tops(batch: Sequence[TopicPartition]) -> dict[TopicPartition, int | Failure]:
            return {p: _offset(told) for p, told in self._listed(batch, latest, READ_UNCOMMITTED).items()}

        return self._of_logs(partitions, tops)

    def alter(self, wanted: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets, at most 2000 partitions per request.

        A group with metadata is left untouched and fails: librdkafka's Python client adds a NUL byte to it.
        """
        results: dict[str, dict[TopicPartition, Failure | None]] = {group: {} for group in wanted}
        remaining = {}
        for group, commits in wanted.items():
            if any(commit.metadata for commit in commits.values()):
                results[group] = dict.fromkeys(commits, NOT_EXACT)
            else:
                remaining[group] = _batches(sorted(commits), ALTER_BATCH)
        while parts := {group: part for group, rest in remaining.items() if (part := next(rest, None))}:
            for group, answer in self._alter_once(wanted, parts).items():
                results[group] |= _results(parts[group], answer)
        return results

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, Failure | None]:
        """Delete empty groups with all their offsets; a group that is already gone is a `Failure`."""

        def submit(client: AdminClient, group: str) -> "Future[Any]":
            return client.delete_consumer_groups([group], **_LONGEST)[group]

        found = self._connection.gather(sorted(set(groups)), submit, self._concurrency, writing=True)
        return {group: answer if isinstance(answer, Failure) else None for group, answer in found.items()}

    def holding(self, lock: int) -> "ConfluentAdmin":
        """Return a new client; this process holds its descriptors itself."""
        return self.renewed()

    def close(self) -> None:
        """Forget the client."""
        self._connection.drop()

    def delete_offsets(self, wanted: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Fail: librdkafka's Python client can only delete whole groups."""
        return {group: dict.fromkeys(partitions, NOT_EXACT) for group, partitions in wanted.items()}

    def lacks(self) -> Failure | None:
        """Return what this client cannot do."""
        return NOT_EXACT

    def _of_logs(
        self,
        partitions: Collection[TopicPartition],
        ask_batch: Callable[[Sequence[TopicPartition]], dict[TopicPartition, V | Failure]],
    ) -> dict[TopicPartition, V | Failure]:
        counts = self.topics() if partitions else {}
        known = sorted({p for p in partitions if p.partition < counts.get(p.topic, 0)})
        # Not asked of the cluster: a request that names an absent topic might create it.
        absent = Failure("UNKNOWN_TOPIC_OR_PARTITION", "not there, or the principal lacks DESCRIBE on the topic")
        answers: dict[TopicPartition, V | Failure] = {
            p: absent for p in partitions if p.partition >= counts.get(p.topic, 0)
        }

        def ask(wanted: Sequence[TopicPartition]) -> dict[TopicPartition, V | Failure]:
            found: dict[TopicPartition, V | Failure] = {}
            for batch in _batches(wanted, LOG_RANGE_BATCH):
                found |= ask_batch(batch)
            return found

        return answers | self._persistently(known, ask)

    def _persistently(
        self, wanted: Sequence[K], ask: Callable[[Sequence[K]], dict[K, V | Failure]]
    ) -> dict[K, V | Failure]:
        """Ask again, with a fresh client, for what failed in passing, until the deadline: coordinators move."""
        answers = ask(wanted)
        deadline = time.monotonic() + self._deadline_seconds
        pause = FIRST_PAUSE_SECONDS
        while passing := [key for key, answer in answers.items() if _is_passing(answer)]:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._connection.drop()
            threading.Event().wait(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            answers |= ask(passing)
        return answers

    def _ranges(self, batch: Sequence[TopicPartition]) -> dict[TopicPartition, LogRange | Failure]:
        # Starts first: a log that retention cuts in between then shows too wide, never start > end.
        starts = self._listed(batch, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        ends = self._listed(batch, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        ranges: dict[TopicPartition, LogRange | Failure] = {}
        for partition in batch:
            start, end = _offset(starts[partition]), _offset(ends[partition])
            if isinstance(start, Failure):
                ranges[partition] = start
            elif isinstance(end, Failure):
                ranges[partition] = end
            else:
                ranges[partition] = LogRange(start, end, ends[partition].leader_epoch)
        return ranges

    def _described(self, batch: Sequence[str]) -> dict[str, GroupState | Failure]:
        found: dict[str, Any] = self._connection.collect(
            lambda client: client.describe_consumer_groups(list(batch), **_LONGEST)
        )
        return {group: _state(answer) for group, answer in found.items()}

    def _alter_once(
        self,
        wanted: Mapping[str, Commits],
        parts: Mapping[str, Sequence[TopicPartition]],
    ) -> dict[str, Any]:
        def submit(client: AdminClient, group: str) -> "Future[Any]":
            # Without `metadata` and leader epoch: "" would be stored as a NUL byte, and the source's epoch
            # would feed the consumer's truncation check on the target.
            offsets = [KafkaPartition(p.topic, p.partition, wanted[group][p].offset) for p in parts[group]]
            request = [ConsumerGroupTopicPartitions(group, offsets)]
            return client.alter_consumer_group_offsets(request, **_LONGEST)[group]

        return self._connection.gather(sorted(parts), submit, self._concurrency, writing=True)

    def _listed(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec, level: IsolationLevel = READ_COMMITTED
    ) -> dict[TopicPartition, Any]:
        def submit(client: AdminClient) -> "dict[TopicPartition, Future[Any]]":
            asked = {KafkaPartition(p.topic, p.partition): spec for p in partitions}
            futures = client.list_offsets(asked, isolation_level=level, **_LONGEST)
            return {TopicPartition(p.topic, p.partition): future for p, future in futures.items()}

        return self._connection.collect(submit)


def kafka_uuid(uuid: Uuid) -> str:
    """Return a topic id the way Kafka's own tools print it: 22 characters of URL-safe base64."""
    return str(uuid)


def _is_passing(answer: object) -> bool:
    # Not asked again: what has already taken the whole deadline, and an open transaction, which takes minutes.
    return (
        isinstance(answer, Failure) and answer.retriable and answer.code not in ("_TIMED_OUT", "UNSTABLE_OFFSET_COMMIT")
    )


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[i : i + size] for i in range(0, len(items), size))


def _state(answer: Any) -> GroupState | Failure:
    if isinstance(answer, Failure):
        if answer.code == "_INVALID_ARG" and "not a consumer group" in answer.message:
            return GroupState("Unknown", kind="other")
        if answer.code == "GROUP_ID_NOT_FOUND" and "not a" not in answer.message:
            return GroupState("Dead")
        return answer
    members = tuple(f"{m.client_id}@{str(m.host).lstrip('/')}" for m in answer.members[:MEMBERS_NAMED])
    kind = answer.type.name.lower()
    state = _STATES.get(answer.state, "Unknown")
    kind = kind if kind in ("classic", "consumer") else "classic"
    return GroupState(state, len(answer.members), members, kind, str(answer.partition_assignor or ""))


def _commits(answer: Any) -> Commits | Failure:
    if isinstance(answer, Failure):
        return or_too_few_copies(answer)
    found = {}
    for partition in answer.topic_partitions or ():
        if partition.error is not None:
            failure = failure_of(partition.error)
            where = f"{partition.topic}-{partition.partition}"
            return Failure(failure.code, f"{where}: {failure.message}", failure.retriable)
        # -1001 without an error is Kafka's "nothing committed": the partition is listed, the commit is not.
        if partition.offset >= 0:
            found[TopicPartition(intern(partition.topic), partition.partition)] = Commit(
                partition.offset, _metadata(partition), partition.leader_epoch
            )
    return found


def _metadata(partition: Any) -> str:
    """Return a commit's metadata, as far as this client can read it.

    librdkafka takes it for a C string. What Java wrote has no NUL at its end, so bytes of other memory may follow, and
    then it is often no text. So only that there is some is sure; its content is read by the exact client.
    """
    try:
        return partition.metadata or ""
    except UnicodeDecodeError:
        return UNREAD_METADATA


def _offset(answer: Any) -> int | Failure:
    if isinstance(answer, Failure):
        return answer
    if answer.offset < 0:
        # list_offsets says so, without any error, for partitions whose leader did not answer.
        return Failure("LEADER_NOT_AVAILABLE", "the partition's leader did not answer", retriable=True)
    return int(answer.offset)


def _results(part: Sequence[TopicPartition], answer: Any) -> dict[TopicPartition, Failure | None]:
    if isinstance(answer, Failure):
        return dict.fromkeys(part, answer)
    told = {TopicPartition(p.topic, p.partition): p.error for p in answer.topic_partitions or ()}
    results: dict[TopicPartition, Failure | None] = {}
    for partition in part:
        if partition not in told:
            # An answer that leaves a partition out says nothing about it: read back before deciding.
            results[partition] = Failure("_NO_ANSWER", "the answer leaves this partition out", True, True)
            continue
        error = told[partition]
        results[partition] = None if error is None else failure_of(error, writing=True)
    return results
