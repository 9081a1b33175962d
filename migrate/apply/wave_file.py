"""A wave from its files: the plan, its journal, and the journals of the undo plans that spent it, if there are any."""

from pathlib import Path

from migrate.apply.history import ROLLBACK, GroupTrace, JournalState
from migrate.apply.journal import Journal, journal_to_read
from migrate.apply.waves import Wave
from migrate.plan.companions import journals_under_any_name, real_path
from migrate.plan.file import read_plan
from migrate.plan.plan import Plan


def read_wave(path: Path) -> Wave:
    """Return the wave of a plan file; raises as `read_plan` and `Journal.read` do."""
    return wave_of(path, read_plan(path))


def wave_of(path: Path, plan: Plan) -> Wave:
    """Return the wave of a plan that was read from `path`; raises as `Journal.read` does."""
    journal = _journal(journal_to_read(path, plan.fingerprint), plan.fingerprint)
    undone: dict[str, GroupTrace] = {}
    # A rollback is no plan: the plan's own journal tells how far that came.
    for fingerprint in dict.fromkeys(by for by in journal.spends if by != ROLLBACK):
        for other in journals_under_any_name(real_path(path).parent, fingerprint):
            undone |= _journal(other, fingerprint).applied
    return Wave(str(path), plan, journal, JournalState(applied=undone))


def _journal(path: Path, fingerprint: str) -> JournalState:
    return Journal(path, fingerprint, lambda: 0).read()
