"""What a cluster says of the rights that we have there, resource by resource (KIP-430)."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from migrate.checks.rights import Seen
from migrate.kafka.cluster_reader import DESCRIBE_BATCH, ConfluentReader
from migrate.kafka.connection import LONGEST
from migrate.model import Failure

TOPIC_BATCH = 1000
_ASKED: dict[str, Any] = {"include_authorized_operations": True, **LONGEST}
Operations = frozenset[str]


class ConfluentRights(ConfluentReader):
    """A client that is also asked what it may do. Describing a topic by name creates none (KIP-204)."""

    def rights(self, groups: Collection[str], topics: Collection[str]) -> Seen:
        """Return what we may do to the cluster and to each of these groups and topics, whether they exist or not.

        A group that does not exist has rights; of a topic that may not be described, Kafka does not say if it exists.
        """
        operations = self._described_cluster().authorized_operations
        return Seen(
            None if operations is None else _names(operations),
            self._rights(groups, DESCRIBE_BATCH, lambda client, some: client.describe_consumer_groups(some, **_ASKED)),
            self._rights(
                topics, TOPIC_BATCH, lambda client, some: client.describe_topics(TopicCollection(some), **_ASKED)
            ),
        )

    def _rights(
        self, names: Collection[str], size: int, describe: Callable[[AdminClient, list[str]], Any]
    ) -> dict[str, Operations | Failure]:
        def ask(some: Sequence[str]) -> dict[str, Operations | Failure]:
            answers: dict[str, Any] = self._connection.collect(lambda client: describe(client, list(some)))
            return {
                name: answer if isinstance(answer, Failure) else _names(answer.authorized_operations or ())
                for name, answer in answers.items()
            }

        return self._persistently(names, ask, size)


def _names(operations: Iterable[AclOperation]) -> Operations:
    return frozenset(operation.name for operation in operations)
