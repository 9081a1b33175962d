"""A flow from MM2's own mm2.properties, or from two client property files, and what options change in it.

The rules are those of Kafka's `MirrorMakerConfig` and `MirrorConnectorConfig`: a setting of the flow
(`A->B.topics`) wins over the same at the top (`topics`); one of a cluster (`A.security.protocol`, `A.alias`) over the
same at the top, and one of its admin or consumer client over both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate.errors import ConfigError
from migrate.mm2.config_providers import Providers, provider_settings
from migrate.mm2.flow import CONVERTERS, Cluster, Flow, FlowFilter, Mm2Home, Mm2Runtime, called, converter_class
from migrate.mm2.java_properties import BLANKS, read_properties
from migrate.mm2.naming import ReplicationPolicy
from migrate.mm2.settings import NO_OVERRIDES, FlowSettings, isolation_level, together
from migrate.mm2.settings import Overrides as Overrides
from migrate.model import Side

_CONNECTION = ("security.", "sasl.", "ssl.")
_BROKERS = "bootstrap.servers"


def read_flow(path: Path, source_alias: str, target_alias: str, overrides: Overrides = NO_OVERRIDES) -> Flow:
    """Return the flow between two aliases of an mm2.properties file, with what the options change in it.

    Raises `ConfigError` if the file cannot be read, lacks an alias or the flow, or has a setting that we cannot follow.
    """
    settings = _Settings(path, read_properties(path), source_alias, target_alias)
    settings.require_flow()
    of_flow = [FlowSettings(str(path), *settings.connectors_aliases(), settings.flow)]
    flow = flow_from(
        of_flow,
        of_flow,
        settings.isolation_level(),
        Cluster(Side.SOURCE, source_alias, settings.connection(source_alias, "source")),
        Cluster(Side.TARGET, target_alias, settings.connection(target_alias, "target")),
        settings.runtime(),
        overrides,
    )
    return replace(flow, sync_back=settings.sync_back())


def flow_from(
    copying: Sequence[FlowSettings],
    checkpointing: Sequence[FlowSettings],
    isolation_level: str | None,
    source: Cluster,
    target: Cluster,
    runtime: Mm2Runtime,
    overrides: Overrides,
) -> Flow:
    """Return the flow of connectors, which agree on names, with what the options change in it.

    People split the topics of one flow over several. Without a checkpoint connector here, one in another worker may
    do its work.
    """
    syncing = [s for s in checkpointing if s.syncs_groups()]
    older = {s.before_kafka_4 for s in copying}
    policy = replace(copying[0].policy(overrides), before_kafka_4=older.pop() if len(older) == 1 else None)
    return replace(
        _named(source, target, policy, copying[0].syncs_side(overrides), runtime, overrides),
        topic_filter=together([s.topic_filter() for s in copying]),
        group_filter=together([s.group_filter() for s in checkpointing]),
        group_sync=bool(syncing) if checkpointing else None,
        sync_filter=together([s.group_filter() for s in syncing]),
        mm2_isolation_level=isolation_level,
        emits_offset_syncs=any(s.is_on("emit.offset-syncs.enabled", True) for s in copying),  # KIP-1031
        emits_checkpoints=any(s.emits_checkpoints() for s in checkpointing) if checkpointing else None,
    )


def _named(
    source: Cluster, target: Cluster, policy: ReplicationPolicy, side: Side, runtime: Mm2Runtime, overrides: Overrides
) -> Flow:
    """Return a flow of which only names are known: those that options say, else those that follow from its policy."""
    named = overrides.connect_offsets_topic
    return Flow(
        source,
        target,
        policy,
        side,
        overrides.checkpoints_topic or policy.checkpoints_topic(),
        overrides.offset_syncs_topic or policy.offset_syncs_topic(side),
        named=frozenset(filter(None, (overrides.checkpoints_topic, overrides.offset_syncs_topic))),
        runtime=replace(runtime, offsets_topics=(named,) if named else runtime.offsets_topics),
    )


def client_flow(
    source: Mapping[str, str],
    target: Mapping[str, str],
    source_alias: str,
    target_alias: str,
    overrides: Overrides = NO_OVERRIDES,
) -> Flow:
    """Return the flow between the clusters of two client property files; names are MM2's defaults or options."""
    defaults = FlowSettings("", source_alias, target_alias, lambda key: None)
    from_cluster = Cluster(Side.SOURCE, called(Side.SOURCE, source_alias), dict(source))
    to_cluster = Cluster(Side.TARGET, called(Side.TARGET, target_alias), dict(target))
    policy, side = defaults.policy(overrides), defaults.syncs_side(overrides)
    return _named(from_cluster, to_cluster, policy, side, Mm2Runtime(), overrides)


def with_clients(flow: Flow, source: Mapping[str, str] | None, target: Mapping[str, str] | None) -> Flow:
    """Return the flow with the connections that client property files give, where there is one.

    They replace all settings of a cluster, except for the brokers where a file names none: two half logins are none.
    """
    return replace(flow, source=_with_client(flow.source, source), target=_with_client(flow.target, target))


def _with_client(cluster: Cluster, properties: Mapping[str, str] | None) -> Cluster:
    if properties is None:
        return cluster
    # The file's own providers are not asked for what is in another file.
    bootstrap = "" if _BROKERS in properties else Providers(cluster.properties, cluster.origin).value(_BROKERS)
    brokers = {_BROKERS: bootstrap} if bootstrap else {}
    return replace(cluster, properties=brokers | dict(properties))


