"""A flow, and what a cluster grants on it."""

from migrate.checks.rights import ResourceKind, Seen
from migrate.mm2.flow import Cluster, Flow
from migrate.mm2.naming import PolicyKind, ReplicationPolicy
from migrate.model import Failure, Side

POLICY = ReplicationPolicy(PolicyKind.DEFAULT, "A", "B")
FLOW = Flow(
    Cluster(Side.SOURCE, "A", {}), Cluster(Side.TARGET, "B", {}), POLICY, Side.SOURCE,
    "A.checkpoints.internal", "mm2-offset-syncs.B.internal",
)  # fmt: skip
ALL = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "READ", "DELETE"})
REFUSED = Failure("TOPIC_AUTHORIZATION_FAILED", "no")


def seen(cluster=ALL, groups=None, topics=None, hidden=None):
    return Seen(cluster, groups or {"g": ALL}, topics or {}, hidden)


def granted(resources, operations=ALL):
    groups, topics = (
        dict.fromkeys([name for kind, found in resources.items() if kind.kind is wanted for name in found], operations)
        for wanted in (ResourceKind.GROUP, ResourceKind.TOPIC)
    )
    return seen(operations, groups, topics)
