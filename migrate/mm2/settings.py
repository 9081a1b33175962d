"""What MM2's own settings say of one flow, wherever they are kept. Pure.

mm2.properties, a Connect worker and a Strimzi resource share the names of the connectors' settings
(`MirrorConnectorConfig`, `MirrorSourceConfig`, `MirrorCheckpointConfig`). None here is a connection or a credential.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from migrate.errors import ConfigError
from migrate.mm2.flow import TopicFilter
from migrate.mm2.java_properties import BLANKS
from migrate.mm2.naming import HEARTBEATS, PolicyKind, ReplicationPolicy
from migrate.model import Side

# Kafka 4.x. Earlier versions exclude more (.*[\-\.]internal): the target shows whether such a topic is there.
TOPICS_EXCLUDE = r"mm2.*\.internal, .*\.replica, __.*"
GROUPS_EXCLUDE = "console-consumer-.*, connect-.*, __.*"

_DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
_POLICIES = {
    _DEFAULT_POLICY: PolicyKind.DEFAULT,
    "org.apache.kafka.connect.mirror.IdentityReplicationPolicy": PolicyKind.IDENTITY,
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy": PolicyKind.IDENTITY,
}


@dataclass(frozen=True, slots=True)
class Overrides:
    """What options say of the flow's names; None where they do not."""

    replication_policy: str | None = None
    separator: str | None = None
    syncs_side: Side | None = None
    checkpoints_topic: str | None = None
    offset_syncs_topic: str | None = None
    connect_offsets_topic: str | None = None


NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True)
class FlowFacts:
    """How one flow names, filters and copies; None where it is unknown, or a class of the user's own filters."""

    policy: ReplicationPolicy
    syncs_side: Side
    topic_filter: TopicFilter | None = None
    group_filter: TopicFilter | None = None
    group_sync: bool | None = None
    emits_offset_syncs: bool | None = None
    isolation_level: str | None = None


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """The settings of one flow's connector: `value` gives one by its name, None where it is not set.

    `origin` says where they are, for errors; values never reach one, names do.
    """

    origin: str
    source: str
    target: str
    value: Callable[[str], str | None] = field(repr=False)

    def policy(self, overrides: Overrides) -> ReplicationPolicy:
        """Return how topics are named; raises `ConfigError` for a policy class that only the user knows."""
        name = (self.value("replication.policy.class") or _DEFAULT_POLICY).strip(BLANKS)
        kind = _POLICIES.get(name)
        if overrides.replication_policy is not None:
            kind = PolicyKind(overrides.replication_policy)
        own_names = overrides.checkpoints_topic and overrides.offset_syncs_topic
        if kind is None or (name not in _POLICIES and not own_names):
            raise ConfigError(
                f"replication.policy.class in {self.origin} is {name}, whose names this tool does not know.",
                "Say what it does with --replication-policy default or identity, --checkpoints-topic and "
                "--offset-syncs-topic.",
            )
        # What an option says is not asked for: there connectors may disagree, or only refer to it.
        separator = self.value("replication.policy.separator") if overrides.separator is None else overrides.separator
        return ReplicationPolicy(
            kind,
            self.source,
            self.target,
            "." if separator is None else separator,
            self.is_on("replication.policy.internal.topic.separator.enabled", default=True),
        )

    def syncs_side(self, overrides: Overrides) -> Side:
        """Return where the offset-syncs topic is kept (KIP-716)."""
        if overrides.syncs_side is not None:
            return overrides.syncs_side
        location = (self.value("offset-syncs.topic.location") or "source").strip(BLANKS)
        if location not in ("source", "target"):
            raise ConfigError(
                f"offset-syncs.topic.location in {self.origin} is neither source nor target.",
                "Correct it, or say --offset-syncs-location.",
            )
        return Side(location)

    def is_on(self, key: str, default: bool) -> bool:
        """Return a setting that is true or false; raises `ConfigError` if it is neither."""
        value = self.value(key)
        word = str(default).lower() if value is None else value.strip(BLANKS).lower()
        if word not in ("true", "false"):
            raise ConfigError(f"{key} in {self.origin} is neither true nor false.", "Correct it.")
        return word == "true"

    def filter(self, what: str, default_exclude: str, also: str = "") -> TopicFilter | None:
        """Return MM2's filter on names of "topic" or "group"; None where a class of the user's own decides."""
        own = (self.value(f"{what}.filter.class") or "").strip(BLANKS)
        if own and not own.startswith("org.apache.kafka.connect.mirror.Default"):
            return None
        excludes = (self.value(f"{what}s.{key}") for key in ("exclude", "blacklist"))
        exclude = next((value for value in excludes if value is not None), default_exclude)
        include = self.value(f"{what}s")
        return TopicFilter(
            self._patterns(f"{what}s", ".*" if include is None else include) + ((re.compile(also),) if also else ()),
            self._patterns(f"{what}s.exclude", exclude),
        )

    def _patterns(self, key: str, value: str) -> tuple[re.Pattern[str], ...]:
        """Compile a comma-separated list as MM2 does: trimmed, an empty one matches nothing."""
        texts = re.split(r"\s*,\s*", value.strip(BLANKS)) if value.strip(BLANKS) else []
        try:
            return tuple(java_pattern(text) for text in texts)
        except re.error:
            pass
        try:
            # MM2 joins the list with |, so a comma inside parentheses, as in (a,b), works there by accident.
            return (java_pattern("|".join(texts)),)
        except re.error as error:
            raise ConfigError(
                f"{key} in {self.origin} has a regular expression that this version cannot read: {error}.",
                "Write it without what only Java knows.",
            ) from None


