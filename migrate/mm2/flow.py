"""The flow between two clusters: where they are, what MM2 is called there, and what it replicates.

Built by `migrate.mm2.config_file` from an mm2.properties file, or by `migrate.cli.options` from two client files.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from migrate.mm2.java_properties import BLANKS
from migrate.mm2.naming import ReplicationPolicy, ReversedPolicy, TopicNames
from migrate.model import Side
from migrate.token_command import TokenCommand

T = TypeVar("T")

CLIENT_ID = "mm2-migrate"
NEVER_CREATE = {"allow.auto.create.topics": "false"}


@dataclass(frozen=True)
class Cluster:
    """One cluster of the flow: its alias and its Java client properties.

    They may hold secrets: `repr` leaves them out, and none reaches a plan, a log or an error. `origin` is their file.
    Where there is a `token_command`, clients log in with what it prints, whatever `sasl.` settings there are.
    """

    side: Side
    alias: str
    properties: Mapping[str, str] = field(repr=False)
    origin: str = ""
    token_command: TokenCommand | None = field(default=None, repr=False)

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
    """MM2's `topics` and `topics.exclude`, or those on groups, as full-match regular expressions; exclude wins."""

    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    def accepts(self, name: str) -> bool:
        """True if MM2 would take this name."""
        return any(p.fullmatch(name) for p in self.include) and not any(p.fullmatch(name) for p in self.exclude)


@dataclass(frozen=True)
class FlowFilter:
    """What the connectors of a flow take together: a name is taken where one of them takes it.

    `connectors` has the readings of each: one, or two where MM2's version decides between them and is not known.
    """

    connectors: tuple[tuple[TopicFilter, ...], ...]

    def accepts(self, name: str) -> bool:
        """True if MM2 takes this name, or may take it."""
        return any(reading.accepts(name) for readings in self.connectors for reading in readings)

    def depends_on_version(self, name: str) -> bool:
        """True if MM2 takes this name in one version and leaves it out in another, and its version is not known."""
        surely = any(all(reading.accepts(name) for reading in readings) for readings in self.connectors)
        return self.accepts(name) and not surely

    @property
    def include(self) -> tuple[str, ...]:
        """All expressions that take names, for people to read."""
        return self._expressions("include")

    @property
    def exclude(self) -> tuple[str, ...]:
        """All expressions that leave names out, for people to read."""
        return self._expressions("exclude")

    def _expressions(self, which: str) -> tuple[str, ...]:
        readings = (reading for readings in self.connectors for reading in readings)
        return tuple(dict.fromkeys(p.pattern for reading in readings for p in getattr(reading, which)))


class Mm2Home(StrEnum):
    """What MM2 runs in: by itself, in a Kafka Connect worker, under Strimzi's operator, or unknown."""

    DEDICATED = "dedicated"
    CONNECT = "connect"
    STRIMZI = "strimzi"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Replicator:
    """Who copies: MirrorMaker 2, whose topics are read, or another, of which only the records are.

    `word` is what `--replicator` calls it, `name` what sentences do. `loses` says how records get lost, `premise` what
    offsets rest on whose records were not compared, `unproven` that nothing shows whether all is copied.
    """

    word: str
    name: str
    loses: str
    premise: str
    unproven: str


MM2 = Replicator(
    "mm2", "MM2",
    "MM2 loses records when a source topic is re-created, and its transforms may drop some.",
    "MM2's own offset syncs tell the truth",
    "neither MM2's own position nor the records show it",
)  # fmt: skip
ANY = Replicator(
    "any", "the replicator",
    "The replicator has left some out, or lost them.",
    "copies keep their timestamps; at the log start they skip nothing",
    "the records do not show it",
)  # fmt: skip
REPLICATORS = {each.word: each for each in (MM2, ANY)}
# Of what only MM2 keeps, where another replicator copies.
NOT_MM2 = "not asked: another replicator"


class RuntimeWord(StrEnum):
    """How a plan's header names what is known of how MM2 runs."""

    REPLICATOR = "replicator"
    SOURCE_ALIAS = "mm2_source_alias"
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


def converter_class(setting: str) -> str:
    """Return the class that a converter's setting means: `BYTES` where it names that one, or none.

    Connect takes a class without blanks, by its bare name too, and without "Converter" at its end (`PluginUtils`).
    """
    name = setting.strip(BLANKS)
    return BYTES if name in ("", "ByteArrayConverter", "ByteArray") else name


def called(side: Side, alias: str) -> str:
    """Return what a cluster is called on the command line and in messages: by its side where its alias is empty."""
    return alias or str(side)


