"""The consumer groups: where each stands on the source when the consumers are stopped, and on the target."""

from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from scripts.demonstration.traffic import CALL_SECONDS, Place
from tests.lab.cluster import Cluster

Commits = dict[str, dict[Place, int]]
"""Committed source offsets by group."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group that reads all partitions of a topic.

    `places` says how far it has come on a partition, as a share of the log; 1.0 is the end. A partition that is
    not named was never committed. With `consumes`, a real consumer reads to the end and commits.
    """

    name: str
    topic: str
    words: str
    places: Mapping[int, float]
    consumes: bool = False


GROUPS = (
    Group("shipping", "orders", "caught up, by a real consumer", {0: 1, 1: 1, 2: 1}, consumes=True),
    Group("billing", "orders", "lagging, far behind on one partition", {0: 0.15, 1: 0.55, 2: 0.8}),
    Group("reporting", "orders", "never consumed partition 2", {0: 0.9, 1: 0.65}),
    Group("fraud", "payments", "lagging amid transactions", {0: 0.5, 1: 0.75}),
    Group("crm", "customers", "lagging on a compacted topic", {0: 0.6}),
    Group("analytics", "clicks", "partition 0: retention overtook it", {0: 0.1, 1: 0.7}),
    Group("returns-desk", "returns", "caught up; partition 1 is empty", {0: 1, 1: 0}),
)
RETENTION: Place = ("clicks", 0)
RETENTION_SHARE = 0.25


def commit_shares(source: Cluster, ends: Mapping[Place, int]) -> None:
    """Commit for every group without a real consumer, as kafka-consumer-groups does."""
    admin = source.admin()
    asked = []
    for group in GROUPS:
        if not group.consumes:
            places = [
                TopicPartition(group.topic, p, int(ends[group.topic, p] * share)) for p, share in group.places.items()
            ]
            request = ConsumerGroupTopicPartitions(group.name, places)
            asked.append(admin.alter_consumer_group_offsets([request])[group.name])
    for future in asked:
        for answer in future.result(CALL_SECONDS).topic_partitions:
            if answer.error is not None:
                raise RuntimeError(f"committing on {answer.topic}-{answer.partition}: {answer.error}")


def committed(cluster: Cluster) -> Commits:
    """Every committed offset of every group on a cluster."""
    admin = cluster.admin()
    names = [group.group_id for group in admin.list_consumer_groups().result(CALL_SECONDS).valid]
    asked = {g: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(g)])[g] for g in sorted(names)}
    found = {}
    for group, future in asked.items():
        answers = future.result(CALL_SECONDS).topic_partitions or []
        found[group] = {(a.topic, a.partition): a.offset for a in answers if a.offset >= 0}
    return {group: places for group, places in found.items() if places}


def delete_before(admin: AdminClient, place: Place, offset: int) -> None:
    """Move a log's start, as retention does."""
    for future in admin.delete_records([TopicPartition(*place, offset)]).values():
        future.result(CALL_SECONDS)
