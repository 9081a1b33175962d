"""A Strimzi KafkaMirrorMaker2 resource, as written or as `kubectl get -o yaml` prints it.

What the operator makes of one (`KafkaMirrorMaker2Connectors`, `KafkaMirrorMaker2Cluster`): a connector's settings are
the two clusters', then its own `config`, then the mirror's patterns. Both forms are read: `connectCluster` with
`clusters` (v1beta2), and `target` with `mirrors[].source` (v1). Secrets are references there, and are not looked at.
Several resources may share one flow, as people do to split its topics: each is a worker of its own.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from migrate.errors import ConfigError
from migrate.mm2.connectors import Connector, Described, Role, connector_of
from migrate.mm2.flow import CONVERTERS, Mm2Home, Mm2Runtime
from migrate.mm2.yaml_file import yaml_documents

KIND = "KafkaMirrorMaker2"
OFFSETS_TOPIC = "mirrormaker2-cluster-offsets"
# The last that is there wins.
_PATTERNS = (
    ("topics", "topicsPattern"),
    ("topics.exclude", "topicsBlacklistPattern"),
    ("topics.exclude", "topicsExcludePattern"),
    ("groups", "groupsPattern"),
    ("groups.exclude", "groupsBlacklistPattern"),
    ("groups.exclude", "groupsExcludePattern"),
)
_SPECS = {Role.SOURCE: "sourceConnector", Role.CHECKPOINT: "checkpointConnector"}
Tree = Mapping[str, Any]


def read_strimzi(path: Path) -> Described:
    """Return MM2 as the resources in a file describe it: the connectors of all of them.

    Raises `ConfigError` if the file cannot be read, is no YAML, or holds no such resource.
    """
    documents = yaml_documents(path, "Name the file that you give to kubectl apply.")
    resources = [r for document in documents for r in _resources(document)]
    if not resources:
        raise ConfigError(f"{path} holds no resource of kind {KIND}.", "Name the file that you give to kubectl apply.")
    try:
        return Described(str(path), "--strimzi", [c for resource in resources for c in _connectors(resource)])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConfigError(
            f"A {KIND} in {path} is not laid out as Strimzi's operator reads it.",
            "Take it from the cluster: kubectl get kafkamirrormaker2 NAME -o yaml.",
        ) from None


def _resources(document: Any) -> Iterator[Tree]:
    if isinstance(document, dict):
        if document.get("kind") == KIND and isinstance(document.get("spec"), dict):
            yield document
        # As kubectl has it (List), and the API (KafkaMirrorMaker2List).
        for item in document.get("items") or () if document.get("kind") in ("List", f"{KIND}List") else ():
            yield from _resources(item)


def _connectors(resource: Tree) -> Iterator[Connector]:
    spec, metadata = resource["spec"], resource.get("metadata") or {}
    named = {str(c["alias"]): c for c in spec.get("clusters") or ()}
    target = spec.get("target") or named[str(spec["connectCluster"])]
    worker = target.get("config") or {}
    resource_name = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
    offsets_topic = str(target.get("offsetStorageTopic") or worker.get("offset.storage.topic") or OFFSETS_TOPIC)
    runtime = Mm2Runtime(
        Mm2Home.STRIMZI,
        version=str(spec.get("version") or ""),
        offsets_topics=(offsets_topic,),
        resources=(resource_name,) if resource_name else (),
        converters={key: str(worker.get(key) or "") for key in CONVERTERS},
    )
    for mirror in spec.get("mirrors") or ():
        source = mirror.get("source") or named[str(mirror["sourceCluster"])]
        yield from _of_mirror(mirror, source, target, runtime)


def _of_mirror(mirror: Tree, source: Tree, target: Tree, worker: Mm2Runtime) -> Iterator[Connector]:
    clusters = str(source["alias"]), str(target["alias"])
    for role, part in _SPECS.items():
        own = mirror.get(part)
        if own is None:
            continue
        settings = _cluster("source", source) | _cluster("target", target) | dict(own.get("config") or {})
        settings |= {key: mirror[name] for key, name in _PATTERNS if mirror.get(name) is not None}
        settings["connector.class"] = role  # which the operator lets nobody set
        name = f"{clusters[0]}->{clusters[1]}.{role}"
        if (connector := connector_of(name, settings, worker, clusters)) is not None:
            yield connector


def _cluster(side: str, cluster: Tree) -> dict[str, Any]:
    """Return what the operator makes of a cluster: its brokers, and which protocol its tls and authentication mean."""
    authentication = (cluster.get("authentication") or {}).get("type", "")
    # A `tls: {}` counts: certificates that everybody trusts need no list.
    tls = cluster.get("tls") is not None
    sasl = bool(authentication) and authentication != "tls"
    protocol = ("SASL_" if sasl else "") + ("SSL" if tls or authentication == "tls" else "PLAINTEXT")
    settings = {"alias": cluster["alias"], "bootstrap.servers": cluster["bootstrapServers"]}
    settings |= {"security.protocol": protocol} | dict(cluster.get("config") or {})
    return {f"{side}.cluster.{key}": value for key, value in settings.items()}