@dataclass(frozen=True, slots=True)
class Mm2Runtime:
    """How MM2 runs, as far as its configuration says.

    `version` is Kafka's, "" where unknown. `offsets_topics` are where it keeps its own positions, none where unknown:
    each Strimzi resource has one. The connectors are named as in the keys of these topics. `url` is the worker's REST
    address, without a login; `resources` are the Strimzi resources' "namespace/name". `converters` and `transforms` may
    change records on the way, or the topic they go to; a converter is left out where the worker's own default decides.
    """

    home: Mm2Home = Mm2Home.UNKNOWN
    version: str = ""
    offsets_topics: tuple[str, ...] = ()
    source_connectors: tuple[str, ...] = ()
    checkpoint_connectors: tuple[str, ...] = ()
    url: str = ""
    resources: tuple[str, ...] = ()
    converters: Mapping[str, str] = field(default_factory=dict)
    transforms: str = ""


@dataclass(frozen=True)
class Flow:
    """A source, a target, and the names and filters of the MM2 flow between them.

    The clusters' aliases are those of `clusters` in mm2.properties, as the command line and messages name them. MM2's
    connectors may have others, which its topics, copies and positions bear: `policy` has these. `topic_filter` and
    `group_filter` are None without an MM2 configuration: the target's topics then show what is replicated.
    `syncs_side` is where the offset-syncs topic is. `named` lists the MM2 topics that the user named by option: a
    missing one is an error then, not a warning. `group_sync` is whether MM2 sets offsets of groups, `sync_filter` of
    which (None: of any), `sync_back` both for MM2's flow the other way, `emits_offset_syncs` and `emits_checkpoints`
    whether it writes to its two topics; None where unknown. On the way back (`reversed`) `source` is MM2's target and
    `target` MM2's source; MM2's own settings stay its own. Where the `replicator` is not MM2, MM2's topics have no
    names (""), and are not looked for.
    """

    source: Cluster
    target: Cluster
    policy: TopicNames | ReversedPolicy
    syncs_side: Side
    checkpoints_topic: str
    offset_syncs_topic: str
    topic_filter: FlowFilter | None = None
    group_filter: FlowFilter | None = None
    named: frozenset[str] = frozenset()
    group_sync: bool | None = None
    sync_filter: FlowFilter | None = None
    sync_back: tuple[bool | None, FlowFilter | None] = (None, None)
    mm2_isolation_level: str | None = None
    emits_offset_syncs: bool | None = None
    emits_checkpoints: bool | None = None
    runtime: Mm2Runtime = Mm2Runtime()
    replicator: Replicator = MM2

    @property
    def by_mm2(self) -> bool:
        """True if MM2 copies, and what it keeps is to be read."""
        return self.replicator == MM2

    @property
    def failback(self) -> bool:
        """True for the way back: the groups go where the records came from, and nothing is copied their way."""
        return isinstance(self.policy, ReversedPolicy)

    @property
    def mm2_delivers(self) -> bool:
        """True if MM2 copies the way that the groups go: its checkpoints, its positions and its tasks matter then."""
        return self.by_mm2 and not self.failback

    def turned(self, of_source: T, of_target: T) -> tuple[T, T]:
        """Return what belongs to the plan's clusters in the replicator's order, where it copies from first.

        And what is in the replicator's order in the plan's: only on the way back the two swap.
        """
        return (of_target, of_source) if self.failback else (of_source, of_target)

    @property
    def mm2_source_alias(self) -> str:
        """What MM2's connectors call their source: so the keys of its positions name it."""
        return self._mm2_policy.source_alias

    @property
    def _mm2_policy(self) -> TopicNames:
        return self.policy.forward if isinstance(self.policy, ReversedPolicy) else self.policy

    def knowing(self, topics: Collection[str]) -> "Flow":
        """Return the flow with the topics that are copied, by their names where they are copied from."""
        return replace(self, policy=self.policy.knowing(topics))

    def reversed(self) -> "Flow":
        """Return the way back: the groups leave MM2's target, and MM2's source is what is written.

        MM2's filter on groups says nothing there.
        """
        assert not isinstance(self.policy, ReversedPolicy), "a way back has no way back"
        group_sync, sync_filter = self.sync_back
        return replace(
            self,
            source=replace(self.target, side=Side.SOURCE),
            target=replace(self.source, side=Side.TARGET),
            policy=ReversedPolicy(self.policy),
            syncs_side=self.syncs_side.other,
            group_filter=None,
            group_sync=group_sync,
            sync_filter=sync_filter,
        )

    def left_out(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Return the groups that MM2's own filter leaves out; none where no configuration is known."""
        return tuple(g for g in groups if self.group_filter is not None and not self.group_filter.accepts(g))

    def synced(self, groups: Iterable[str]) -> frozenset[str] | None:
        """Return the groups whose offsets MM2 itself writes on its target, or may; None where that is not known."""
        if self.group_sync is None:
            return None
        return frozenset(g for g in groups if self.group_sync and (not self.sync_filter or self.sync_filter.accepts(g)))

    def perhaps_synced(self, groups: Iterable[str]) -> frozenset[str]:
        """Return those of the synced groups that MM2's filter may leave out: its version decides, and is not known."""
        synced = self.synced(groups) or frozenset()
        return frozenset(g for g in synced if self.sync_filter and self.sync_filter.depends_on_version(g))

    def mm2_topic(self, source_topic: str) -> str:
        """Return the name by which MM2's offset syncs know a topic: that on MM2's own source."""
        return self.policy.target_topic(source_topic) if self.failback else source_topic

    def source_topic(self, mm2_topic: str) -> str | None:
        """Return the name on the plan's source of a topic that MM2's source has; None where it has none there."""
        return self.policy.source_topic(mm2_topic) if self.failback else mm2_topic

    @property
    def target_isolation_level(self) -> str:
        """How the target's records are read for comparing.

        On a failback with the aborted ones: unless MM2 leaves them out, their copies are plain records on its target.
        """
        if self.failback and self.mm2_isolation_level != "read_committed":
            return "read_uncommitted"
        return "read_committed"

    @property
    def connect_offsets_topics(self) -> tuple[str, ...]:
        """Where MM2 keeps its own positions, on the target; none where it runs in a worker and nobody named the topic.

        An MM2 that runs by itself names it after the source's alias in `clusters`, always with dots.
        """
        in_worker = self.runtime.home in (Mm2Home.CONNECT, Mm2Home.STRIMZI) or not self.by_mm2
        return self.runtime.offsets_topics or (() if in_worker else (f"mm2-offsets.{self.source.alias}.internal",))

    def runtime_words(self) -> dict[str, str]:
        """Return what is known of how MM2 runs, for a plan's header; nothing that is not known."""
        run = self.runtime
        changed = {key: name for key, name in run.converters.items() if name != BYTES}
        sync = {True: "on", False: "off", None: ""}[self.group_sync]
        words = {
            RuntimeWord.REPLICATOR: "" if self.by_mm2 else self.replicator.word,
            RuntimeWord.HOME: "" if run.home is Mm2Home.UNKNOWN else str(run.home),
            RuntimeWord.VERSION: run.version,
            RuntimeWord.OFFSETS_TOPIC: "" if self.failback else ", ".join(self.connect_offsets_topics),
            RuntimeWord.SOURCES: ", ".join(run.source_connectors),
            RuntimeWord.CHECKPOINTS: ", ".join(run.checkpoint_connectors),
            RuntimeWord.URL: run.url,
            RuntimeWord.RESOURCE: ", ".join(run.resources),
            RuntimeWord.CONVERTERS: ", ".join(f"{key} {name}" for key, name in sorted(changed.items())),
            RuntimeWord.TRANSFORMS: run.transforms,
            RuntimeWord.GROUP_SYNC: "" if self.failback else sync,
            RuntimeWord.ISOLATION_LEVEL: self.mm2_isolation_level or "",
        }
        known = {str(word): text for word, text in words.items() if text}
        # It may be empty, and says something all the same.
        alias, copied_from = self.mm2_source_alias, self.turned(self.source, self.target)[0]
        return known if alias == copied_from.alias else known | {str(RuntimeWord.SOURCE_ALIAS): alias}

    def why_not_replicated(self, source_topic: str) -> str:
        """Return why MM2 does not copy this topic, by its names and its topic filter; "" where it does."""
        why, name = self.policy.why_not_replicated(source_topic), self.mm2_topic(source_topic)
        if why is None and self.topic_filter is not None and not self.topic_filter.accepts(name):
            why = f"MM2's topic filter (topics, topics.exclude) does not take {name}."
        return why or ""

    def why_perhaps_not_replicated(self, source_topic: str) -> str:
        """Return why MM2 may not copy this topic, or not to the name that its policy gives; "" where nothing hints."""
        name, policy = self.mm2_topic(source_topic), self._mm2_policy
        if self.topic_filter is not None and self.topic_filter.depends_on_version(name):
            return f"Whether MM2 takes {name} depends on its version: topics.blacklist counts before Kafka 4.0 alone."
        if isinstance(policy, ReplicationPolicy) and policy.before_kafka_4 is None and policy.ends_internal(name):
            return "MM2 before Kafka 4.0 never copies topics that end in .internal or -internal."
        if self.runtime.transforms:
            return f"MM2's transforms ({self.runtime.transforms}) may send its records to another topic."
        return ""

    def why_not_emitted(self, topic: str) -> str:
        """Return the setting by which MM2 writes nothing to one of its two topics; "" where it does, or may."""
        if topic == self.checkpoints_topic and self.emits_checkpoints is False:
            return "emit.checkpoints.enabled, its interval or enabled lets MM2 write no checkpoints"
        if topic == self.offset_syncs_topic and self.emits_offset_syncs is False:
            return "emit.offset-syncs.enabled=false lets MM2 write no offset syncs"
        return ""
