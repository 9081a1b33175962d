"""What one run of `apply` or `rollback` works with: the clusters, and its choices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from migrate.apply.drift import is_other_cluster
from migrate.apply.history import APPLY
from migrate.apply.journal import Journal
from migrate.errors import Refused
from migrate.survey.cluster import ClusterAdmin

MAX_CONCURRENCY = 100


@dataclass(frozen=True)
class ApplyClusters:
    """The clusters of a run; `source` is None where the plan was made without it, or is not compared with it.

    `watches_expiry` has the target asked when offsets would expire.
    """

    target: ClusterAdmin
    source: ClusterAdmin | None = None
    watches_expiry: bool = False


def refuse_other_cluster(admin: ClusterAdmin, planned_id: str) -> None:
    """Raise `Refused` if this is not the cluster of the plan; a plan made without it ("") cannot tell."""
    cluster_id = admin.facts().cluster_id
    if is_other_cluster(planned_id, cluster_id):
        raise Refused(
            f"The plan is for {admin.side} cluster {planned_id}, and {admin.alias} is {cluster_id}.",
            "Name the clusters that the plan was made for.",
        )


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """The choices of one run. `details` go into the journal's `begin`, such as what was approved and who signed.

    `command` is "apply" or "rollback": an undo plan goes into the journal of the plan that it undoes, unless it is
    applied as a plan of its own; then `spends` is the journal of the plan that it undoes.
    `synced` are the groups whose offsets MM2 writes as well, by its configuration as it is now; None where none was
    given. `source_unreachable` applies the plan although the source does not answer. `begun` is called once the journal
    has begun and nothing is written yet; what it raises ends the run there.
    """

    execute: bool = False
    allow_partial: bool = False
    concurrency: int = MAX_CONCURRENCY
    group_timeout_seconds: float = 120.0
    details: Mapping[str, object] | None = None
    synced: frozenset[str] | None = frozenset()
    source_unreachable: bool = False
    command: str = APPLY
    spends: Journal | None = None
    begun: Callable[[], None] = lambda: None
