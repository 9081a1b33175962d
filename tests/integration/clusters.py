"""Plain questions to a cluster, and both logs read raw: what scenes and tests judge by.

Independent of the product: nothing here imports it.
"""

import struct
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.integration.oracle import Found, Log
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.reading import bounds as bounds_of
from tests.lab.reading import split_string, topic_reader
from tests.lab.waiting import LabError, wait_until

Partition = tuple[str, int]
Commits = dict[str, dict[Partition, int]]

CALL_SECONDS = 30.0
# librdkafka looks for a coordinator three times within half a second, and then never answers.
COORDINATOR_SECONDS = 8.0
READ_SECONDS = 120.0
CONSUMERS_AT_ONCE = 8
CONSUMER_OFFSETS = "__consumer_offsets"
QUIET = {"log_level": 0}
STARTING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)


def admin(bootstrap: str) -> AdminClient:
    """A client; keep it in a variable until its futures are done: they never end once it is gone."""
    return AdminClient({"bootstrap.servers": bootstrap, **QUIET})


def create_topic(bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    client = admin(bootstrap)
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
    client.create_topics([new])[topic].result(CALL_SECONDS)
    wait_until(lambda: topic in client.list_topics(timeout=CALL_SECONDS).topics, CALL_SECONDS, f"topic {topic}")


def delete_topic(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    client.delete_topics([topic])[topic].result(CALL_SECONDS)
    wait_until(
        lambda: topic not in client.list_topics(timeout=CALL_SECONDS).topics, CALL_SECONDS, f"the end of topic {topic}"
    )


def recreate_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Delete a topic and create it again, empty and with another id."""
    delete_topic(bootstrap, topic)
    create_topic(bootstrap, topic, partitions)


def alter_topic(bootstrap: str, topic: str, config: Mapping[str, str]) -> None:
    client = admin(bootstrap)
    entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in config.items()]
    wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client.incremental_alter_configs([wanted])[wanted].result(CALL_SECONDS)


def partitions_of(bootstrap: str, topics: Iterable[str]) -> list[Partition]:
    known = admin(bootstrap).list_topics(timeout=CALL_SECONDS).topics
    return [(topic, p) for topic in sorted(topics) if topic in known for p in sorted(known[topic].partitions)]


def commit(bootstrap: str, commits: Mapping[str, Mapping[Partition, int]], leader_epoch: int = -1) -> None:
    """Commit offsets for groups without members, as kafka-consumer-groups does; a consumer sends a leader epoch too."""
    wait_until(
        lambda: _committed(bootstrap, commits, leader_epoch), CALL_SECONDS, f"coordinators of {len(commits)} groups"
    )


def _committed(bootstrap: str, commits: Mapping[str, Mapping[Partition, int]], leader_epoch: int) -> bool:
    """Commit; False where a coordinator of a young cluster is not there yet."""
    client = admin(bootstrap)
    asked = {
        group: client.alter_consumer_group_offsets(
            [
                ConsumerGroupTopicPartitions(
                    group, [TopicPartition(t, p, o, leader_epoch=leader_epoch) for (t, p), o in places.items()]
                )
            ]
        )[group]
        for group, places in commits.items()
    }
    for group, future in asked.items():
        try:
            answers = future.result(COORDINATOR_SECONDS).topic_partitions
        except TimeoutError:
            return False
        for answer in answers:
            if answer.error is not None and answer.error.code() in STARTING:
                return False
            assert answer.error is None, f"committing {group} on {answer.topic}-{answer.partition}: {answer.error}"
    return True


def commits_on(bootstrap: str, groups: Iterable[str]) -> Commits:
    """Read the committed offsets of groups; a group without any is left out."""
    client = admin(bootstrap)
    asked = {g: client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(g)])[g] for g in sorted(groups)}
    found: Commits = {}
    for group, future in asked.items():
        answers = future.result(CALL_SECONDS).topic_partitions or []
        places = {(a.topic, a.partition): a.offset for a in answers if a.error is None and a.offset >= 0}
        assert all(a.error is None for a in answers), answers
        if places:
            found[group] = places
    return found


def by_place(commits: Mapping[str, Mapping[Partition, int]]) -> dict[tuple[str, str, int], int]:
    """The committed offset of every group, topic and partition."""
    return {(g, t, p): offset for g, places in commits.items() for (t, p), offset in places.items()}


def groups_on(bootstrap: str) -> frozenset[str]:
    client = admin(bootstrap)
    answer = client.list_consumer_groups().result(CALL_SECONDS)
    assert not answer.errors, answer.errors
    return frozenset(group.group_id for group in answer.valid)


def delete_groups(bootstrap: str, groups: Iterable[str]) -> None:
    """Delete those of the groups that are there."""
    there = sorted(groups_on(bootstrap).intersection(groups))
    if there:
        client = admin(bootstrap)  # kept in a variable: the calls of a client that is destroyed never end
        for future in client.delete_consumer_groups(there).values():
            future.result(CALL_SECONDS)


def topic_id(bootstrap: str, topic: str) -> str | None:
    """The topic's id, or None while there is no such topic."""
    client = admin(bootstrap)
    try:
        described = client.describe_topics(TopicCollection([topic]))[topic].result(CALL_SECONDS)
    except KafkaException:
        return None
    return str(described.topic_id)


def portrait(bootstrap: str, options: MirrorOptions) -> dict[str, Any]:
    """Everything that a careless tool might change on a cluster, while no producers or consumers of its own live.

    Topics, configs, groups and commits; the log ends of all topics but those that a living MM2 with these options
    writes to; and how often somebody has written to a group: an offset committed anew, or a member that came and went.
    """
    client = admin(bootstrap)
    topics = client.list_topics(timeout=CALL_SECONDS).topics
    asked = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in sorted(topics)])
    groups = groups_on(bootstrap)
    return {
        "topics": {name: (len(t.partitions), topic_id(bootstrap, name)) for name, t in topics.items()},
        "configs": {
            resource.name: {name: entry.value for name, entry in future.result(CALL_SECONDS).items()}
            for resource, future in asked.items()
        },
        "groups": groups,
        "commits": commits_on(bootstrap, groups),
        "ends": {
            place: end
            for place, (_, end) in bounds(bootstrap, partitions_of(bootstrap, topics)).items()
            if place[0] not in (*options.topics_of_its_own, CONSUMER_OFFSETS)
        },
        "group records": group_records(bootstrap),
    }


