"""What can be chosen about a MirrorMaker 2 flow in the lab, and the names that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

IDENTITY_POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
# One copy and one partition of each topic of MM2's, and a second between two looks.
ONE_EACH = (
    "replication.factor",
    *(f"{name}.topic.replication.factor" for name in ("checkpoints", "heartbeats", "offset-syncs")),
    *(f"{name}.storage.replication.factor" for name in ("offset", "status", "config")),
    *(f"{name}.storage.partitions" for name in ("offset", "status")),
    *(f"refresh.{name}.interval.seconds" for name in ("topics", "groups")),
    *(f"emit.{name}.interval.seconds" for name in ("checkpoints", "heartbeats")),
    "sync.group.offsets.interval.seconds",
)


@dataclass(frozen=True)
class MirrorOptions:
    """One flow, source alias -> target alias. `extra` lines of mm2.properties are added last and win.

    With `connect`, MM2's connectors run in a Connect worker with that worker's own header converter;
    `source_connector` lines then go to the connector that copies records, and win. Without `emit_offsets` MM2 writes
    neither offset syncs nor checkpoints (KIP-1031, 3.9 and later), and has no topics for them. `own_alias` is what the
    flow's own settings call the source, where that is not its alias in `clusters`.
    """

    source_alias: str = "A"
    target_alias: str = "B"
    exactly_once: bool = False
    offset_syncs_location: Literal["source", "target"] = "source"
    policy: Literal["default", "identity"] = "default"
    separator: str = "."
    offset_lag_max: int = 10
    topics: str = ".*"
    groups: str = ".*"
    sync_group_offsets: bool = False
    tasks_max: int = 1
    extra: Mapping[str, str] = field(default_factory=dict)
    connect: bool = False
    source_connector: Mapping[str, str] = field(default_factory=dict)
    emit_offsets: bool = True
    own_alias: str | None = None

    @property
    def flow(self) -> str:
        return f"{self.source_alias}->{self.target_alias}"

    @property
    def connectors_source_alias(self) -> str:
        """What MM2's connectors call the source, and so its topics, copies and positions."""
        return self.source_alias if self.own_alias is None else self.own_alias

    @property
    def checkpoints_topic(self) -> str:
        """On the target."""
        return f"{self.connectors_source_alias}{self.separator}checkpoints{self.separator}internal"

    @property
    def offset_syncs_topic(self) -> str:
        """On the cluster named by `offset_syncs_location`; it carries the other cluster's alias."""
        other = self.target_alias if self.offset_syncs_location == "source" else self.connectors_source_alias
        return f"mm2-offset-syncs{self.separator}{other}{self.separator}internal"

    @property
    def connect_offsets_topic(self) -> str:
        """On the target; MM2's own progress."""
        if self.connect:
            return f"connect-{self.source_alias}-offsets"
        return f"mm2-offsets.{self.source_alias}.internal"

    @property
    def topics_of_its_own(self) -> tuple[str, ...]:
        """What a living MM2 writes to again and again beside the copies, on either cluster."""
        return "heartbeats", self.checkpoints_topic, self.offset_syncs_topic, self.connect_offsets_topic

    def target_topic(self, topic: str) -> str:
        """The name of a source topic's copy."""
        return topic if self.policy == "identity" else f"{self.connectors_source_alias}{self.separator}{topic}"

    def properties(self, source_bootstrap: str, target_bootstrap: str) -> dict[str, str]:
        """The lines of mm2.properties, with every interval as short as MM2 allows."""
        source, target, flow = self.source_alias, self.target_alias, self.flow
        back = f"{target}->{source}"
        lines = {
            "clusters": f"{source}, {target}",
            f"{source}.bootstrap.servers": source_bootstrap,
            f"{target}.bootstrap.servers": target_bootstrap,
            f"{flow}.enabled": "true",
            f"{flow}.topics": self.topics,
            f"{flow}.groups": self.groups,
            f"{flow}.offset.lag.max": str(self.offset_lag_max),
            f"{flow}.offset-syncs.topic.location": self.offset_syncs_location,
            f"{flow}.sync.group.offsets.enabled": str(self.sync_group_offsets).lower(),
            f"{back}.enabled": "false",
            f"{back}.emit.heartbeats.enabled": "false",
            **dict.fromkeys(ONE_EACH, "1"),
            "consumer.poll.timeout.ms": "200",
            "sync.topic.acls.enabled": "false",
            # Settings of the Connect worker count only under the alias of the cluster it writes to.
            f"{target}.offset.flush.interval.ms": "1000",
            f"{target}.plugin.discovery": "service_load",
            # A killed worker is forgotten soon, and its work handed to the next one without delay.
            f"{target}.session.timeout.ms": "4000",
            f"{target}.heartbeat.interval.ms": "1000",
            f"{target}.scheduled.rebalance.max.delay.ms": "0",
            "tasks.max": str(self.tasks_max),
        }
        if not self.emit_offsets:
            # MM2 does not start if it is told how to keep what it shall not write.
            lines = {key: line for key, line in lines.items() if "offset-syncs.topic" not in key}
            lines[f"{flow}.emit.offset-syncs.enabled"] = "false"
            lines[f"{flow}.emit.checkpoints.enabled"] = "false"
        if self.own_alias is not None:
            lines[f"{flow}.source.cluster.alias"] = self.own_alias
        if self.policy == "identity":
            lines["replication.policy.class"] = IDENTITY_POLICY
        if self.separator != ".":
            lines["replication.policy.separator"] = self.separator
        if self.exactly_once:
            lines[f"{target}.exactly.once.source.support"] = "enabled"
            lines[f"{source}.consumer.isolation.level"] = "read_committed"
        return lines | dict(self.extra)
