"""What a cluster says of the rights that we have there, resource by resource (KIP-430)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from migrate.checks.rights import Seen
from migrate.kafka.admin import DESCRIBE_BATCH, ConfluentAdmin
from migrate.kafka.connection import REQUEST_TIMEOUT_SECONDS
from migrate.kafka.turns import batches
from migrate.model import Failure

TOPIC_BATCH = 1000
_ASKED: dict[str, Any] = {"include_authorized_operations": True, "request_timeout": REQUEST_TIMEOUT_SECONDS}
Operations = frozenset[str]


class ConfluentRights(ConfluentAdmin):
    """An admin client that is also asked what it may do. Describing a topic by name creates none (KIP-204)."""

    def rights(self, groups: Collection[str], topics: Collection[str]) -> Seen:
        """Return what we may do to the cluster and to each of these groups and topics, whether they exist or not.

        A group that does not exist has rights; of a topic that may not be described nobody tells whether it exists.
        """
        found = self._connection.answer("describe the cluster", lambda client: client.describe_cluster(**_ASKED))
        told = found.authorized_operations
        return Seen(
            None if told is None else _names(told),
            self._persistently(sorted(set(groups)), self._group_rights),
            self._persistently(sorted(set(topics)), self._topic_rights),
        )

    def _group_rights(self, groups: Sequence[str]) -> dict[str, Operations | Failure]:
        answers: dict[str, Operations | Failure] = {}
        for batch in batches(groups, DESCRIBE_BATCH):
            answers |= _told(
                self._connection.collect(lambda client, b=batch: client.describe_consumer_groups(list(b), **_ASKED))  # type: ignore[misc]
            )
        return answers

    def _topic_rights(self, topics: Sequence[str]) -> dict[str, Operations | Failure]:
        answers: dict[str, Operations | Failure] = {}
        for batch in batches(topics, TOPIC_BATCH):
            answers |= _told(
                self._connection.collect(
                    lambda client, b=batch: client.describe_topics(TopicCollection(list(b)), **_ASKED)  # type: ignore[misc]
                )
            )
        return answers


def _told(answers: Mapping[str, Any]) -> dict[str, Operations | Failure]:
    return {name: a if isinstance(a, Failure) else _names(a.authorized_operations or ()) for name, a in answers.items()}


def _names(operations: Iterable[AclOperation]) -> Operations:
    return frozenset(operation.name for operation in operations)
