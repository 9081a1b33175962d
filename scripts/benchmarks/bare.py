"""The calls of confluent-kafka's admin client with nothing around them: what ours is measured against."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import islice
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from tests.integration.clusters import Commits, commit

WINDOW = 100
LONGEST = 3600.0
DEADLINE_SECONDS = 60.0
COORDINATORS_ASKED = 300


def bare_client(bootstrap: str) -> AdminClient:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    client.list_topics(timeout=DEADLINE_SECONDS)
    return client


def commit_all(bootstrap: str, commits: Commits) -> None:
    """Commit for every group; raises where one is refused."""
    # A coordinator is not there before it is first asked for; each of the offsets topic's 50 partitions has its own.
    first = dict(islice(commits.items(), COORDINATORS_ASKED))
    commit(bootstrap, first)
    client = bare_client(bootstrap)

    def ask(group: str) -> Future[Any]:
        places = [KafkaPartition(*place, offset) for place, offset in commits[group].items()]
        request = [ConsumerGroupTopicPartitions(group, places)]
        return client.alter_consumer_group_offsets(request, request_timeout=LONGEST)[group]

    for answer in in_window(commits.keys() - first.keys(), ask):
        assert not any(place.error for place in answer.topic_partitions)


def in_window(groups: Iterable[str], call: Callable[[str], Future[Any]]) -> list[Any]:
    """Make a call for each group, so many in flight as ours, and return the answers."""
    window, futures = threading.Semaphore(WINDOW), []
    for group in groups:
        window.acquire()
        future = call(group)
        future.add_done_callback(lambda _: window.release())
        futures.append(future)
    return [future.result() for future in futures]


def committed_count(client: AdminClient, groups: Iterable[str]) -> int:
    """Return how many partitions these groups have committed offsets on."""

    def read(group: str) -> Future[Any]:
        request = [ConsumerGroupTopicPartitions(group)]
        return client.list_consumer_group_offsets(request, require_stable=True, request_timeout=LONGEST)[group]

    return sum(len(answer.topic_partitions) for answer in in_window(groups, read))
