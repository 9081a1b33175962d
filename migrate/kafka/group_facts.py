"""What librdkafka tells of one cluster beyond states and commits, and on which nothing rests alone. Reads only.

What is forbidden, missing or slow comes back as a `Failure`: nothing here may end a command.
"""

import struct
import warnings
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from migrate.clock import Backoff, SystemClock
from migrate.described_group import AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup
from migrate.errors import ClusterError
from migrate.kafka.admin import told_offset
from migrate.kafka.connection import LONGEST, Connection
from migrate.kafka.errors import code_of, error_of, failure_of, timed_out
from migrate.kafka.read_pass import READS_ONLY, ReadPass, close_consumers
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, TopicPartition
from migrate.survey.cluster import BrokerSettings
from migrate.survey.expiry import MINUTE_MS
from migrate.survey.group_facts import MOST_RECORDS, TOO_MANY_RECORDS
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupLog, GroupRecord, logs_of, partition_of, records_of

_KINDS = {"share": "share", "streams": "streams"}
_RETENTION = "offsets.retention.minutes"
_PROTOCOLS = "group.coordinator.rebalance.protocols"
# The offsets topic of a busy cluster may be large, and nothing rests on it alone.
READ_SECONDS = 60.0
RANGE = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
# How long a transaction in the offsets topic is waited for, and how often its partition is asked.
OPEN_SECONDS, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 3.0, 0.05, 0.5
UNTOLD = Failure("NO_ANSWER", f"the end of {OFFSETS_TOPIC} is unknown")
CONSUMER = "consumer"
_STATES = frozenset({"Empty", "Stable", "PreparingRebalance", "CompletingRebalance"})
_COUNT, _PARTITION, _SIZE, _VERSION = (struct.Struct(form) for form in (">i", ">i", ">h", ">h"))
# A consumer without deserializers gives bytes, which the client's types cannot tell.
_key: Any = Message.key
_value: Any = Message.value
_SETTINGS: dict[str, Any] = {
    **READS_ONLY,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 10,
    # librdkafka's own default is to wait a second whenever its queue is full.
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 32 << 10,
    "log_level": 0,
}


@dataclass(frozen=True)
class _EveryGroup:
    """The names of consumer groups, what the old listing tells of them, and all other groups."""

    consumers: frozenset[str]
    told: Mapping[str, ListedGroup]
    others: Mapping[str, ListedGroup]