def facts_of(copying: Sequence[FlowSettings], checkpointing: Sequence[FlowSettings], overrides: Overrides) -> FlowFacts:
    """Add up the connectors of one flow, which agree on names: people split its topics over several.

    The isolation level is left to the caller.
    """
    return FlowFacts(
        policy=copying[0].policy(overrides),
        syncs_side=copying[0].syncs_side(overrides),
        # Heartbeats are always copied (`MirrorSourceConnector.shouldReplicateTopic`).
        topic_filter=_either([s.filter("topic", TOPICS_EXCLUDE, also=HEARTBEATS) for s in copying]),
        group_filter=_either([s.filter("group", GROUPS_EXCLUDE) for s in checkpointing]),
        # Whether MM2 itself sets offsets of idle groups (KIP-545). Without a checkpoint connector here, one in another
        # worker may do it.
        group_sync=any(s.is_on("sync.group.offsets.enabled", False) for s in checkpointing) if checkpointing else None,
        emits_offset_syncs=any(s.is_on("emit.offset-syncs.enabled", True) for s in copying),  # KIP-1031
    )


def isolation_level(values: Iterable[str | None]) -> str:
    """Return that of MM2's source consumer, the first that is set of these; exactly-once alone does not change it."""
    return next((value.strip(BLANKS).lower() for value in values if value), "read_uncommitted")


def _either(filters: Sequence[TopicFilter | None]) -> TopicFilter | None:
    """Return what at least one of the filters takes; None where that is unknown, or no one filter can say it."""
    known = [f for f in filters if f is not None]
    if len(known) < len(filters) or len({tuple(p.pattern for p in f.exclude) for f in known}) != 1:
        return None
    include = {p.pattern: p for f in known for p in f.include}
    return TopicFilter(tuple(include.values()), known[0].exclude)


def java_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression that Java would read in the same way.

    Raises `re.error` where Python's syntax differs or the expression is wrong; its text says where.
    """
    with warnings.catch_warnings():
        # Character class operations (`[a-z&&[^x]]`) are read otherwise by Python, which only warns of them.
        warnings.simplefilter("error", FutureWarning)
        try:
            return re.compile(text, re.ASCII)
        except FutureWarning:
            raise re.error("character class operations are not supported", text) from None
        except (OverflowError, RecursionError):
            raise re.error("the expression is too large", text) from None
