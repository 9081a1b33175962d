"""The flow between two clusters: where they are, what MM2 is called there, and what it replicates.

Built by `migrate.mm2config` from an mm2.properties file, or by `migrate.options` from two client files.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.model import Side
from migrate.naming import ReplicationPolicy


@dataclass(frozen=True)
class Cluster:
    """One cluster of the flow: its alias and its Java client properties (which may hold secrets).

    The properties never reach a plan, a log or an error: `repr` leaves them out. `origin` is the file they
    came from, for errors about one of them.
    """

    side: Side
    alias: str
    properties: Mapping[str, str] = field(repr=False)
    origin: str = ""

    @property
    def bootstrap(self) -> str:
        """The `bootstrap.servers` setting, for messages."""
        return self.properties.get("bootstrap.servers", "")


@dataclass(frozen=True)
class TopicFilter:
    """MM2's own `topics` and `topics.exclude`, as full-match regular expressions; exclude wins."""

    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    def accepts(self, name: str) -> bool:
        """True if MM2 would take this name."""
        return any(p.fullmatch(name) for p in self.include) and not any(p.fullmatch(name) for p in self.exclude)


@dataclass(frozen=True)
class Flow:
    """A source, a target, and the names and filters of the MM2 flow between them.

    `topic_filter` and `group_filter` are None where no MM2 configuration was given: then what is replicated
    is told by which topics the target has. `syncs_side` is where the offset-syncs topic lives.
    `named` lists the MM2 topics that the user named by option: a missing one is an error then, not a warning.
    `group_sync` is `sync.group.offsets.enabled`, `emits_offset_syncs` is `emit.offset-syncs.enabled`; None where
    unknown.
    """

    source: Cluster
    target: Cluster
    policy: ReplicationPolicy
    syncs_side: Side
    checkpoints_topic: str
    offset_syncs_topic: str
    topic_filter: TopicFilter | None = None
    group_filter: TopicFilter | None = None
    named: frozenset[str] = frozenset()
    group_sync: bool | None = None
    mm2_isolation_level: str | None = None
    emits_offset_syncs: bool | None = None
