"""MM2's connectors as a Connect worker or a Strimzi resource has them, and the flow that they make up. Pure.

Of a connector's settings only the few that are facts about the flow are ever looked at (`FACTS`): passwords, keys and
references to them stay where they are. Credentials come from client files.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations

from migrate.errors import ConfigError
from migrate.mm2.config_file import flow_from
from migrate.mm2.flow import BYTES, CONVERTERS, Cluster, Flow, Mm2Runtime, called, converter_class
from migrate.mm2.java_properties import BLANKS
from migrate.mm2.settings import FlowSettings, Overrides, isolation_level
from migrate.model import Side

# Whose settings a connector may have, for each side.
_CLIENTS = ("cluster", "admin", "consumer", "producer")
FACTS = frozenset(
    {f"{side}.cluster.{key}" for side in Side for key in ("alias", "bootstrap.servers")}
    | {f"{side}.{client}.security.protocol" for side in Side for client in _CLIENTS}
    | {
        "connector.class", "consumer.isolation.level", "emit.checkpoints.enabled", "emit.checkpoints.interval.seconds",
        "emit.offset-syncs.enabled", "enabled", "group.filter.class", "groups", "groups.blacklist", "groups.exclude",
        "offset-syncs.topic.location", "offsets.storage.topic", "replication.policy.class",
        "replication.policy.internal.topic.separator.enabled", "replication.policy.separator",
        "source.consumer.isolation.level", "sync.group.offsets.enabled", "sync.group.offsets.interval.seconds",
        "topic.filter.class", "topics", "topics.blacklist", "topics.exclude", "transforms", *CONVERTERS,
    }
)  # fmt: skip
_REFERENCE = re.compile(r"\$\{[^}]*\}")


class Role(StrEnum):
    """What a connector of MM2 does, by the name of its class; heartbeats prove nothing and are left aside."""

    SOURCE = "MirrorSourceConnector"
    CHECKPOINT = "MirrorCheckpointConnector"


@dataclass(frozen=True, slots=True)
class Connector:
    """One of MM2's connectors: its name, what it does, and those of its settings that are facts.

    `worker` is how the worker runs that it is in. `clusters` are the aliases of a Strimzi resource's own list, None
    where there is none: then the connector's settings name its flow.
    """

    name: str
    role: Role
    settings: Mapping[str, str] = field(repr=False)
    worker: Mm2Runtime
    clusters: tuple[str, str] | None = None

    @property
    def flow(self) -> tuple[str, str]:
        """What its source and its target are called on the command line."""
        if self.clusters is not None:
            return self.clusters
        return called(Side.SOURCE, self.alias(Side.SOURCE)), called(Side.TARGET, self.alias(Side.TARGET))

    def brokers(self, side: Side) -> frozenset[str]:
        """The brokers that its settings list, or the references that stand for them."""
        listed = self.settings.get(f"{side}.cluster.bootstrap.servers", "")
        return frozenset(part.strip(BLANKS) for part in listed.split(",")) - {""}

    def alias(self, side: Side) -> str:
        """What its own settings call a cluster; MM2's default for the target is "target", the source's has none."""
        default = "target" if side is Side.TARGET else ""
        return self.settings.get(f"{side}.cluster.alias", default).strip(BLANKS)


def connector_of(
    name: str, settings: Mapping[str, object], worker: Mm2Runtime, clusters: tuple[str, str] | None = None
) -> Connector | None:
    """Return the connector if it is one of MM2's that copies or checkpoints; None for any other.

    Values that are no text are taken as YAML and JSON mean them (true, 5); all that is no fact is dropped here.
    """
    # Connect also knows classes by their bare name, and without "Connector" at the end (`PluginUtils`).
    bare = str(settings.get("connector.class", "")).strip(BLANKS).rpartition(".")[2]
    for role in Role:
        if bare in (role, role.removesuffix("Connector")):
            facts = {k: _text(v) for k, v in settings.items() if k in FACTS and v is not None}
            return Connector(name, role, facts, worker, clusters)
    return None


@dataclass(frozen=True, slots=True)
class Described:
    """MM2 as a worker or a file of resources describes it. `origin` names that for errors.

    `option` is the command line's option that named it.
    """

    origin: str
    option: str
    connectors: Sequence[Connector]

    def flow(
        self,
        source: tuple[str, Mapping[str, str] | None],
        target: tuple[str, Mapping[str, str] | None],
        overrides: Overrides,
    ) -> Flow:
        """Return the flow between two aliases, each with its client properties, None where no file was given.

        Raises `ConfigError` if no connector copies this flow, several do and differ, a fact is a reference that only
        the worker resolves, or a cluster needs credentials.
        """
        aliases = source[0], target[0]
        copying = self._named(Role.SOURCE, aliases)
        checkpointing = self._checkpointing(aliases, copying)
        if not copying:
            flows = sorted({" -> ".join(c.flow) for c in self.connectors if c.role is Role.SOURCE})
            raise ConfigError(
                f"{self.origin} has no MirrorSourceConnector from {aliases[0]} to {aliases[1]}; it has "
                f"{', '.join(flows) or 'none at all'}.",
                "Name a flow of it with --source and --target, aliases spelt as there, capitals included.",
            )
        self._refuse_other_clusters(copying + checkpointing)
        settings, groups = (list(map(self._settings, connectors)) for connectors in (copying, checkpointing))
        self._refuse_other_names(copying[0].flow, settings, groups, overrides)
        # `MirrorConnectorConfig.sourceConsumerConfig`
        names = ("source.consumer.isolation.level", "consumer.isolation.level")
        level = _only({isolation_level(map(s.value, names)) for s in settings})
        from_cluster = self._cluster(Side.SOURCE, *source, copying[0])
        to_cluster = self._cluster(Side.TARGET, *target, copying[0])
        runtime = _runtime(copying, checkpointing)
        return flow_from(settings, groups, level, from_cluster, to_cluster, runtime, overrides)

    def _named(self, role: Role, flow: tuple[str, str]) -> list[Connector]:
        return sorted((c for c in self.connectors if c.role is role and c.flow == flow), key=lambda c: c.name)

    def _checkpointing(self, flow: tuple[str, str], copying: Sequence[Connector]) -> list[Connector]:
        """Return those that checkpoint the flow, also under another alias of the target, such as MM2's default.

        Neither the checkpoints' topic nor a group's offsets are named after the target: between the same brokers they
        are the same ones. One that finds no offset syncs under its alias makes no checkpoints, and counts all the same.
        """

        def is_between_the_same(one: Connector) -> bool:
            return all(any(one.brokers(side) & other.brokers(side) for other in copying) for side in Side)

        from_source = [c for c in self.connectors if c.role is Role.CHECKPOINT and c.flow[0] == flow[0]]
        return sorted((c for c in from_source if c.flow == flow or is_between_the_same(c)), key=lambda c: c.name)

    def _refuse_other_clusters(self, connectors: list[Connector]) -> None:
        """Raise `ConfigError` where aliases are the same and clusters are not: each Strimzi resource has its own."""
        for side, alias in zip(Side, connectors[0].flow, strict=True):
            lists = {c.settings.get(f"{side}.cluster.bootstrap.servers", "") for c in connectors} - {""}
            known = [{part.strip(BLANKS) for part in text.split(",")} for text in lists if not _REFERENCE.search(text)]
            if any(one.isdisjoint(other) for one, other in combinations(known, 2)):
                raise ConfigError(
                    f"{self.origin}: the connectors of {' -> '.join(connectors[0].flow)} do not name the same brokers "
                    f"of {alias}.",
                    f"If these are several clusters, describe one flow by client files and without {self.option}; "
                    "if it is one, name at least one broker in all of them.",
                )

    def _refuse_other_names(
        self, flow: tuple[str, str], settings: list[FlowSettings], groups: list[FlowSettings], overrides: Overrides
    ) -> None:
        """Raise `ConfigError` where the connectors of a flow do not agree on what MM2 calls things, and where."""
        for what, answers in (
            # The target's alias names none of a checkpoint connector's topics.
            (
                "names its topics",
                {s.policy(overrides) for s in settings}
                | {replace(s.policy(overrides), target_alias=settings[0].target) for s in groups},
            ),
            ("places its offset syncs", {s.syncs_side(overrides) for s in settings}),
        ):
            if len(answers) > 1:
                raise ConfigError(
                    f"{self.origin}: the connectors of {' -> '.join(flow)} do not agree on how MM2 {what}.",
                    "Make source.cluster.alias, target.cluster.alias, replication.policy.* and "
                    "offset-syncs.topic.location the same in all of them. Or say what holds with --replication-policy, "
                    f"--separator and --offset-syncs-location; where aliases differ, by client files and without "
                    f"{self.option}.",
                )

    def _settings(self, connector: Connector) -> FlowSettings:
        origin = f"connector {connector.name} of {self.origin}"

        def value(key: str) -> str | None:
            text = connector.settings.get(key)
            if text is not None and _REFERENCE.search(text):
                raise ConfigError(
                    f"{key} in {origin} is a reference to a configuration provider, which only the worker resolves.",
                    f"Leave {self.option} out, and say by options and client files what holds: --replication-policy, "
                    "--separator, --offset-syncs-location.",
                )
            return text

        for side in Side:
            value(f"{side}.cluster.alias")  # a reference would pass for the alias itself
        return FlowSettings(
            origin, connector.alias(Side.SOURCE), connector.alias(Side.TARGET), value, connector.worker.version
        )

    def _cluster(self, side: Side, alias: str, client: Mapping[str, str] | None, connector: Connector) -> Cluster:
        """Return a cluster by its client file, else by its brokers, if these need no credentials."""
        brokers = connector.settings.get(f"{side}.cluster.bootstrap.servers", "")
        properties = {"bootstrap.servers": brokers} if brokers and not _REFERENCE.search(brokers) else {}
        if client is not None:
            return Cluster(side, alias, properties | dict(client))
        protocols = (connector.settings.get(f"{side}.{c}.security.protocol", "PLAINTEXT") for c in _CLIENTS)
        protocol = next((p for p in (p.strip(BLANKS).upper() for p in protocols) if p != "PLAINTEXT"), "PLAINTEXT")
        todo = f"Give --{side}-config FILE, a Java client properties file for {alias}."
        if protocol != "PLAINTEXT":
            shown = protocol if protocol in ("SSL", "SASL_SSL", "SASL_PLAINTEXT") else "no plain connections"
            raise ConfigError(
                f"{alias} speaks {shown}, by {self.origin}, and credentials are never taken from there.", todo
            )
        if not properties:
            raise ConfigError(f"{self.origin} does not say how to reach {alias} in words that we can read.", todo)
        return Cluster(side, alias, properties)


def _runtime(copying: Sequence[Connector], checkpointing: Sequence[Connector]) -> Mm2Runtime:
    """Add up how the workers run; what they do not agree on, and one answer has to be given to, is unknown."""
    workers = [c.worker for c in (*copying, *checkpointing)]
    # A connector's own offsets topic wins over the worker's (KIP-618).
    offsets_topics = {
        c.settings.get("offsets.storage.topic") or next(iter(c.worker.offsets_topics), "") for c in copying
    }
    said = [dict(c.worker.converters) | {k: c.settings[k] for k in CONVERTERS if k in c.settings} for c in copying]
    converters = [(key, converter_class(name)) for settings in said for key, name in settings.items()]
    return Mm2Runtime(
        workers[0].home,
        _only({w.version for w in workers}) or "",
        # Where one of them is not known, the worker is asked for the positions of all.
        offsets_topics=() if "" in offsets_topics else tuple(sorted(offsets_topics)),
        source_connectors=tuple(dict.fromkeys(c.name for c in copying)),
        checkpoint_connectors=tuple(dict.fromkeys(c.name for c in checkpointing)),
        url=workers[0].url,
        resources=tuple(sorted({resource for w in workers for resource in w.resources})),
        # One that changes records says more than one that does not.
        converters=dict(sorted(converters, key=lambda one: one[1] != BYTES)),
        transforms=", ".join(sorted({c.settings.get("transforms", "").strip(BLANKS) for c in copying} - {""})),
    )


def _only(values: set[str]) -> str | None:
    return next(iter(values)) if len(values) == 1 else None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