class ConfluentGroupFacts:
    """Asks one cluster through librdkafka; `deadline_seconds` is how long any request may stay without an answer."""

    def __init__(self, settings: ClientSettings, deadline_seconds: float) -> None:
        self._deadline_seconds = deadline_seconds
        self._connection = Connection(settings, deadline_seconds)
        # Read in a thread beside other questions: of two threads with one connection either would drop the client under
        # the other's calls. It is kept: a follow of days would make a client for every pass.
        self._records = GroupRecords(settings, Connection(settings, deadline_seconds))
        self._kind_records = GroupRecords(settings, self._connection)
        # What the records of groups said whose kind nothing else tells: a group's kind never changes.
        self._kinds_read: dict[str, GroupRecord] = {}

    def group_kinds(self) -> Mapping[str, str] | Failure:
        """Return the kind of every group, from the old listing of all kinds beside that of consumer groups."""
        found = self._every_group()
        if isinstance(found, Failure):
            return found
        kinds = dict.fromkeys(found.consumers, "consumer")
        for name, group in found.others.items():
            told = "unknown" if isinstance(group.kind, Failure) else group.kind
            kinds[name] = "other" if told == "classic" else told
        return kinds

    def told_groups(self) -> Mapping[str, ListedGroup] | Failure:
        """Return what the old listing says of groups of any kind, without consumer groups that it cannot describe."""
        # Nobody has asked for records to be read, and `--watch` comes here at every look.
        found = self._every_group(MOST_RECORDS)
        return found if isinstance(found, Failure) else {**found.told, **found.others}

    def _every_group(self, most_records: int | None = None) -> "_EveryGroup | Failure":
        """List all groups, twice.

        librdkafka's `list_consumer_groups` shows protocol types "consumer" and "" only; its older `list_groups` shows
        every group there is, and describes it as a classic one, so that a kind it cannot tell is asked of the
        group's own records, of which at most so many are read.
        """
        try:
            consumers = self._connection.answer("list its groups", lambda c: c.list_consumer_groups(**LONGEST))
            if consumers.errors:
                return failure_of(consumers.errors[0])
            known = frozenset(str(group.group_id) for group in consumers.valid)
            listed = self._listed()
        except ClusterError as error:
            return Failure("_FAIL", error.problem)
        except KafkaException as error:
            return failure_of(error)
        others = {str(group.id): group for group in listed if str(group.id) not in known}
        untold = tuple(name for name, group in others.items() if not group.protocol_type)
        # Where applications commit in transactions, one is open most of the time: it must not hide what a group is.
        records = self._kinds_in_records(untold, most_records)
        described = {str(group.id): classic_group(group) for group in listed if str(group.id) in known}
        return _EveryGroup(
            known,
            {name: group for name, group in described.items() if group is not None},
            {name: _other_group(name, group, records) for name, group in others.items()},
        )

    def _kinds_in_records(self, groups: Collection[str], most: int | None) -> Mapping[str, GroupRecord] | Failure:
        asked = [group for group in groups if group not in self._kinds_read]
        found = self._kind_records.read(asked, with_gaps=False, any_will_do=True, most=most) if asked else {}
        if isinstance(found, Failure):
            return kind_unread(found, most)
        self._kinds_read |= found
        return {group: self._kinds_read[group] for group in groups if group in self._kinds_read}

    def _listed(self) -> Collection[Any]:
        with warnings.catch_warnings(), self._connection.in_use():
            # Deprecated for consumer groups; for the other kinds there is nothing else.
            warnings.simplefilter("ignore", DeprecationWarning)
            return self._connection.client().list_groups(timeout=self._deadline_seconds)

    def broker_settings(self) -> BrokerSettings | Failure:
        """Return what all brokers are set to: the shortest retention, and whether each serves KIP-848."""
        try:
            brokers = sorted(self._connection.metadata().brokers)
            answers = self._connection.gather(brokers, _broker_settings, len(brokers))
        except ClusterError as error:
            return Failure("_FAIL", error.problem)
        minutes, protocols = [], []
        for answer in answers.values():
            if isinstance(answer, Failure):
                return answer
            if _RETENTION not in answer or not str(answer[_RETENTION].value).isdigit():
                return Failure("NO_ANSWER", f"a broker did not return {_RETENTION}")
            minutes.append(int(answer[_RETENTION].value))
            protocols.append(str(answer[_PROTOCOLS].value) if _PROTOCOLS in answer else "")
        if not minutes:
            return Failure("NO_ANSWER", "no broker answered")
        return BrokerSettings(min(minutes) * MINUTE_MS, all("consumer" in text.split(",") for text in protocols))

    def group_records(
        self, groups: Collection[str], with_gaps: bool = False, most: int | None = None
    ) -> Mapping[str, GroupRecord] | Failure:
        """Read the partitions of the offsets topic that hold these groups; one with an open transaction is left out."""
        return self._records.read(groups, with_gaps, any_will_do=False, most=most)

    def topic_settings(self, topics: Collection[str], setting: str) -> Mapping[str, str | Failure] | Failure:
        """Ask for one setting of each topic."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        try:
            answers = self._connection.collect(lambda client: client.describe_configs(resources, **LONGEST))
        except ClusterError as error:
            return Failure("_FAIL", error.problem)
        return {
            resource.name: answer if isinstance(answer, Failure) else str(answer[setting].value)
            for resource, answer in answers.items()
        }

    def newest_record_ms(self, topic: str) -> int | None | Failure:
        """Ask the leader for the greatest timestamp of the topic's only partition."""
        partition = KafkaPartition(topic, 0)
        spec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        try:
            answers = self._connection.collect(lambda client: client.list_offsets({partition: spec}, **LONGEST))
        except (ClusterError, KafkaException) as error:
            return Failure(code_of(error), error_of(error).str())
        (answer,) = answers.values()
        if isinstance(answer, Failure):
            return answer
        return int(answer.timestamp) if answer.offset >= 0 else None


def kind_unread(why: Failure, most: int | None) -> Failure:
    """Return why the kinds of groups could not be read: for these alone no more than `most` records are."""
    return Failure(why.code, f"it would take more than {most:,} records") if why.code == TOO_MANY_RECORDS else why


def _other_group(name: str, group: Any, records: Mapping[str, GroupRecord] | Failure) -> ListedGroup:
    protocol_type = str(group.protocol_type or "")
    if protocol_type:
        unread = Failure("NO_ANSWER", "no listing describes it")
        if protocol_type in _KINDS:
            return ListedGroup(_KINDS[protocol_type], protocol_type, unread)
        return classic_group(group) or ListedGroup("classic", protocol_type, unread)
    if isinstance(records, Failure):
        why = Failure(records.code, f"its kind is not listed, and {OFFSETS_TOPIC} was not read: {records.message}")
        return ListedGroup.unseen(why)
    record = records.get(name)
    if record is None:
        return ListedGroup.unseen(Failure("KIND_NOT_TOLD", f"{OFFSETS_TOPIC} does not show its kind"))
    # As "Dead" and without members, the old listing shows every group that it has no words for.
    why = Failure("NO_CLIENT", f"no client at hand describes {record.kind} groups")
    if record.kind in _KINDS:
        return ListedGroup(str(record.kind), str(record.kind), why)
    if record.kind == "consumer":
        # It came between the two listings.
        return ListedGroup("consumer", "consumer", Failure("NO_ANSWER", "only one of two listings shows it"))
    return ListedGroup("classic", why, why)