def group_records(bootstrap: str) -> int:
    """How many records say something of a group; brokers add others by themselves, which say that it is gone."""
    with topic_reader(bootstrap) as reader:
        return sum(
            record.value() is not None
            for p in reader.partitions(CONSUMER_OFFSETS)
            for record in reader.records(CONSUMER_OFFSETS, p)
        )


def committed_reader(bootstrap: str, group: str, **more: str) -> Consumer:
    """A consumer that commits nothing, and is told where partitions end."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "allow.auto.create.topics": False,
            "fetch.wait.max.ms": 5,
            **more,
            **QUIET,
        }
    )


@contextmanager
def subscribed(bootstrap: str, group: str, topics: Collection[str], **more: str) -> Iterator[Consumer]:
    """A real consumer of a group, on its way in.

    A partition without a committed offset, or with one outside the log, is read from its end: of all settings
    the one that skips most.
    """
    consumer = committed_reader(bootstrap, group, **{"auto.offset.reset": "latest"}, **more)
    try:
        consumer.subscribe(list(topics))
        yield consumer
    finally:
        consumer.close()


@contextmanager
def member(bootstrap: str, group: str, topic: str, **more: str) -> Iterator[Consumer]:
    """A group that is alive: it has a member, which has partitions."""
    with subscribed(bootstrap, group, [topic], **more) as consumer:

        def joined() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(joined, CALL_SECONDS, f"a member of {group} on {topic}", poll_seconds=0.0)
        yield consumer


def identity(message: Message) -> str:
    """The record's own name, from its header `id` or, without headers, from the first word of its value.

    Where a header converter has written the header anew, in base64, the name is what that says. "?" if there is none.
    """
    headers, value = message.headers(), message.value()
    named = dict(headers).get("id") if headers else (value.split(b" ")[0] if isinstance(value, bytes) else None)
    if not isinstance(named, bytes):
        return "?"
    # A scene's names have hyphens, base64 has none.
    return (named if b"-" in named else b64decode(named)).decode(errors="replace") or "?"


def drain(consumer: Consumer, waiting: set[Partition], take: Callable[[Message], None]) -> None:
    """Hand over every record until each partition of `waiting` has come to its end."""
    what = f"the ends of {len(waiting)} partitions"

    def done() -> bool:
        for message in consumer.consume(5000, 0.05):
            problem = message.error()
            place = (message.topic() or "", message.partition() or 0)
            if problem is None:
                take(message)
            elif problem.code() == KafkaError._PARTITION_EOF:
                waiting.discard(place)
            elif not problem.retriable() and problem.code() != KafkaError._TRANSPORT:
                raise AssertionError(f"reading {place}: {problem.str()}")
        return not waiting

    wait_until(done, READ_SECONDS, what, lambda: f"not at the end: {sorted(waiting)}", poll_seconds=0.0)


def read_logs(
    bootstrap: str, partitions: Collection[Partition], look: Callable[[Message], None] = lambda _: None
) -> dict[Partition, Log]:
    """Read whole partitions, read_committed, all in one assignment; `look` is shown every record."""
    found: dict[Partition, list[Found]] = {place: [] for place in partitions}
    consumer = committed_reader(bootstrap, "scene-reader-never-commits")
    try:
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for topic, p in partitions])

        def take(message: Message) -> None:
            place = (message.topic() or "", message.partition() or 0)
            found[place].append(Found(message.offset() or 0, identity(message)))
            look(message)

        drain(consumer, set(partitions), take)
        logs = {}
        for (topic, p), records in found.items():
            low, high = bounds_of(consumer, TopicPartition(topic, p))
            # Retention or the cleaner may have moved on since a record was read.
            logs[topic, p] = Log(low, high, tuple(record for record in records if record.offset >= low))
        return logs
    finally:
        consumer.close()


def all_syncs(lab: Lab) -> dict[Partition, list[tuple[int, int]]]:
    """Read every offset sync in MM2's topic: (source offset, target offset) by source partition, in log order.

    An MM2 that writes none has no such topic.
    """
    on_target = lab.options.offset_syncs_location == "target"
    found: dict[Partition, list[tuple[int, int]]] = {}
    with topic_reader(lab.target_bootstrap if on_target else lab.source_bootstrap) as reader:
        there = reader.partitions(lab.options.offset_syncs_topic)
        for message in reader.records(lab.options.offset_syncs_topic, 0) if there else ():
            key, value = message.key(), message.value()
            if not isinstance(key, bytes) or not isinstance(value, bytes):
                continue
            topic, rest = split_string(key)
            upstream, downstream = struct.unpack(">qq", value)
            found.setdefault((topic, struct.unpack(">i", rest)[0]), []).append((upstream, downstream))
    return found


def read_as_groups(bootstrap: str, commits: Commits) -> dict[str, dict[Partition, list[Found]]]:
    """Let a real consumer of each group read from its committed offsets to the ends; nothing is committed."""
    with ThreadPoolExecutor(CONSUMERS_AT_ONCE) as pool:
        read = pool.map(lambda group: read_as_group(bootstrap, group, sorted(commits[group])), commits)
        return dict(zip(commits, read, strict=True))


def read_as_group(bootstrap: str, group: str, partitions: Collection[Partition]) -> dict[Partition, list[Found]]:
    topics = sorted({topic for topic, _ in partitions})
    expected = set(partitions_of(bootstrap, topics))
    found: dict[Partition, list[Found]] = {place: [] for place in expected}
    with subscribed(bootstrap, group, topics) as consumer:

        def take(message: Message) -> None:
            found[message.topic() or "", message.partition() or 0].append(
                Found(message.offset() or 0, identity(message))
            )

        drain(consumer, expected, take)
    return {place: found[place] for place in partitions}


def bounds(bootstrap: str, partitions: Collection[Partition]) -> dict[Partition, tuple[int, int]]:
    """Log start and end of each partition."""
    trouble = ""

    def look() -> dict[Partition, tuple[int, int]] | None:
        nonlocal trouble
        try:
            with topic_reader(bootstrap) as reader:
                return {(topic, p): reader.bounds(topic, p) for topic, p in partitions}
        except LabError as error:  # a topic that is just being created has no leader yet
            trouble = str(error)
            return None

    what = f"the ends of {len(partitions)} partitions"
    return wait_until(look, CALL_SECONDS, what, lambda: trouble) if partitions else {}


def delete_before(bootstrap: str, topic: str, partition: int, offset: int) -> None:
    """Move a log's start, as retention does."""
    place = TopicPartition(topic, partition, offset)
    client = admin(bootstrap)
    for future in client.delete_records([place]).values():
        assert future.result(CALL_SECONDS).low_watermark == offset


@contextmanager
def denied(
    bootstrap: str, kind: ResourceType, resource: str, operation: AclOperation,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> Iterator[None]:  # fmt: skip
    """Forbid everybody one operation on one resource, and leave what else anybody may do there."""
    client = admin(bootstrap)
    bindings = [
        AclBinding(kind, resource, pattern, "User:*", "*", of, permission)
        for of, permission in ((operation, AclPermissionType.DENY), (AclOperation.ALL, AclPermissionType.ALLOW))
    ]
    for future in client.create_acls(bindings).values():
        future.result(CALL_SECONDS)
    try:
        yield
    finally:
        anything: Any = None  # The filter's "whatever it is", which the client's own types leave out.
        everything = AclBindingFilter(
            ResourceType.ANY, anything, ResourcePatternType.ANY, anything, anything,
            AclOperation.ANY, AclPermissionType.ANY,
        )  # fmt: skip
        for future in client.delete_acls([everything]).values():
            future.result(CALL_SECONDS)
