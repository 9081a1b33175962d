"""What later plans vouch for: groups that they set or kept, and read back, since a mandate was first followed.

A rollback of the mandate must not take from under such a plan what it found right.
"""

from collections.abc import Iterator
from pathlib import Path

from migrate.apply.history import ROLLBACK, JournalState
from migrate.apply.journal import read_journal
from migrate.errors import MigrateError
from migrate.plan.companions import journal_path, journals_in, plan_of_journal
from migrate.plan.file import read_plan
from migrate.plan.plan import UNDO, Plan


def vouched_groups(mandate: Plan, path: Path, state: JournalState) -> dict[str, str]:
    """Return the groups of the target that plans beside a mandate have since set or kept, with their fingerprints.

    Only what was carried out after the mandate was first followed counts, and was not rolled back. `state` is the
    mandate's journal. Raises `MigrateError` where a journal, or the plan that it belongs to, cannot be read: what it
    vouches for is not known then.
    """
    began = state.runs[0].began if state.runs else ""
    vouched: dict[str, str] = {}
    for plan, later in _others(mandate, path):
        is_later = any(run.command != ROLLBACK and run.began >= began for run in later.runs)
        if is_later and not later.is_spent and plan.header.target_cluster_id == mandate.header.target_cluster_id:
            renamed = plan.rows.renamed()
            # Another mandate's writes are read back by its passes, and not noted one by one.
            kept = (
                g for g, t in later.applied.items()
                if g not in later.rolled_back and (t.read_back or (not plan.header.is_of_rows and t.written()))
            )  # fmt: skip
            vouched |= {renamed.get(group, group): plan.short_fingerprint for group in kept}
    return vouched


def _others(mandate: Plan, path: Path) -> Iterator[tuple[Plan, JournalState]]:
    own = journal_path(path, mandate.fingerprint)
    for journal in journals_in(own.parent):
        if journal == own:
            continue
        plan = read_plan(_plan_beside(journal))
        if plan.header.kind != UNDO:
            yield plan, read_journal(journal, plan.fingerprint)


def _plan_beside(journal: Path) -> Path:
    """Return the plan file of a journal; its name holds the digits of the fingerprint between both names."""
    plan = plan_of_journal(journal, journal.name.split(".")[-3])
    if not plan.exists():
        raise MigrateError(
            f"The journal {journal.name} lies beside the mandate, and its plan {plan.name} does not: whether it "
            "vouches for offsets that would be taken back is not known.",
            "Put the plan back beside its journal, or move the journal elsewhere if it is of another cutover.",
        )
    return plan