def _broker_settings(client: AdminClient, broker: int) -> "Future[Any]":
    # One broker a call: librdkafka refuses two (_CONFLICT), as each of them has to be asked for itself.
    (answer,) = client.describe_configs([ConfigResource(ResourceType.BROKER, str(broker))], **LONGEST).values()
    return answer


def classic_group(group: Any) -> ListedGroup | None:
    """Return a group as librdkafka's older listing describes it; None where that does not say enough.

    With one request to each broker it lists and describes all of them: ten thousand groups take it a fifth of a second,
    where describing them one by one, each after its coordinator was looked up, takes many. It describes classic groups
    alone: one of another protocol shows as "Dead", as one that does not exist.
    """
    protocol_type, state = str(group.protocol_type or ""), str(group.state)
    if group.error is not None or state not in _STATES:
        return None
    try:
        members = tuple(_member(member, protocol_type) for member in group.members)
    except ValueError:  # an assignor of somebody's own may assign in words of its own
        return None
    node = group.broker
    coordinator = Coordinator(int(node.id), str(node.host), int(node.port))
    return ListedGroup(
        "classic", protocol_type, GroupDescription(state, members, str(group.protocol or ""), coordinator)
    )


def assignment_of(raw: bytes) -> tuple[AssignedTopic, ...]:
    """Return the partitions in a member's assignment (`ConsumerProtocolAssignment`, all versions); none while
    rebalancing.

    Raises `ValueError` where the bytes are no such thing.
    """
    if not raw:
        return ()
    topics = []
    try:
        (count,) = _COUNT.unpack_from(raw, _VERSION.size)
        at = _VERSION.size + _COUNT.size
        for _ in range(count):
            (size,) = _SIZE.unpack_from(raw, at)
            at += _SIZE.size
            if size < 0 or at + size > len(raw):
                raise ValueError("a topic's name goes beyond the assignment")
            topic = raw[at : at + size].decode()
            at += size
            (partitions,) = _COUNT.unpack_from(raw, at)
            at += _COUNT.size
            numbers = struct.unpack_from(f">{max(0, partitions)}i", raw, at)
            at += _PARTITION.size * len(numbers)
            topics.append(AssignedTopic(topic, numbers))
    except struct.error as error:
        raise ValueError(str(error)) from None
    return tuple(topics)


def _member(member: Any, protocol_type: str) -> GroupMember:
    assigned = assignment_of(bytes(member.assignment or b"")) if protocol_type == CONSUMER else ()
    return GroupMember(str(member.id), str(member.client_id), str(member.client_host), assigned)


