"""What MM2's own settings say of one flow, wherever they are kept. Pure.

mm2.properties, a Connect worker and a Strimzi resource share the names of the connectors' settings
(`MirrorConnectorConfig`, `MirrorSourceConfig`, `MirrorCheckpointConfig`). None here is a connection or a credential.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from migrate.errors import ConfigError
from migrate.mm2.flow import FlowFilter, TopicFilter
from migrate.mm2.java_properties import BLANKS
from migrate.mm2.naming import HEARTBEATS, PolicyKind, ReplicationPolicy
from migrate.model import Side

TOPICS_EXCLUDE = r"mm2.*\.internal, .*\.replica, __.*"
TOPICS_EXCLUDE_BEFORE_4 = r".*[\-\.]internal, .*\.replica, __.*"
GROUPS_EXCLUDE = "console-consumer-.*, connect-.*, __.*"

_DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
_POLICIES = {
    _DEFAULT_POLICY: PolicyKind.DEFAULT,
    "org.apache.kafka.connect.mirror.IdentityReplicationPolicy": PolicyKind.IDENTITY,
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy": PolicyKind.IDENTITY,
}


# Apache's own versions, also those that are not released yet. What a vendor adds behind may count otherwise.
_KAFKA = re.compile(r"([0-4])\.(\d+)(?:\.\d+)*(?:-(?:SNAPSHOT|rc\d+))?", re.IGNORECASE)
_CONFLUENT = re.compile(r"(\d+)\.(\d+)[.\d-]*-(?:ccs|ce)", re.IGNORECASE)


def kafka_version(text: str) -> tuple[int, int] | None:
    """Return Kafka's major and minor version that a worker's version means; None where that is not known.

    Confluent Platform (`-ccs`, `-ce`) counts by itself: 5.x is Kafka 2.x, 6.0 to 6.2 are 2.6 to 2.8, 7.y is 3.y, and
    8.y is 4.y ("Supported versions and interoperability" in its documentation).
    """
    if match := _CONFLUENT.fullmatch(text):
        major, minor = int(match[1]), int(match[2])
        if major == 6:
            return (2, 6 + minor) if minor <= 2 else None
        return ({5: 2, 7: 3, 8: 4}[major], minor) if major in (5, 7, 8) else None
    if match := _KAFKA.fullmatch(text):
        return int(match[1]), int(match[2])
    return None


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
class FlowSettings:
    """The settings of one flow's connector: `value` gives one by its name, None where it is not set.

    `origin` says where they are, for errors; values never reach one, names do. `source` and `target` are the aliases
    in the connector's own settings. `version` is what it runs in calls itself, "" where that is not known.
    """

    origin: str
    source: str
    target: str
    value: Callable[[str], str | None] = field(repr=False)
    version: str = ""

    @property
    def before_kafka_4(self) -> bool | None:
        """Whether it is older than Kafka 4.0; None where that is not known."""
        version = kafka_version(self.version)
        return None if version is None else version < (4, 0)

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

    def emits_checkpoints(self) -> bool:
        """Return whether MM2 starts tasks that make checkpoints, without which it sets no offsets of groups either."""
        return (
            self.is_on("enabled", True)
            and self.is_on("emit.checkpoints.enabled", True)
            and not self._is_negative("emit.checkpoints.interval.seconds")
        )

    def syncs_groups(self) -> bool:
        """Return whether MM2 itself sets offsets of idle groups (KIP-545)."""
        is_on = self.is_on("sync.group.offsets.enabled", False)
        return is_on and self.emits_checkpoints() and not self._is_negative("sync.group.offsets.interval.seconds")

    def _is_negative(self, key: str) -> bool:
        """Return whether an interval is, which is how MM2 itself disables what it schedules."""
        return (self.value(key) or "").strip(BLANKS).startswith("-")

    def topic_filter(self) -> tuple[TopicFilter, ...] | None:
        """Return the readings of MM2's filter on topics; None where a class of the user's own decides."""
        # Heartbeats are always copied (`MirrorSourceConnector.shouldReplicateTopic`).
        default = TOPICS_EXCLUDE_BEFORE_4 if self.before_kafka_4 else TOPICS_EXCLUDE
        return self._filter("topic", default, (re.compile(HEARTBEATS),))

    def group_filter(self) -> tuple[TopicFilter, ...] | None:
        """Return the readings of MM2's filter on groups; None where a class of the user's own decides."""
        return self._filter("group", GROUPS_EXCLUDE)

    def _filter(
        self, what: str, default_exclude: str, also: tuple[re.Pattern[str], ...] = ()
    ) -> tuple[TopicFilter, ...] | None:
        own = (self.value(f"{what}.filter.class") or "").strip(BLANKS)
        if own and not own.startswith("org.apache.kafka.connect.mirror.Default"):
            return None
        value = self.value(f"{what}s")
        include = self._patterns(f"{what}s", ".*" if value is None else value) + also
        excludes = self._excludes(what, default_exclude)
        return tuple(TopicFilter(include, self._patterns(key, exclude)) for key, exclude in excludes)

    def _excludes(self, what: str, default: str) -> tuple[tuple[str, str], ...]:
        """Return what is left out, each with the setting that says so; both where MM2's version decides."""
        exclude = self.value(f"{what}s.exclude")
        # Kafka 4.0 has removed the blacklists, which say nothing there.
        blacklist = None if self.before_kafka_4 is False else self.value(f"{what}s.blacklist")
        of_exclude = (f"{what}s.exclude", default if exclude is None else exclude)
        if exclude is not None or blacklist is None:
            return (of_exclude,)
        of_blacklist = (f"{what}s.blacklist", blacklist)
        return (of_blacklist,) if self.before_kafka_4 else (of_blacklist, of_exclude)

    def _patterns(self, key: str, value: str) -> tuple[re.Pattern[str], ...]:
        """Compile a comma-separated list as MM2 does: trimmed, an empty one matches nothing."""
        texts = re.split(r"\s*,\s*", value.strip(BLANKS)) if value.strip(BLANKS) else []
        try:
            return tuple(java_pattern(text) for text in texts)
        except re.error as error:
            raise ConfigError(
                f"{key} in {self.origin} has a regular expression that this version cannot read: {error}.",
                "Write it without what only Java knows, and without commas inside of one.",
            ) from None


def isolation_level(values: Iterable[str | None]) -> str:
    """Return that of MM2's source consumer, the first that is set of these; exactly-once alone does not change it."""
    return next((value.strip(BLANKS).lower() for value in values if value), "read_uncommitted")


def together(connectors: Sequence[tuple[TopicFilter, ...] | None]) -> FlowFilter | None:
    """Return what at least one of the connectors takes; None where that is unknown of one of them."""
    known = tuple(readings for readings in connectors if readings is not None)
    return FlowFilter(known) if known and len(known) == len(connectors) else None


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
