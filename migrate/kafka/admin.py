"""One cluster through librdkafka, asked and written to. Commands have it in a process of its own (`host`).

Every answer is looked at twice: a call that succeeds as a whole may carry an error per partition, per broker
or an offset of -1001, and each of them reads as "fine" to code that does not ask.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from sys import intern
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    IsolationLevel,
    TopicCollection,
)
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AclOperation, AdminClient, OffsetSpec  # type: ignore[attr-defined]

from migrate.commit_table import CommitTable, has_metadata
from migrate.described_group import AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup
from migrate.errors import ClusterError
from migrate.kafka.connection import LONGEST, Connection, asked_until_answered
from migrate.kafka.errors import code_of, error_of, failure_of, is_passing, or_too_few_copies
from migrate.kafka.frames import NOT_EXACT
from migrate.kafka.settings import ClientSettings
from migrate.model import (
    UNREAD_METADATA,
    ClusterFacts,
    Commits,
    Failure,
    GroupState,
    LogRange,
    TopicPartition,
    partitions_of,
)
from migrate.ports import Outcomes
from migrate.progress import batches

if TYPE_CHECKING:
    from migrate.checks.rights import Seen

MAX_IN_FLIGHT = 100
# A broker takes the next request of a connection once it has answered the one before, and a group's commits are a
# request each, read or written: one connection leaves both sides waiting for each other.
SIDE_BY_SIDE = 3
# Fewer are read before another client has reached the cluster.
WORTH_A_CLIENT = 300
DESCRIBE_BATCH = 500
LOG_RANGE_BATCH = 5000
MEMBERS_NAMED = 24
NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
READ_COMMITTED, READ_UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
# How long the partition counts of topics are believed.
COUNTS_SECONDS = 5.0
# More in one request than the offsets topic's batch limit allows is INVALID_COMMIT_OFFSET_SIZE.
ALTER_BATCH = 2000
# Groups of one chunk of `apply.write`, which are written before the next is sent, go over all connections.
WORTH_A_WRITER = 150
TOPIC_BATCH = 1000
# Of fewer groups, describing each is done as soon.
WORTH_LISTING = 100
NOT_EMPTY = set(ConsumerGroupState) - {ConsumerGroupState.EMPTY, ConsumerGroupState.UNKNOWN}
# A broker that does not answer holds up a whole listing, and hardly a description.
LISTING_SECONDS = 5.0
K = TypeVar("K", str, TopicPartition)
V = TypeVar("V")
_PLACE = attrgetter("topic", "partition")
_COMMIT = attrgetter("topic", "partition", "offset", "leader_epoch")
_STATES = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
}


Operations = frozenset[str]
Describe = Callable[[AdminClient, list[str]], "dict[str, Future[Any]]"]


class _PartitionCounts:
    """How many partitions topics have: the cluster is not asked anew for each few thousand logs of very many."""

    def __init__(self, ask: Callable[[], Mapping[str, int]]) -> None:
        self._ask = ask
        self._counts: Mapping[str, int] = {}
        self._made_at = -math.inf

    def covering(self, partitions: Collection[TopicPartition]) -> Mapping[str, int]:
        """Return the counts; those of a moment ago where they have all of these partitions."""
        is_old = time.monotonic() - self._made_at > COUNTS_SECONDS
        if partitions and (is_old or any(p.partition >= self._counts.get(p.topic, 0) for p in partitions)):
            self._counts, self._made_at = self._ask(), time.monotonic()
        return self._counts


class EmptyGroups:
    """Lists one cluster's groups; once nobody has answered that, or not in time, it is not tried again."""

    def __init__(self, settings: ClientSettings, deadline_seconds: float) -> None:
        self._connection = Connection(settings, min(deadline_seconds, LISTING_SECONDS))
        self._has_failed = False

    def among(self, groups: Collection[str]) -> frozenset[str]:
        """Return those of many groups that are classic and listed as Empty: nobody is in them, nor has an assignor.

        All others are to be described, none of them is said to have members: before Kafka 3.8 a list does not tell the
        type, and a group that moves between coordinators is in the lists of both or of neither. Of a group in two
        brokers' lists librdkafka keeps the entry that came first, so those in any other state are asked for once more.
        """
        if self._has_failed or len(groups) < WORTH_LISTING:
            return frozenset()
        empty = {g.group_id for g in self._listed(states={ConsumerGroupState.EMPTY}) or () if _is_empty(g)}
        for others in ({"states": NOT_EMPTY}, {"types": {ConsumerGroupType.CONSUMER}}) if empty else ():
            listed = self._listed(**others)
            if listed is None:
                return frozenset()
            empty -= {group.group_id for group in listed}
        return frozenset(empty.intersection(groups))

    def _listed(self, **of: Any) -> Collection[Any] | None:
        """Return the groups of these states or types; None where a broker gave no answer: it may coordinate any."""
        try:
            listed = self._connection.answer(
                "list its groups", lambda client: client.list_consumer_groups(**of, **LONGEST)
            )
        except ClusterError:
            self._has_failed = True
            return None
        return None if listed.errors else listed.valid