class GroupRecords:
    """Reads through one connection what the offsets topic holds of groups; one thread at a time may read."""

    def __init__(self, settings: ClientSettings, connection: Connection) -> None:
        self._config = settings.config
        self._connection = connection
        self._turn = Lock()

    def read(
        self, groups: Collection[str], with_gaps: bool, any_will_do: bool, most: int | None = None
    ) -> Mapping[str, GroupRecord] | Failure:
        """Read the groups' records; `any_will_do` where older ones say the same: a group's kind never changes.

        `most` refuses, before anything is read, to read more offsets than that.
        """
        with self._turn:
            try:
                return self._read(groups, with_gaps, any_will_do, most)
            except ClusterError as error:
                return Failure("_FAIL", error.problem)
            except KafkaException as error:
                return failure_of(error)

    def _read(
        self, groups: Collection[str], with_gaps: bool, any_will_do: bool, most: int | None
    ) -> Mapping[str, GroupRecord] | Failure:
        topic = self._connection.metadata().topics.get(OFFSETS_TOPIC)
        if topic is None:
            # Not shown without DESCRIBE, and not there before the first group.
            return Failure("UNKNOWN_TOPIC_OR_PARTITION", f"{OFFSETS_TOPIC} is not shown")
        if topic.error is not None and not topic.partitions:
            return failure_of(topic.error)
        partition = {group: partition_of(group, len(topic.partitions)) for group in groups}
        hidden = frozenset[int]() if any_will_do else self._hidden(set(partition.values()))
        if isinstance(hidden, Failure):
            return hidden
        refusal = None if most is None else self._too_many({*partition.values()} - hidden, most)
        if refusal is not None:
            return refusal
        logs = logs_of((group for group in groups if partition[group] not in hidden), len(topic.partitions), with_gaps)
        return read_offsets_topic(self._config, logs, READ_SECONDS) or records_of(logs.values())

    def _hidden(self, partitions: Collection[int]) -> frozenset[int] | Failure:
        """Return the partitions of the offsets topic in which an open transaction hides newer records from us.

        Commits in transactions are open for moments: these are waited for. Behind one that hangs, what a reader of
        committed records sees last may be weeks old, and groups that commit every second look idle.
        """
        places = [KafkaPartition(OFFSETS_TOPIC, partition) for partition in sorted(partitions)]
        if not places:
            return frozenset()
        backoff = Backoff(SystemClock(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, OPEN_SECONDS)
        written = self._ends(places, IsolationLevel.READ_UNCOMMITTED)
        hidden = open_partitions(written, self._ends(places, IsolationLevel.READ_COMMITTED))
        while hidden and not isinstance(hidden, Failure) and not backoff.is_over:
            backoff.pause()
            hidden = open_partitions(written, self._ends(places, IsolationLevel.READ_COMMITTED))
        return hidden

    def _too_many(self, partitions: Collection[int], most: int) -> Failure | None:
        """Return why these partitions of the offsets topic are not to be read; None where they may be."""
        places = [KafkaPartition(OFFSETS_TOPIC, partition) for partition in sorted(partitions)]
        if not places:
            return None
        starts, ends = (self._ends(places, IsolationLevel.READ_COMMITTED, spec) for spec in RANGE)
        return too_many(starts, ends, most)

    def _ends(
        self, places: Collection[KafkaPartition], level: IsolationLevel, spec: OffsetSpec | None = None
    ) -> dict[int, int | Failure]:
        specs = {place: spec or OffsetSpec.latest() for place in places}  # type: ignore[no-untyped-call]
        found = self._connection.collect(lambda client: client.list_offsets(specs, isolation_level=level, **LONGEST))
        return {place.partition: told_offset(end) for place, end in found.items()}


def open_partitions(
    written: Mapping[int, int | Failure], stable: Mapping[int, int | Failure]
) -> frozenset[int] | Failure:
    """Return the partitions whose stable end is below the end written before; a `Failure` if either is not told."""
    behind = set()
    for partition, end in written.items():
        reached = stable.get(partition, UNTOLD)
        if isinstance(end, Failure):
            return end
        if isinstance(reached, Failure):
            return reached
        if reached < end:
            behind.add(partition)
    return frozenset(behind)


def too_many(starts: Mapping[int, int | Failure], ends: Mapping[int, int | Failure], most: int) -> Failure | None:
    """Return why partitions of the offsets topic are not to be read: more records than `most`, or nobody told."""
    held = 0
    for partition, start in starts.items():
        end = ends.get(partition, UNTOLD)
        if isinstance(start, Failure):
            return start
        if isinstance(end, Failure):
            return end
        held += end - start
    if held <= most:
        return None
    return Failure(TOO_MANY_RECORDS, f"up to {held:,} records to read: groups list --records reads them all")


def read_offsets_topic(
    config: Mapping[str, str], logs: Mapping[int, GroupLog], deadline_seconds: float
) -> Failure | None:
    """Hand every record of each partition to its log; return why that could not be done in full, None where it was.

    Each is read from its start to the end that was seen first; read_committed, because transactional commits are in
    transactions.
    `deadline_seconds` bounds the whole reading: the topic of a busy cluster may be large.
    """
    try:
        consumer = Consumer({**config, **_SETTINGS})
    except (KafkaException, ValueError, TypeError) as error:
        return failure_of(error)
    sinks = {TopicPartition(OFFSETS_TOPIC, partition): _Records(logs[partition]) for partition in sorted(logs)}
    reading = _WholePass(consumer, sinks, deadline_seconds, poll=(5000, 0.1))
    try:
        reading.run()
    finally:
        close_consumers([consumer])
    if reading.error is not None:
        return failure_of(reading.error, fetching=True)
    return timed_out(deadline_seconds) if reading.waiting else None


class _Records:
    """The records of one partition, on their way to `log`."""

    def __init__(self, log: GroupLog) -> None:
        # By number, and not as the beginning: that is looked up, which is tried again only after half a second while no
        # leader is known. A log that begins later is begun where it does, as `auto.offset.reset` says.
        self.start = 0
        self._log = log

    def take(self, messages: Sequence[Message]) -> bool:
        self._log.take(map(_key, messages), map(_value, messages))
        return False


class _WholePass(ReadPass[_Records]):
    """A pass that one error ends."""

    error: KafkaError | None = None

    def give_up(self, places: Sequence[TopicPartition], error: KafkaError) -> None:
        self.error = self.error or error
        super().give_up([*self.waiting], error)
