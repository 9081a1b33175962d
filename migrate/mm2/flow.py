"""The flow between two clusters: where they are, what MM2 is called there, and what it replicates.

Built by `migrate.mm2.config_file` from an mm2.properties file, or by `migrate.cli.options` from two client files.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from migrate.mm2.naming import ReversedPolicy, TopicNames
from migrate.model import Side

CLIENT_ID = "mm2-migrate"
NEVER_CREATE = {"allow.auto.create.topics": "false"}


@dataclass(frozen=True)
class Cluster:
    """One cluster of the flow: its alias and its Java client properties.

    They may hold secrets: `repr` leaves them out, and none reaches a plan, a log or an error. `origin` is their file.
    """

    side: Side
    alias: str
    properties: Mapping[str, str] = field(repr=False)
    origin: str = ""

    @property
    def bootstrap(self) -> str:
        """The `bootstrap.servers` setting, for messages."""
        return self.properties.get("bootstrap.servers", "")

    @property
    def name(self) -> str:
        """The cluster in messages: "target B (broker:9092)"."""
        return f"{self.side} {self.alias} ({self.bootstrap})"


@dataclass(frozen=True)
class TopicFilter:
    """MM2's own `topics` and `topics.exclude`, as full-match regular expressions; exclude wins."""

    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    def accepts(self, name: str) -> bool:
        """True if MM2 would take this name."""
        return any(p.fullmatch(name) for p in self.include) and not any(p.fullmatch(name) for p in self.exclude)


class Mm2Home(StrEnum):
    """What MM2 runs in: by itself, in a Kafka Connect worker, under Strimzi's operator, or unknown."""

    DEDICATED = "dedicated"
    CONNECT = "connect"
    STRIMZI = "strimzi"
    UNKNOWN = "unknown"


class Replicator(StrEnum):
    """Who copies: MirrorMaker 2, whose topics are read, or anybody else, of whom only the records are."""

    MM2 = "mm2"
    ANY = "any"


# Of what only MM2 keeps, where another replicator copies.
NOT_MM2 = "not asked: another replicator"


class RuntimeWord(StrEnum):
    """How a plan's header names what is known of how MM2 runs."""

    REPLICATOR = "replicator"
    HOME = "mm2_runs"
    VERSION = "mm2_version"
    OFFSETS_TOPIC = "mm2_offsets_topic"
    SOURCES = "mm2_source_connectors"
    CHECKPOINTS = "mm2_checkpoint_connectors"
    URL = "mm2_connect_url"
    RESOURCE = "mm2_strimzi_resource"
    CONVERTERS = "mm2_converters"
    TRANSFORMS = "mm2_transforms"
    GROUP_SYNC = "mm2_group_sync"
    ISOLATION_LEVEL = "mm2_isolation_level"


# What MM2 by itself and Strimzi set where nobody else does: records are copied byte for byte.
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
CONVERTERS = ("key.converter", "value.converter", "header.converter")


@dataclass(frozen=True, slots=True)
class Mm2Runtime:
    """How MM2 runs, as far as its configuration says.

    `version` is Kafka's, `offsets_topic` where it keeps its own positions, both "" where unknown. The connectors are
    named as in the keys of that topic. `url` is the worker's REST address, without a login; `resource` the Strimzi
    resource's "namespace/name". `converters` and `transforms` may change records on the way; a converter is left out
    where the worker's own default decides.
    """

    home: Mm2Home = Mm2Home.UNKNOWN
    version: str = ""
    offsets_topic: str = ""
    source_connectors: tuple[str, ...] = ()
    checkpoint_connectors: tuple[str, ...] = ()
    url: str = ""
    resource: str = ""
    converters: Mapping[str, str] = field(default_factory=dict)
    transforms: str = ""