def _is_empty(listed: Any) -> bool:
    return listed.state is ConsumerGroupState.EMPTY and listed.type is ConsumerGroupType.CLASSIC


class ConfluentAdmin:
    """Lists, describes and alters one cluster through librdkafka.

    `deadline_seconds` is how long any request may stay without an answer; `concurrency` how many may be in flight;
    `heard` is called while a call of several requests is answered.
    Nothing is opened before the first call, and the first call of a client proves reachability and authentication
    (`ClusterError`).
    """

    def __init__(
        self,
        settings: ClientSettings,
        deadline_seconds: float = 60.0,
        concurrency: int = MAX_IN_FLIGHT,
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        self.side = settings.side
        self.alias = settings.alias
        self._deadline_seconds = deadline_seconds
        self._concurrency = max(1, min(concurrency, MAX_IN_FLIGHT))
        self._connection = Connection(settings, deadline_seconds, heard)
        # For many small requests; the others are made when they are first asked.
        beside = (Connection(settings, deadline_seconds, heard) for _ in range(SIDE_BY_SIDE - 1))
        self._connections = (self._connection, *beside)
        self._counts = _PartitionCounts(lambda: self.topics())
        self._empty = EmptyGroups(settings, deadline_seconds)

    def facts(self) -> ClusterFacts:
        """Return the cluster's id, its number of brokers, and whether we may DESCRIBE it."""
        cluster = self._described_cluster()
        if not cluster.cluster_id:
            raise ClusterError(f"{self._connection.name} returned no cluster id.", "Check its version.")
        operations = cluster.authorized_operations
        may_describe = None if operations is None else AclOperation.DESCRIBE in operations
        return ClusterFacts(cluster.cluster_id, len(cluster.nodes), may_describe)

    def topics(self) -> Mapping[str, int]:
        """Return partition counts by topic name; raises `ClusterError` if one topic's are not reported."""
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
        existing = sorted(set(topics) & self.topics().keys())
        if not existing:
            return {}
        described = self._described(existing, _topics, lambda answer: answer, TOPIC_BATCH)
        ids = {}
        for name, answer in described.items():
            if isinstance(answer, Failure):
                if answer.code == "UNKNOWN_TOPIC_OR_PARTITION":
                    continue
                raise ClusterError(
                    f"{self._connection.name} returned no id of topic {name}: {answer.code}: {answer.message}.",
                    "Wait until the cluster is well, then run again.",
                )
            # Brokers before Kafka 2.8 have none: it tells one topic from another no more than silence does.
            if (topic_id := str(answer.topic_id)) != NO_TOPIC_ID:
                ids[name] = topic_id
        return ids

    def groups(self) -> frozenset[str]:
        """List consumer groups; raises `ClusterError` naming each broker whose part is missing."""
        listed = self._connection.answer(
            "list its consumer groups", lambda client: client.list_consumer_groups(**LONGEST)
        )
        if listed.errors:
            reasons = "; ".join(sorted({f"{code_of(e)}: {error_of(e).str()}" for e in listed.errors}))
            raise ClusterError(
                f"{self._connection.name} listed its consumer groups only in part: {reasons}.",
                "A shorter list would be a smaller plan. Wait until every broker answers, then run again.",
            )
        return frozenset(group.group_id for group in listed.valid)

    def group_states(self, groups: Collection[str]) -> Mapping[str, GroupState | Failure]:
        """Return each group's state: "Empty" as listed, where there are many, and as described for all others.

        What is not a consumer group has kind "other", which is never stopped.
        """
        states: dict[str, GroupState | Failure] = dict.fromkeys(sorted(self._empty.among(groups)), GroupState("Empty"))
        others = [group for group in groups if group not in states]
        return states | self._described(others, _groups, _state)

    def described_groups(self, groups: Collection[str]) -> Mapping[str, ListedGroup]:
        """Describe each group with its members; what is not a consumer group is classic and "Dead"."""
        answers = self._described(groups, _groups, _listed_group)
        return {g: ListedGroup.unseen(a) if isinstance(a, Failure) else a for g, a in answers.items()}

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group; one bad partition fails its group."""

        def submit(client: AdminClient, group: str) -> "Future[Any]":
            request = [ConsumerGroupTopicPartitions(group)]
            return client.list_consumer_group_offsets(request, require_stable=require_stable, **LONGEST)[group]

        def ask(some: Sequence[str]) -> dict[str, Commits | Failure]:
            answers = self._gathered(some, submit)
            return {group: _commits(answer) for group, answer in answers.items()}

        # All at once: the window of what is in flight never runs empty.
        return self._persistently(groups, ask, max(1, len(groups)))

    def log_ranges(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange | Failure]:
        """Return log start and last stable offset (the end that a read_committed reader sees)."""
        return self._of_logs(partitions, self._ranges)

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """Return the end that a read_uncommitted reader sees of each log."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]

        def ask(batch: Sequence[TopicPartition]) -> dict[TopicPartition, int | Failure]:
            return {p: listed_offset(answer) for p, answer in self._listed(batch, latest, READ_UNCOMMITTED).items()}

        return self._of_logs(partitions, ask)

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

    def rights(self, groups: Collection[str], topics: Collection[str]) -> "Seen":
        """Return what we may do to the cluster and to each of these groups and topics (KIP-430), existing or not.

        A group that does not exist has rights; of a topic that may not be described, Kafka does not say if it exists.
        Describing a topic by name creates none (KIP-204).
        """
        from migrate.checks.rights import Seen

        operations = self._described_cluster().authorized_operations
        return Seen(
            None if operations is None else _names(operations),
            self._described(groups, partial(_groups, include_authorized_operations=True), _granted),
            self._described(topics, partial(_topics, include_authorized_operations=True), _granted, TOPIC_BATCH),
        )

    def _gathered(
        self,
        keys: Sequence[str],
        submit: Callable[[AdminClient, str], "Future[Any]"],
        worth_a_client: int = WORTH_A_CLIENT,
        writing: bool = False,
    ) -> dict[str, Any]:
        """Return what each call answers, over as many connections as so many keys are worth.

        Raises `ClusterError`, once none of them is waiting any more, if one cannot reach the cluster.
        """
        used = self._connections[: max(1, min(len(keys) // worth_a_client, self._concurrency))]

        def share(number: int) -> dict[str, Any]:
            in_flight = len(range(number, self._concurrency, len(used)))
            return used[number].gather(keys[number :: len(used)], submit, in_flight, writing)

        with ThreadPoolExecutor(len(used), "commits") as threads:
            return {key: answer for part in threads.map(share, range(len(used))) for key, answer in part.items()}

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

    def _of_logs(
        self,
        partitions: Collection[TopicPartition],
        ask: Callable[[Sequence[TopicPartition]], dict[TopicPartition, V | Failure]],
    ) -> dict[TopicPartition, V | Failure]:
        counts = self._counts.covering(partitions)
        known = [p for p in partitions if p.partition < counts.get(p.topic, 0)]
        # Not asked of the cluster: a request that names an absent topic might create it.
        absent = Failure("UNKNOWN_TOPIC_OR_PARTITION", "not there, or the principal lacks DESCRIBE on the topic")
        answers: dict[TopicPartition, V | Failure] = dict.fromkeys(partitions, absent)
        return answers | self._persistently(known, ask, LOG_RANGE_BATCH)

    def _persistently(
        self, keys: Collection[K], ask: Callable[[Sequence[K]], dict[K, V | Failure]], size: int
    ) -> dict[K, V | Failure]:
        """Ask again, with a fresh client, for what failed in passing, until the deadline: coordinators move.

        At most `size` keys are asked for at once.
        """

        def asked(some: Sequence[K]) -> dict[K, V | Failure]:
            return {key: answer for batch in batches(some, size) for key, answer in ask(batch).items()}

        return asked_until_answered(asked, sorted(set(keys)), _asked_again, self._connections, self._deadline_seconds)

    def _ranges(self, batch: Sequence[TopicPartition]) -> dict[TopicPartition, LogRange | Failure]:
        # Starts first: a log that retention cuts in between then shows too wide, never start > end.
        starts = self._listed(batch, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        ends = self._listed(batch, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        return {partition: _log_range(starts[partition], ends[partition]) for partition in batch}

    def _described(
        self, names: Collection[str], describe: Describe, read: Callable[[Any], V | Failure], size: int = DESCRIBE_BATCH
    ) -> dict[str, V | Failure]:
        """Describe groups or topics, at most `size` at once; `read` takes each answer, or its `Failure`."""

        def collect(some: Sequence[str], seconds: float) -> dict[str, Any]:
            return self._connection.collect(lambda client: describe(client, list(some)), seconds)

        def ask(some: Sequence[str]) -> dict[str, V | Failure]:
            # All are answered with the last one: a broker that has died, of which a client knows nothing yet, would
            # take the deadline from all. A fresh client asks who has them now.
            answers = collect(some, self._deadline_seconds / 3)
            late = [name for name, a in answers.items() if isinstance(a, Failure) and a.code == "_TIMED_OUT"]
            answers |= collect(late, self._deadline_seconds) if late else {}
            return {name: read(answer) for name, answer in answers.items()}

        return self._persistently(names, ask, size)

    def _described_cluster(self) -> Any:
        return self._connection.answer(
            "describe the cluster",
            lambda client: client.describe_cluster(include_authorized_operations=True, **LONGEST),
        )

    def _listed(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec, level: IsolationLevel = READ_COMMITTED
    ) -> dict[TopicPartition, Any]:
        def submit(client: AdminClient) -> "dict[TopicPartition, Future[Any]]":
            specs = {KafkaPartition(p.topic, p.partition): spec for p in partitions}
            futures = client.list_offsets(specs, isolation_level=level, **LONGEST)
            return {TopicPartition(p.topic, p.partition): future for p, future in futures.items()}

        return self._connection.collect(submit)


def _groups(client: AdminClient, groups: list[str], **options: bool) -> "dict[str, Future[Any]]":
    return client.describe_consumer_groups(groups, **LONGEST, **options)


def _topics(client: AdminClient, topics: list[str], **options: bool) -> "dict[str, Future[Any]]":
    return client.describe_topics(TopicCollection(topics), **LONGEST, **options)


def _log_range(earliest: Any, latest: Any) -> LogRange | Failure:
    start, end = listed_offset(earliest), listed_offset(latest)
    if isinstance(start, Failure):
        return start
    return end if isinstance(end, Failure) else LogRange(start, end, latest.leader_epoch)


def _asked_again(answer: object) -> bool:
    # Not asked again: what has already taken the whole deadline, and an open transaction, which takes minutes.
    given_up = ("_TIMED_OUT", "UNSTABLE_OFFSET_COMMIT")
    return isinstance(answer, Failure) and is_passing(answer) and answer.code not in given_up


def _state(answer: Any) -> GroupState | Failure:
    if isinstance(answer, Failure):
        if answer.code == "_INVALID_ARG" and "not a consumer group" in answer.message:
            return GroupState("Unknown", kind="other")
        if answer.code == "GROUP_ID_NOT_FOUND" and "not a" not in answer.message:
            return GroupState("Dead")
        return answer
    members = tuple(f"{m.client_id}@{str(m.host).lstrip('/')}" for m in answer.members[:MEMBERS_NAMED])
    state = _STATES.get(answer.state, "Unknown")
    return GroupState(state, len(answer.members), members, _kind(answer), str(answer.partition_assignor or ""))


def _kind(answer: Any) -> str:
    return "consumer" if answer.type.name == "CONSUMER" else "classic"


def _listed_group(answer: Any) -> ListedGroup | Failure:
    if isinstance(answer, Failure):
        return answer
    node = answer.coordinator
    if node is None:
        return Failure("NO_ANSWER", "its coordinator was not returned")
    described = GroupDescription(
        _STATES.get(answer.state, "Unknown"),
        tuple(map(_member, answer.members)),
        str(answer.partition_assignor or ""),
        Coordinator(int(node.id), str(node.host), int(node.port)),
    )
    # A simple group is one whose protocol type is "": nobody ever joined it.
    return ListedGroup(_kind(answer), "" if answer.is_simple_consumer_group else "consumer", described)


def _member(member: Any) -> GroupMember:
    by_topic: dict[str, list[int]] = {}
    for partition in member.assignment.topic_partitions if member.assignment else ():
        by_topic.setdefault(intern(partition.topic), []).append(partition.partition)
    assigned = tuple(AssignedTopic(topic, tuple(partitions)) for topic, partitions in by_topic.items())
    return GroupMember(str(member.member_id), str(member.client_id), str(member.host), assigned)


def _commits(answer: Any) -> Commits | Failure:
    if isinstance(answer, Failure):
        return or_too_few_copies(answer)
    listed = answer.topic_partitions or ()
    for partition in listed:
        if partition.error is not None:
            failure = failure_of(partition.error)
            where = f"{partition.topic}-{partition.partition}"
            return Failure(failure.code, f"{where}: {failure.message}", failure.retriable)
    # -1001 without an error is a commit of -1: asked for all partitions, brokers list none without a commit.
    without = [TopicPartition(intern(p.topic), p.partition) for p in listed if p.offset < 0]
    committed = [partition for partition in listed if partition.offset >= 0]
    # In few steps for each partition: a large cluster has a million of them.
    columns = map(_COMMIT, committed)
    topics, partitions, offsets, epochs = zip(*columns, strict=True) if committed else ((), (), (), ())
    metadata = list(map(_metadata, committed))
    return CommitTable(partitions_of(tuple(map(intern, topics)), partitions), offsets, metadata, epochs, without)


def _metadata(partition: Any) -> str:
    """Return a commit's metadata, as far as this client can read it.

    librdkafka takes it for a C string. What Java wrote has no NUL at its end, so bytes of other memory may follow, and
    then it is often no text. So only that there is some is sure; its content is read by the exact client.
    """
    try:
        return partition.metadata or ""
    except UnicodeDecodeError:
        return UNREAD_METADATA


def listed_offset(answer: Any) -> int | Failure:
    """Return the offset in an answer to ListOffsets, or why there is none."""
    if isinstance(answer, Failure):
        return answer
    if answer.offset < 0:
        # list_offsets says so, without any error, for partitions whose leader did not answer.
        return Failure("LEADER_NOT_AVAILABLE", "the partition's leader did not answer", retriable=True)
    return int(answer.offset)


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


def _names(operations: Iterable[AclOperation]) -> Operations:
    return frozenset(operation.name for operation in operations)


def _granted(described: Any) -> Operations | Failure:
    """Return what this principal may do with a described group or topic; who may describe it may do that at least."""
    if isinstance(described, Failure):
        return described
    operations = _names(described.authorized_operations or ())
    return operations or Failure("NO_ANSWER", "the cluster does not report rights")
