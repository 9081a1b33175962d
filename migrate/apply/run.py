"""What one run of `apply` or `rollback` works with: the clusters, and its choices."""

from collections.abc import Mapping
from dataclasses import dataclass

from migrate.apply.history import APPLY
from migrate.apply.journal import Journal
from migrate.ports import ClusterAdmin
from migrate.survey.group_facts import GroupFactsReader

MAX_CONCURRENCY = 100


@dataclass(frozen=True)
class ApplyClusters:
    """The clusters of a run; `source` is None where the plan was made without it, or is not compared with it.

    `target_groups` tells when offsets expire, None where that is not to be asked.
    """

    target: ClusterAdmin
    source: ClusterAdmin | None = None
    target_groups: GroupFactsReader | None = None


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """The choices of one run. `details` go into the journal's `begin`, such as what was approved and who signed.

    `command` is "apply" or "rollback": an undo plan goes into the journal of the plan that it undoes, unless it is
    applied as a plan of its own; then `spends` is the journal of the plan that it undoes.
    `synced` are the groups whose offsets MM2 writes as well, by its configuration as it is now; None where none was
    given. `source_unreachable` applies the plan although the source does not answer.
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
