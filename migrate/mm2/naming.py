"""How MirrorMaker 2 names topics in one flow: its own, and the copies of the source's. Pure.

The rules are those of Kafka's `DefaultReplicationPolicy`, `IdentityReplicationPolicy`, `MirrorSourceConnector.isCycle`
and `MirrorCheckpointTask.renameTopicPartition`. Before Kafka 4.0 more topics are internal (all that end in `.internal`
or `-internal`); of an MM2 of unknown version the target shows whether such a topic was copied. Invariant: for every
topic that is replicated, `source_topic(target_topic(topic)) == topic`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol, Self

from migrate.model import Side

HEARTBEATS = "heartbeats"


class PolicyKind(StrEnum):
    """How copies are named: with the source's alias in front, unchanged, or, behind another replicator, by a map."""

    DEFAULT = "default"
    IDENTITY = "identity"
    MAP = "map"


class TopicNames(Protocol):
    """The names of a flow as it copies: MM2's, or those of another replicator."""

    @property
    def kind(self) -> PolicyKind:
        """How copies are named."""

    @property
    def separator(self) -> str:
        """What stands between an alias and a topic's name."""

    @property
    def source_alias(self) -> str:
        """The cluster that is copied from."""

    def knowing(self, source_topics: Collection[str]) -> Self:
        """Return the same names, once it is known which topics the source has."""

    def target_topic(self, source_topic: str) -> str:
        """Return the target's name of a source topic."""

    def source_topic(self, target_topic: str) -> str | None:
        """Return the source topic whose copy in this flow has this name; None where there is none."""

    def why_not_replicated(self, source_topic: str) -> str | None:
        """Return the sentence that says why a topic of this name is never copied; None where it may be."""

    def is_internal(self, topic: str) -> bool:
        """True if a topic of this name is Kafka's or the replicator's own."""


