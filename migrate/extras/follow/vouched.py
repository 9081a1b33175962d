"""Which groups a later mandate follows: a rollback of an earlier one must not take them from under it."""

from pathlib import Path

from migrate.apply.history import JournalState
from migrate.apply.later_plans import other_plans
from migrate.plan.plan import Plan


def followed_since(mandate: Plan, folder: Path, state: JournalState) -> dict[str, str]:
    """Return the groups of the target that a mandate first followed later has written, with its short fingerprint.

    `state` is the earlier mandate's journal. First runs are compared, so that of two mandates one is the later. Raises
    as `other_plans` does.
    """
    began = state.runs[0].began if state.runs else ""
    return {
        plan.rows.renamed().get(group, group): plan.short_fingerprint
        for plan, later in other_plans(mandate.fingerprint, mandate.header.target_cluster_id, folder)
        if not plan.header.is_of_rows and later.runs and later.runs[0].began > began
        for group, trace in later.applied.items()
        if trace.written()
    }
