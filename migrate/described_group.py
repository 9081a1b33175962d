"""A group of any kind as its coordinator describes it, with its members and what each of them reads. Pure.

What a cluster did not tell stands as the `Failure` that says why: it is never a number or a word.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from migrate.model import STOPPED_STATES, Failure, TopicPartition


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The broker that coordinates a group."""

    broker: int
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port} ({self.broker})"


@dataclass(frozen=True, slots=True)
class AssignedTopic:
    """The partitions of one topic that a member is assigned, in the order of the answer."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member; `host` is as the broker prints it, mostly with a slash before the address."""

    consumer_id: str
    client_id: str
    host: str
    assigned: tuple[AssignedTopic, ...] = ()

    def partitions(self) -> Iterator[TopicPartition]:
        """Yield the partitions that the member is assigned."""
        for topic in self.assigned:
            for partition in topic.partitions:
                yield TopicPartition(topic.topic, partition)


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """What the coordinator says of a group.

    `state` is Kafka's own word; "Unknown" where librdkafka has none for it, such as Assigning and Reconciling of
    KIP-848. "Dead" is also what brokers say of a group that does not exist. `assignor` is "" where there is none.
    """

    state: str
    members: tuple[GroupMember, ...]
    assignor: str
    coordinator: Coordinator

    @property
    def is_stopped(self) -> bool:
        """True if no member holds the group."""
        return self.state in STOPPED_STATES and not self.members


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group, what kind it is, and its description.

    `kind` is the group protocol: "classic", "consumer" (KIP-848), "share" (KIP-932) or "streams" (KIP-1071).
    `protocol_type` is what its members are to each other: "consumer", "connect", "share", ..., "" for a group that was
    never joined.
    """

    kind: str | Failure
    protocol_type: str | Failure
    description: GroupDescription | Failure

    @classmethod
    def unseen(cls, why: Failure) -> "ListedGroup":
        """Return a group of which nothing but its name is known."""
        return cls(why, why, why)
