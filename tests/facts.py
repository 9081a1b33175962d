"""What a flow says, whoever told it: for comparing mm2.properties, a Connect worker and a Strimzi resource."""

from dataclasses import replace
from typing import Any

from migrate.cli.options import ReachedClusters
from migrate.mm2.flow import Flow, Mm2Home
from migrate.mm2.naming import ReplicationPolicy


def options(**given: Any) -> ReachedClusters:
    """Cluster options of the flow A -> B, with what is given."""
    return ReachedClusters(**({"source": "A", "target": "B"} | given))


def facts(flow: Flow) -> Flow:
    """All that a flow says but where it was told, and how MM2 runs there."""
    runtime = replace(
        flow.runtime, home=Mm2Home.UNKNOWN, version="", url="", resources=(), offsets_topics=(), source_connectors=(),
        checkpoint_connectors=(), converters={},
    )  # fmt: skip
    ends = {"source": replace(flow.source, origin=""), "target": replace(flow.target, origin="")}
    policy = flow.policy
    if isinstance(policy, ReplicationPolicy):  # which says as well whether MM2 is an old one
        policy = replace(policy, before_kafka_4=None)
    # One file has both ways, a worker that writes to one cluster has one.
    return replace(flow, policy=policy, runtime=runtime, sync_back=(None, None), **ends)  # type: ignore[arg-type]
