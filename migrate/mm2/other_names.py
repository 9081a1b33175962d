"""How a replicator that is not MirrorMaker 2 names topics on the target: as a map says, else as on the source. Pure.

A map with expressions says what a topic is called on the target, and not the other way: so a way back, and what two
topics may share, is known once the source's topics were listed (`MappedNames.knowing`).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from migrate.mm2.name_map import NameMap
from migrate.mm2.naming import PolicyKind
from migrate.text import name


@dataclass(frozen=True)
class MappedNames:
    """The names of one flow behind another replicator.

    `targets` gives the target's name of every topic that was listed on the source, `sources` the other way.
    """

    source_alias: str
    target_alias: str
    names: NameMap = NameMap()
    targets: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def kind(self) -> PolicyKind:
        """By a map, or unchanged."""
        return PolicyKind.MAP if self.names else PolicyKind.IDENTITY

    @property
    def separator(self) -> str:
        """Nothing separates an alias from a topic's name here."""
        return ""

    def knowing(self, source_topics: Collection[str]) -> Self:
        """Return the same names, with the topics of the source that may be copied."""
        targets = {topic: self.names.mapped(topic) for topic in sorted(source_topics) if not self.is_internal(topic)}
        sources: dict[str, list[str]] = defaultdict(list)
        for topic, target in targets.items():
            sources[target].append(topic)
        return replace(self, targets=targets, sources={target: tuple(topics) for target, topics in sources.items()})

    def target_topic(self, source_topic: str) -> str:
        """Return the target's name of a source topic."""
        known = self.targets.get(source_topic)
        return self.names.mapped(source_topic) if known is None else known

    def source_topic(self, target_topic: str) -> str | None:
        """Return the one source topic whose copy has this name; None where there is none, or more than one."""
        if not self.names:
            return None if self.is_internal(target_topic) else target_topic
        found = self.sources.get(target_topic, ())
        return found[0] if len(found) == 1 else None

    def why_not_replicated(self, source_topic: str) -> str | None:
        """Return the sentence that says why a topic's positions mean nothing on the target; None where they may."""
        if self.is_internal(source_topic):
            return f"{source_topic} is an internal topic of Kafka."
        target = self.target_topic(source_topic)
        others = [topic for topic in self.sources.get(target, ()) if topic != source_topic]
        if others:
            return (
                f"On {self.target_alias} the topic {name(target)} would be the copy of {name(others[0])} as well: "
                "where records of two topics are mixed, no position of either means anything."
            )
        return None

    def is_internal(self, topic: str) -> bool:
        """True if a topic of this name is Kafka's own."""
        return topic.startswith("__")
