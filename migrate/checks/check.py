"""What a check is: one pure function from a survey and its rows to results, with its name, scope and waiver on it.

    @check("pending-transactions", Scope.GROUP, can_be_accepted=True)
    def pending_transactions(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
        for group in sorted(survey.unstable):
            yield pending_transactions.blocks(group, "what is expected", "what was seen", "what to do")

A check gives one result for every subject that does not pass, and a single `pass` that counts the rest, so
that 10,000 fine groups stay one line. A fact that could not be read is `not-visible`, which counts as its
check's block or warn, never as a pass. `migrate.checks.checklist` lists all checks and runs them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from migrate.model import CheckResult, Failure, GroupState, Level, Scope
from migrate.row_table import PlanRows
from migrate.survey.survey import Case, Survey

Judge = Callable[[Survey, PlanRows], Iterable[CheckResult]]


@dataclass(frozen=True, slots=True)
class Check:
    """A named check: the function that judges, and what its results share.

    `scope` is what its subjects are. `can_be_accepted` is True where a waiver turns its blocks into warnings, False
    where none ever does, None where it blocks nothing or another option decides. `needs_records` says that only
    comparing records around every commit answers it: `status` leaves it to `plan`. `case` is what a survey has to be of
    for it to be asked at all: one that is about MirrorMaker 2 itself says so where another replicator copies.
    """

    name: str
    scope: Scope
    judge: Judge
    can_be_accepted: bool | None
    needs_records: bool
    case: Case

    def __str__(self) -> str:
        return self.name

    @property
    def on_cluster(self) -> "Check":
        """The same check where its subject is a cluster as a whole."""
        return replace(self, scope=Scope.CLUSTER)

    def result(self, level: Level, subject: str, expected: str, seen: str, todo: str = "") -> CheckResult:
        """Return a result whose level is also what decides."""
        return CheckResult(self.name, level, self.scope, subject, expected, seen, todo, False, level)

    def passes(self, subject: str, expected: str, seen: str) -> CheckResult:
        """Return a pass; one counts all subjects that are fine."""
        return self.result(Level.PASS, subject, expected, seen)

    def warns(self, subject: str, expected: str, seen: str, todo: str) -> CheckResult:
        """Return a warning."""
        return self.result(Level.WARN, subject, expected, seen, todo)

    def blocks(self, subject: str, expected: str, seen: str, todo: str) -> CheckResult:
        """Return a block."""
        return self.result(Level.BLOCK, subject, expected, seen, todo)

    def unseen(self, counts_as: Level, subject: str, expected: str, seen: str, todo: str) -> CheckResult:
        """Return a `not-visible` result that counts as `counts_as`: block or warn.

        `PASS` is for a check that can only ever refute: it found nothing, and that is no proof. Such a result is listed
        beside those that passed, never among them.
        """
        return CheckResult(self.name, Level.NOT_VISIBLE, self.scope, subject, expected, seen, todo, False, counts_as)


def check(
    name: str,
    scope: Scope,
    *,
    can_be_accepted: bool | None = None,
    needs_records: bool = False,
    case: Case = Case.ANY,
) -> Callable[[Judge], Check]:
    """Make a check of the function below; what each argument means, `Check` says."""
    return lambda judge: Check(name, scope, judge, can_be_accepted, needs_records, case)


def is_without_members(state: GroupState | Failure | None) -> bool:
    """True if nobody is in the group, or two listings did not show it; where that is not known it may be alive."""
    return isinstance(state, GroupState) and state.is_stopped


def groups_of(rows: PlanRows) -> list[str]:
    """Return the groups of the rows, sorted."""
    return sorted(rows.groups())
