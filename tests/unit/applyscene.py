"""A plan, clusters that fit it, and apply and rollback on them: what the tests of writing share."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import ApplyResult, apply_plan
from migrate.apply.history import ROLLBACK
from migrate.apply.journal import Journal
from migrate.apply.outcome import RowStatus
from migrate.apply.undo import undo_plan
from migrate.model import CheckResult, Decision, Level, Row, Scope
from migrate.plan.companions import journal_path
from migrate.plan.plan import Plan
from migrate.show.apply import apply_lines
from migrate.show.next_steps import Typed
from tests.builders import make_check
from tests.fakes import Crash, FakeClock, FakeCluster, FakeGroupFacts, NoProgress
from tests.unit.plans import clusters, plan, row


@dataclass
class Scene:
    """A plan, the clusters that fit it, and a folder for its journal."""

    plan: Plan
    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    groups: FakeGroupFacts | None = None

    def __post_init__(self) -> None:
        self.target, self.source = clusters(self.plan)
        self.journal = Journal(
            journal_path(self.folder / "cutover.plan", self.plan.fingerprint), self.plan.fingerprint,
            self.clock.now_ms,
        )  # fmt: skip

    def apply(self, source: FakeCluster | None = None, **options: Any) -> ApplyResult:
        options = {"execute": True, **options}
        self.target.told = self.groups
        return apply_plan(
            self.plan, ApplyClusters(self.target, source or self.source, self.groups is not None), self.journal,
            self.clock, NoProgress(), RunOptions(**options),
        )  # fmt: skip

    def undo(self, moved: str = "refuse") -> Plan:
        return undo_plan(self.plan, self.journal.read(), self.clock.now_ms(), "0", moved)

    def rollback(self, moved: str = "refuse", **options: Any) -> ApplyResult:
        options = {"execute": True, **options}
        return apply_plan(
            self.undo(moved), ApplyClusters(self.target), self.journal, self.clock, NoProgress(),
            RunOptions(command=ROLLBACK, **options),
        )  # fmt: skip


def three_groups(folder: Path) -> Scene:
    return Scene(
        plan(
            row("a", target_prior=10), row("a", partition=1, offset=61, target_prior=11),
            row("b", offset=70), row("b", "bills", offset=71),
            row("c", offset=80, target_prior=30),
        ),
        folder,
    )  # fmt: skip


def statuses(result: ApplyResult) -> dict[tuple[str, str, int], RowStatus]:
    return {r.key: r.status for r in result.rows}


def block(check: str, subject: str, scope: Scope = Scope.GROUP) -> CheckResult:
    return make_check(check=check, subject=subject, scope=scope, level=Level.BLOCK, counts_as=Level.BLOCK)


def with_checks(made: Plan, *checks: CheckResult) -> Plan:
    return Plan(replace(made.header, checks=checks), made.rows)


def kept(group: str, offset: int = 60, **changes: object) -> Row:
    values = {"decision": Decision.KEEP, "reason": "already-there", "target_prior": offset}
    return row(group, offset=offset, **(values | changes))


def killed() -> None:
    """Be a process that is gone."""
    raise Crash


def text(result: ApplyResult) -> str:
    return "\n".join(apply_lines(result, Typed("apply", "cutover.plan", ()), "f" * 64, 200, False))