@dataclass(frozen=True)
class Flow:
    """A source, a target, and the names and filters of the MM2 flow between them.

    `topic_filter` and `group_filter` are None without an MM2 configuration: the target's topics then show what is
    replicated. `syncs_side` is where the offset-syncs topic is. `named` lists the MM2 topics that the user named by
    option: a missing one is an error then, not a warning. `group_sync` is `sync.group.offsets.enabled`,
    `emits_offset_syncs` is `emit.offset-syncs.enabled`; None where unknown. `failback` is True for the way back
    (`reversed`): `source` is MM2's target and `target` MM2's source; MM2's own settings stay its own. Where the
    `replicator` is not MM2, MM2's topics have no names (""): nobody looks for them.
    """

    source: Cluster
    target: Cluster
    policy: TopicNames | ReversedPolicy
    syncs_side: Side
    checkpoints_topic: str
    offset_syncs_topic: str
    topic_filter: TopicFilter | None = None
    group_filter: TopicFilter | None = None
    named: frozenset[str] = frozenset()
    group_sync: bool | None = None
    mm2_isolation_level: str | None = None
    emits_offset_syncs: bool | None = None
    failback: bool = False
    runtime: Mm2Runtime = Mm2Runtime()
    replicator: Replicator = Replicator.MM2

    @property
    def by_mm2(self) -> bool:
        """True if MM2 copies, and what it keeps is to be read."""
        return self.replicator is Replicator.MM2

    def knowing(self, topics: Collection[str]) -> "Flow":
        """Return the flow with the topics that are copied, by their names where they are copied from."""
        return replace(self, policy=self.policy.knowing(topics))

    def reversed(self) -> "Flow":
        """Return the way back: the groups leave MM2's target, and MM2's source is what is written.

        MM2's filter on groups says nothing there. Whether another MM2 copies that way, and sets offsets, is unknown.
        """
        assert not isinstance(self.policy, ReversedPolicy), "a way back has no way back"
        return replace(
            self,
            source=replace(self.target, side=Side.SOURCE),
            target=replace(self.source, side=Side.TARGET),
            policy=ReversedPolicy(self.policy),
            syncs_side=Side.TARGET if self.syncs_side is Side.SOURCE else Side.SOURCE,
            group_filter=None,
            group_sync=None,
            failback=True,
        )

    def left_out(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Return the groups that MM2's own filter leaves out; none where no configuration is known."""
        return tuple(g for g in groups if self.group_filter is not None and not self.group_filter.accepts(g))

    def synced(self, groups: Collection[str]) -> frozenset[str] | None:
        """Return the groups whose offsets MM2 itself writes on its target; None where no configuration is known."""
        if self.group_sync is None:
            return None
        return frozenset(groups) - set(self.left_out(groups)) if self.group_sync else frozenset()

    def mm2_topic(self, source_topic: str) -> str:
        """Return the name by which MM2's offset syncs know a topic: that on MM2's own source."""
        return self.policy.target_topic(source_topic) if self.failback else source_topic

    @property
    def target_isolation_level(self) -> str:
        """How the target's records are read for comparing.

        On a failback with the aborted ones: unless MM2 leaves them out, their copies are plain records on its target.
        """
        if self.failback and self.mm2_isolation_level != "read_committed":
            return "read_uncommitted"
        return "read_committed"

    @property
    def connect_offsets_topic(self) -> str:
        """Where MM2 keeps its own positions, on the target; "" where it runs in a worker and nobody named the topic.

        An MM2 that runs by itself names it after the source, always with dots.
        """
        in_worker = self.runtime.home in (Mm2Home.CONNECT, Mm2Home.STRIMZI) or not self.by_mm2
        return self.runtime.offsets_topic or ("" if in_worker else f"mm2-offsets.{self.source.alias}.internal")

    def runtime_words(self) -> dict[str, str]:
        """Return what is known of how MM2 runs, for a plan's header; nothing that is not known."""
        run = self.runtime
        changed = {key: name for key, name in run.converters.items() if name != BYTES}
        sync = {True: "on", False: "off", None: ""}[self.group_sync]
        words = {
            RuntimeWord.REPLICATOR: "" if self.by_mm2 else str(self.replicator),
            RuntimeWord.HOME: "" if run.home is Mm2Home.UNKNOWN else str(run.home),
            RuntimeWord.VERSION: run.version,
            RuntimeWord.OFFSETS_TOPIC: "" if self.failback else self.connect_offsets_topic,
            RuntimeWord.SOURCES: ", ".join(run.source_connectors),
            RuntimeWord.CHECKPOINTS: ", ".join(run.checkpoint_connectors),
            RuntimeWord.URL: run.url,
            RuntimeWord.RESOURCE: run.resource,
            RuntimeWord.CONVERTERS: ", ".join(f"{key} {name}" for key, name in sorted(changed.items())),
            RuntimeWord.TRANSFORMS: run.transforms,
            RuntimeWord.GROUP_SYNC: "" if self.failback else sync,
            RuntimeWord.ISOLATION_LEVEL: self.mm2_isolation_level or "",
        }
        return {str(word): text for word, text in words.items() if text}

    def why_not_replicated(self, source_topic: str) -> str:
        """Return why MM2 does not copy this topic, by its names and its topic filter; "" where it does."""
        why, name = self.policy.why_not_replicated(source_topic), self.mm2_topic(source_topic)
        if why is None and self.topic_filter is not None and not self.topic_filter.accepts(name):
            why = f"MM2's topic filter (topics, topics.exclude) does not take {name}."
        return why or ""