@dataclass(frozen=True, slots=True)
class _Settings:
    """An mm2.properties file, read for one flow."""

    path: Path
    values: Mapping[str, str] = field(repr=False)
    source: str
    target: str

    def require_flow(self) -> None:
        clusters = [name for part in self.values.get("clusters", "").split(",") if (name := part.strip(BLANKS))]
        if not clusters:
            raise ConfigError(
                f"{self.path} has no setting clusters, so it is not the file of a dedicated MM2.",
                "Name the mm2.properties that MM2 is started with; for MM2 on Kafka Connect, give "
                "--source-config and --target-config.",
            )
        for option, alias in (("--source", self.source), ("--target", self.target)):
            if alias not in clusters:
                raise ConfigError(
                    f"{option} {alias}: {self.path} has no cluster of that alias; its clusters are "
                    f"{', '.join(clusters)}.",
                    "Aliases are spelt as in the file, capitals included.",
                )
        if not self._is_enabled(self.source, self.target):
            pairs = ((a, b) for a in clusters for b in clusters if a != b)
            enabled = ", ".join(f"{a}->{b}" for a, b in pairs if self._is_enabled(a, b))
            state = "is not true" if f"{self.source}->{self.target}.enabled" in self.values else "is not set"
            raise ConfigError(
                f"The flow {self.source}->{self.target} is not enabled in {self.path}: "
                f"{self.source}->{self.target}.enabled {state}, and MM2's default is false. Enabled there: "
                f"{enabled or 'no flow'}.",
                "Name an enabled flow with --source and --target, or name the file that MM2 ran with.",
            )

    def connection(self, alias: str, role: str) -> dict[str, str]:
        """The connection settings of one cluster, as MM2's admin client (else its consumer) there has them.

        `role` is "source" or "target": the flow's own `A->B.source.cluster.*` and `A->B.source.admin.*` win over all
        (`MirrorMakerConfig.connectorBaseConfig`, `MirrorConnectorConfig.sourceAdminConfig`).
        """
        flow = f"{self.source}->{self.target}"
        settings = self._under("")
        settings |= self._under(f"{alias}.")
        settings |= self._under(f"{flow}.{role}.cluster.")
        settings |= self._under(f"{alias}.admin.") or self._under(f"{alias}.consumer.")
        settings |= self._under(f"{flow}.{role}.admin.") or self._under(f"{flow}.{role}.consumer.")
        if not settings.get("bootstrap.servers", "").strip(BLANKS):
            raise ConfigError(
                f"{self.path} has no {alias}.bootstrap.servers.",
                f"Name the file that MM2 is started with, or add {alias}.bootstrap.servers = HOST:PORT.",
            )
        return provider_settings(self.values) | settings

    def runtime(self) -> Mm2Runtime:
        """How a dedicated MM2 runs this flow: its worker's settings are at the top or with the target.

        `MirrorMakerConfig.workerConfig`. The source connector's own offsets topic wins (KIP-618); for its default see
        `Flow.connect_offsets_topic`.
        """
        own = self._resolved(f"{self.source}->{self.target}.offsets.storage.topic")
        offsets_topic = own or self._of_worker("offset.storage.topic")
        return Mm2Runtime(
            Mm2Home.DEDICATED,
            offsets_topics=(offsets_topic,) if offsets_topic else (),
            source_connectors=("MirrorSourceConnector",),
            checkpoint_connectors=("MirrorCheckpointConnector",),
            converters={key: converter_class(self.flow(key) or self._of_worker(key)) for key in CONVERTERS},
            transforms=(self.flow("transforms") or "").strip(BLANKS),
        )

    def connectors_aliases(self) -> tuple[str, str]:
        """What MM2's connectors call source and target (`MirrorMakerConfig.connectorBaseConfig`)."""
        return self._alias(Side.SOURCE, self.source), self._alias(Side.TARGET, self.target)

    def _alias(self, side: Side, of_clusters: str) -> str:
        key = f"{side}.cluster.alias"
        said = map(self._resolved, (f"{self.source}->{self.target}.{key}", f"{of_clusters}.alias", key))
        return next((alias.strip(BLANKS) for alias in said if alias is not None), of_clusters)

    def isolation_level(self) -> str:
        flow, key = f"{self.source}->{self.target}", "consumer.isolation.level"
        return isolation_level(map(self._resolved, (f"{flow}.source.{key}", f"{self.source}.{key}", f"{flow}.{key}")))

    def flow(self, key: str) -> str | None:
        """A setting of the flow, else the one at the top; None if neither is there."""
        own = self._resolved(f"{self.source}->{self.target}.{key}")
        return self._resolved(key) if own is None else own

    def sync_back(self) -> tuple[bool, FlowFilter | None]:
        """Whether MM2 sets offsets of groups on the source as well, and of which; not by a flow that is not enabled."""
        if not self._is_enabled(self.target, self.source):
            return False, None
        back = replace(self, source=self.target, target=self.source)
        settings = FlowSettings(str(self.path), *back.connectors_aliases(), back.flow)
        return settings.syncs_groups(), together([settings.group_filter()])

    def _is_enabled(self, source: str, target: str) -> bool:
        value = self.values.get(f"{source}->{target}.enabled", self.values.get("enabled", "false"))
        return value.strip(BLANKS).lower() == "true"

    def _of_worker(self, key: str) -> str:
        """A setting of the worker that writes to the target; the one at the top wins there."""
        return (self._resolved(key) or self._resolved(f"{self.target}.{key}") or "").strip(BLANKS)

    def _resolved(self, key: str) -> str | None:
        return Providers(self.values, str(self.path)).value(key) if key in self.values else None

    def _under(self, prefix: str) -> dict[str, str]:
        names = {key.removeprefix(prefix): value for key, value in self.values.items() if key.startswith(prefix)}
        return {k: v for k, v in names.items() if k == "bootstrap.servers" or k.startswith(_CONNECTION)}