@dataclass(frozen=True, slots=True)
class ReplicationPolicy:
    """The names of one flow, from `source_alias` to `target_alias`, which are those of MM2's connectors.

    `before_kafka_4` is whether MM2 is older than Kafka 4.0, None where that is not known. `separator` is
    `replication.policy.separator`, `internal_separator_enabled` is
    `replication.policy.internal.topic.separator.enabled` (KIP-949): without it, MM2's own topics have dots.
    """

    kind: PolicyKind
    source_alias: str
    target_alias: str
    separator: str = "."
    internal_separator_enabled: bool = True
    before_kafka_4: bool | None = None

    def knowing(self, source_topics: Collection[str]) -> Self:
        """Return the same names: these depend on no topic that is there."""
        return self

    def target_topic(self, source_topic: str) -> str:
        """Return the target's name of a source topic, as MM2 writes it into checkpoints.

        A topic that came from the target (its prefix is the target's alias) is given back its original name.
        """
        if self._origin(source_topic) == self.target_alias:
            *_, original = self._hops(source_topic)
            return original
        if self.kind is PolicyKind.IDENTITY and not source_topic.endswith(HEARTBEATS):
            return source_topic
        return f"{self.source_alias}{self.separator}{source_topic}"

    def source_topic(self, target_topic: str) -> str | None:
        """Return the source topic whose copy in this flow has this name; None where there is none."""
        source_topic = target_topic
        if self.kind is PolicyKind.DEFAULT or target_topic.endswith(HEARTBEATS):
            prefix = f"{self.source_alias}{self.separator}"
            source_topic = target_topic.removeprefix(prefix) if target_topic.startswith(prefix) else ""
        return source_topic if source_topic and self.target_topic(source_topic) == target_topic else None

    def why_not_replicated(self, source_topic: str) -> str | None:
        """Return the sentence that says why a topic of this name is never copied; None where it may be.

        MM2's `topics` and `topics.exclude` are not asked here (`Flow.topic_filter`).
        """
        if self.is_internal(source_topic):
            return f"{source_topic} is an internal topic of Kafka or MM2, which MM2 never copies."
        if self.before_kafka_4 and self.ends_internal(source_topic):
            return f"{source_topic} ends in internal: MM2 before Kafka 4.0 never copies such topics."
        if any(self._origin(hop) == self.target_alias for hop in self._hops(source_topic)):
            return f"By its name {source_topic} came from {self.target_alias}, and MM2 copies nothing back."
        return None

    def is_internal(self, topic: str) -> bool:
        """True if no MM2 copies a topic of this name (`ReplicationPolicy.isInternalTopic`, KIP-1074)."""
        is_mm2s = topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")
        return is_mm2s or topic.startswith(("__", ".")) or topic.endswith(self._checkpoints_suffix)

    def ends_internal(self, topic: str) -> bool:
        """True if MM2 before Kafka 4.0 does not copy a topic of this name, because of how it ends."""
        return topic.endswith((".internal", "-internal", f"{self.internal_separator}internal"))

    def checkpoints_topic(self) -> str:
        """Return the name of the flow's checkpoints topic, which is on the target."""
        return f"{self.source_alias}{self._checkpoints_suffix}"

    def offset_syncs_topic(self, side: Side) -> str:
        """Return the name of the flow's offset-syncs topic where it is on `side`: it names the other side."""
        other = self.target_alias if side is Side.SOURCE else self.source_alias
        return f"mm2-offset-syncs{self.internal_separator}{other}{self.internal_separator}internal"

    @property
    def internal_separator(self) -> str:
        """What separates the parts of the names of MM2's own topics."""
        return self.separator if self.internal_separator_enabled else "."

    @property
    def _checkpoints_suffix(self) -> str:
        return f"{self.internal_separator}checkpoints{self.internal_separator}internal"

    def _origin(self, topic: str) -> str | None:
        """The alias of the cluster that a topic came from, by its name; None for a cluster's own topic."""
        if self.kind is PolicyKind.IDENTITY and not topic.endswith(HEARTBEATS):
            return self.source_alias
        # As Java's split: empty parts at the end do not count, so "a." has no origin.
        parts = topic.split(self.separator) if self.separator else list(topic)
        while parts and not parts[-1]:
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def _hops(self, topic: str) -> Iterator[str]:
        """Yield the topic's name, then that one cluster earlier, and so on to that of the cluster it came from."""
        while True:
            yield topic
            origin = self._origin(topic)
            if origin is None or (self.kind is PolicyKind.IDENTITY and not topic.endswith(HEARTBEATS)):
                return
            topic = topic[len(origin) + len(self.separator) :]


@dataclass(frozen=True, slots=True)
class ReversedPolicy:
    """The names of a flow on the way back (failback): a source topic is a copy, its target topic the original.

    `forward` are the names of the copying, MM2's or another's; nothing is copied this way.
    """

    forward: TopicNames

    def knowing(self, source_topics: Collection[str]) -> Self:
        """Return the same names, once it is known which topics there are where they are copied from."""
        return replace(self, forward=self.forward.knowing(source_topics))

    @property
    def kind(self) -> PolicyKind:
        """How copies are named."""
        return self.forward.kind

    @property
    def separator(self) -> str:
        """What stands between an alias and a name."""
        return self.forward.separator

    def target_topic(self, source_topic: str) -> str:
        """Return the name of the topic that this one is a copy of; "", which no topic has, where it is no copy."""
        return self.forward.source_topic(source_topic) or ""

    def source_topic(self, target_topic: str) -> str | None:
        """Return the name of the copy of a topic; None where the flow's names rule a copy out."""
        return None if self.forward.why_not_replicated(target_topic) else self.forward.target_topic(target_topic)

    def why_not_replicated(self, source_topic: str) -> str | None:
        """Return the sentence that says why a topic of this name is no copy; None where it may be one."""
        original, alias = self.forward.source_topic(source_topic), self.forward.source_alias
        if original is None:
            return (
                f"By its name {source_topic} is not a copy of a topic of {alias}: {alias} has no place for this commit."
            )
        return self.forward.why_not_replicated(original)

    def is_internal(self, topic: str) -> bool:
        """True if a topic of this name is Kafka's or the replicator's own."""
        return self.forward.is_internal(topic)
