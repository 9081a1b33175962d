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
from tests.fakes import FakeClock, FakeGroupFacts, NoProgress
from tests.unit.plans import clusters, plan, row


@dataclass
class Scene:
    """A plan, the clusters that fit it, and a folder for its journal; the plan itself is not written there."""

    plan: Plan
    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    groups: FakeGroupFacts | None = None
    name: str = "cutover.plan"

    def __post_init__(self) -> None:
        self.path = self.folder / self.name
        self.target, self.source = clusters(self.plan)
        self.target.cluster_id = self.plan.header.target_cluster_id
        self.source.cluster_id = self.plan.header.source_cluster_id
        self.journal = Journal(journal_path(self.path, self.plan.fingerprint), self.plan.fingerprint, self.clock.now_ms)

    def apply(self, **options: Any) -> ApplyResult:
        self.target.told = self.groups
        on = ApplyClusters(self.target, self.source, self.groups is not None)
        return self._run(self.plan, on, **options)

    def undo(self, moved: str = "refuse") -> Plan:
        return undo_plan(self.plan, self.journal.read(), self.clock.now_ms(), "0", moved)

    def rollback(self, moved: str = "refuse", **options: Any) -> ApplyResult:
        return self._run(self.undo(moved), ApplyClusters(self.target), command=ROLLBACK, **options)

    def _run(self, made: Plan, on: ApplyClusters, **options: Any) -> ApplyResult:
        return apply_plan(made, on, self.journal, self.clock, NoProgress(), RunOptions(**({"execute": True} | options)))


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


def text(result: ApplyResult) -> str:
    return "\n".join(apply_lines(result, Typed("apply", "cutover.plan", ()), "f" * 64, 200, False))
