"""Groups that a listing calls empty: of many groups, three requests to each broker instead of three for each group."""

from collections.abc import Collection
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupType

from migrate.errors import ClusterError
from migrate.kafka.connection import LONGEST, Connection
from migrate.kafka.settings import ClientSettings

# Of fewer groups, describing each is done as soon.
WORTH_LISTING = 100
NOT_EMPTY = set(ConsumerGroupState) - {ConsumerGroupState.EMPTY, ConsumerGroupState.UNKNOWN}
# A broker that does not answer holds up a whole listing, and hardly a description.
LISTING_SECONDS = 5.0


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
