"""A wave from its files: the plan, its journal, and the journal of the undo plan that spent it, if there is one."""

from pathlib import Path

from migrate.history import JournalState
from migrate.journal import Journal, journal_path, journals_under_any_name
from migrate.plan import Plan
from migrate.planfile import read_plan
from migrate.waves import Wave

FINGERPRINT_DIGITS = 64


def read_wave(path: Path) -> Wave:
    """Return the wave of a plan file; raises as `read_plan` and `Journal.read` do."""
    return wave_of(path, read_plan(path))


def wave_of(path: Path, plan: Plan) -> Wave:
    """Return the wave of a plan that was read from `path`; raises as `Journal.read` does."""
    journal = _journal(journal_path(path, plan.fingerprint), plan.fingerprint)
    undone_by = journal.spent_by
    # "rollback" is no plan: then the plan's own journal tells how far that came.
    named = len(undone_by) == FINGERPRINT_DIGITS
    others = journals_under_any_name(path.absolute().parent, undone_by) if named else ()
    undo = _journal(others[0], undone_by) if others else JournalState()
    return Wave(str(path), plan, journal, undo)


def _journal(path: Path, fingerprint: str) -> JournalState:
    return Journal(path, fingerprint, lambda: 0).read()
