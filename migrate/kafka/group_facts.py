"""What librdkafka answers of one cluster beyond states and commits, and on which nothing rests alone. Reads only.

What is forbidden, missing or slow comes back as a `Failure`: nothing here may end a command.
"""

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from migrate.clock import SystemClock
from migrate.described_group import Coordinator, GroupDescription, GroupMember, ListedGroup
from migrate.errors import ClusterError
from migrate.kafka.connection import LONGEST, Connection
from migrate.kafka.errors import code_of, error_of, failure_of, timed_out
from migrate.kafka.read_pass import READS_ONLY, ReadPass, close_consumers, offset_of
from migrate.kafka.settings import ClientSettings, ready
from migrate.model import Failure, TopicPartition
from migrate.survey.cluster import BrokerSettings, ClusterAdmin
from migrate.survey.expiry import MINUTE_MS
from migrate.survey.group_facts import TOO_MANY_RECORDS
from migrate.survey.offsets_pin import past_open_transactions, pin_offsets_topic
from migrate.survey.offsets_topic import (
    OFFSETS_TOPIC,
    GroupLog,
    GroupRecord,
    LogMemory,
    logs_of,
    partition_of,
    records_of,
)

_KINDS = {"share": "share", "streams": "streams"}
_RETENTION = "offsets.retention.minutes"
_PROTOCOLS = "group.coordinator.rebalance.protocols"
# The offsets topic of a busy cluster may be large, and nothing rests on it alone.
READ_SECONDS = 60.0
_STATES = frozenset({"Empty", "Stable", "PreparingRebalance", "CompletingRebalance"})
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


ReadRecords = Callable[[Collection[str]], Mapping[str, GroupRecord] | Failure]
"""Returns what the offsets topic holds of groups, or why it was not read."""


class ConfluentGroupFacts:
    """Asks one cluster through librdkafka; `deadline_seconds` is how long any request may stay without an answer."""

    def __init__(self, settings: ClientSettings, deadline_seconds: float) -> None:
        self._deadline_seconds = deadline_seconds
        self._connection = Connection(settings, deadline_seconds)
        # What the records of groups said whose kind nothing else tells: a group's kind never changes.
        self._kinds_read: dict[str, GroupRecord] = {}

    def every_group(self, read: ReadRecords) -> tuple[frozenset[str], Mapping[str, ListedGroup]] | Failure:
        """List all groups, twice: return the names of consumer groups, and what is known of all others.

        librdkafka's `list_consumer_groups` shows protocol types "consumer" and "" only; its older `list_groups` shows
        every group there is, and describes it as a classic one, so that a kind it cannot tell is asked of the
        group's own records, by `read`.
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
        unread = [name for name, group in others.items() if not group.protocol_type and name not in self._kinds_read]
        records = read(unread) if unread else {}
        if not isinstance(records, Failure):
            records = self._kinds_read = {**self._kinds_read, **records}
        return known, {name: _other_group(name, group, records) for name, group in others.items()}

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


def group_records(
    admin: ClusterAdmin,
    config: Mapping[str, str],
    groups: Collection[str],
    most: int | None = None,
    any_will_do: bool = False,
    memory: LogMemory | None = None,
) -> Mapping[str, GroupRecord] | Failure:
    """Read the partitions of a cluster's offsets topic that hold these groups, of which `most` offsets at most.

    Groups of a partition in which an open transaction hides newer records are left out: what is seen last may be weeks
    old, and groups that commit every second would look idle. Not where `any_will_do`, because older records say the
    same: a group's kind never changes. What `memory` has is not read again.
    """
    if not groups:
        return {}
    try:
        pin = pin_offsets_topic(admin, groups)
        if not any_will_do:
            pin = past_open_transactions(admin, pin, SystemClock())
    except ClusterError as error:
        return Failure("_FAIL", error.problem)
    seen = pin.logs.keys() if any_will_do else pin.logs.keys() - pin.open_ends.keys()
    named = [group for group in groups if partition_of(group, pin.partitions) in seen]
    ends = {partition: log.end for partition, log in pin.logs.items()}
    wanted = logs_of(named, pin.partitions) if memory is None else memory.take(named, pin.partitions, ends)
    offsets = sum(max(0, ends[n] - max(pin.logs[n].start, log.next_offset)) for n, log in wanted.items())
    failure: Failure | None = None
    if most is not None and offsets > most:
        failure = Failure(TOO_MANY_RECORDS, f"up to {offsets:,} records to read")
    failure = failure or read_offsets_topic(config, f"{admin.side} {admin.alias}", wanted, READ_SECONDS)
    if failure is not None:
        return failure
    if memory is not None:
        memory.keep(wanted)
    asked = frozenset(named)
    return {group: record for group, record in records_of(wanted.values()).items() if group in asked}


def _other_group(name: str, group: Any, records: Mapping[str, GroupRecord] | Failure) -> ListedGroup:
    protocol_type = str(group.protocol_type or "")
    if protocol_type in _KINDS:
        return ListedGroup(_KINDS[protocol_type], protocol_type, Failure("NO_ANSWER", "no listing describes it"))
    if protocol_type:
        return ListedGroup("classic", protocol_type, _classic(group))
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


def _classic(group: Any) -> GroupDescription | Failure:
    """Describe a group that is no consumer group, such as a Connect worker's, without what its members are assigned."""
    if group.protocol_type == "consumer":
        return Failure("NO_ANSWER", "only one of two listings shows it")
    if group.error is not None or group.state not in _STATES:
        return Failure("NO_ANSWER", "no listing describes it")
    members = (GroupMember(str(each.id), str(each.client_id), str(each.client_host)) for each in group.members)
    node = group.broker
    coordinator = Coordinator(int(node.id), str(node.host), int(node.port))
    return GroupDescription(str(group.state), tuple(members), str(group.protocol or ""), coordinator)


def _broker_settings(client: AdminClient, broker: int) -> "Future[Any]":
    # One broker a call: librdkafka refuses two (_CONFLICT), as each of them has to be asked for itself.
    (answer,) = client.describe_configs([ConfigResource(ResourceType.BROKER, str(broker))], **LONGEST).values()
    return answer


def read_offsets_topic(
    config: Mapping[str, Any], name: str, logs: Mapping[int, GroupLog], deadline_seconds: float
) -> Failure | None:
    """Hand every record of each partition to its log; return why that could not be done in full, None where it was.

    Each is read from where its log goes on to the end that was seen first; read_committed, because transactional
    commits are in transactions. `name` is the cluster's in messages. `deadline_seconds` bounds the whole reading: the
    topic of a busy cluster may be large.
    """
    try:
        consumer = Consumer({**ready(config), **_SETTINGS})
    except (KafkaException, ValueError, TypeError) as error:
        return failure_of(error)
    sinks = {TopicPartition(OFFSETS_TOPIC, partition): _Records(logs[partition]) for partition in sorted(logs)}
    reading = _WholePass(consumer, sinks, name, deadline_seconds, poll=(5000, 0.1))
    try:
        reading.run()
    except KafkaException as error:
        return failure_of(error, fetching=True)
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
        self.start = log.next_offset
        self._log = log

    def take(self, messages: Sequence[Message]) -> bool:
        self._log.take(map(_key, messages), map(_value, messages))
        self._log.taken += len(messages)
        self._log.next_offset = offset_of(messages[-1]) + 1
        return False


class _WholePass(ReadPass[_Records]):
    """A pass that one error ends."""

    error: KafkaError | None = None

    def give_up(self, places: Sequence[TopicPartition], error: KafkaError) -> None:
        self.error = self.error or error
        super().give_up([*self.waiting], error)
