"""The confluent-kafka adapter behind `migrate.survey.group_facts.GroupFactsReader`. Reads only.

What is forbidden, missing or slow comes back as a `Failure`: nothing here may end a command.
"""

import warnings
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from migrate.described_group import ListedGroup
from migrate.errors import ClusterError
from migrate.kafka.connection import LONGEST, Connection
from migrate.kafka.errors import code_of, error_of, failure_of
from migrate.kafka.group_records import GroupRecords
from migrate.kafka.old_listing import classic_group
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure
from migrate.survey.expiry import MINUTE_MS
from migrate.survey.group_facts import TOO_MANY_RECORDS, BrokerSettings
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupRecord

# A second or two of reading, while a plan waits for its second look anyway.
MOST_RECORDS = 500_000
_KINDS = {"share": "share", "streams": "streams"}
_CLEANUP = "cleanup.policy"
_TIMESTAMP_TYPE = "message.timestamp.type"
_RETENTION = "offsets.retention.minutes"
_PROTOCOLS = "group.coordinator.rebalance.protocols"


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

    def settings(self) -> BrokerSettings | Failure:
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
                return Failure("NO_ANSWER", f"a broker did not tell {_RETENTION}")
            minutes.append(int(answer[_RETENTION].value))
            protocols.append(str(answer[_PROTOCOLS].value) if _PROTOCOLS in answer else "")
        if not minutes:
            return Failure("NO_ANSWER", "no broker answered")
        return BrokerSettings(min(minutes) * MINUTE_MS, all("consumer" in text.split(",") for text in protocols))

    def group_records(self, groups: Collection[str], with_gaps: bool = False) -> Mapping[str, GroupRecord] | Failure:
        """Read the partitions of the offsets topic that hold these groups; one with an open transaction is left out."""
        return self._records.read(groups, with_gaps, any_will_do=False)

    def commit_records(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Read the same, with gaps between commits, unless there are more than `MOST_RECORDS`."""
        return self._records.read(groups, with_gaps=True, any_will_do=False, most=MOST_RECORDS)

    def compacted_topics(self, topics: Collection[str]) -> frozenset[str] | Failure:
        """Ask for the topics' settings; a topic that does not tell is no compacted one."""
        policies = self.cleanup_policies(topics)
        if isinstance(policies, Failure):
            return policies
        return frozenset(t for t, p in policies.items() if isinstance(p, str) and "compact" in p.split(","))

    def cleanup_policies(self, topics: Collection[str]) -> Mapping[str, str | Failure] | Failure:
        """Ask for the topics' settings."""
        return self._topic_settings(topics, _CLEANUP)

    def timestamp_types(self, topics: Collection[str]) -> Mapping[str, str | Failure] | Failure:
        """Ask for the topics' settings."""
        return self._topic_settings(topics, _TIMESTAMP_TYPE)

    def _topic_settings(self, topics: Collection[str], name: str) -> Mapping[str, str | Failure] | Failure:
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        try:
            answers = self._connection.collect(lambda client: client.describe_configs(resources, **LONGEST))
        except ClusterError as error:
            return Failure("_FAIL", error.problem)
        return {
            resource.name: answer if isinstance(answer, Failure) else str(answer[name].value)
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
        why = Failure(records.code, f"its kind is not told, and {OFFSETS_TOPIC} was not read: {records.message}")
        return ListedGroup.unseen(why)
    record = records.get(name)
    if record is None:
        return ListedGroup.unseen(Failure("KIND_NOT_TOLD", f"{OFFSETS_TOPIC} does not tell its kind"))
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
