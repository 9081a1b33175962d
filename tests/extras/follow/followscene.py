"""A mandate, two clusters in memory, and passes of `follow` on them: what the tests of `follow` share."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import migrate.extras.follow.rollback as rollback_module
from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import ApplyResult, apply_plan
from migrate.apply.history import ROLLBACK
from migrate.apply.journal import Journal
from migrate.extras.follow.engine import NO_BLOCK_HERE, FollowChoices, FollowEdges, Follower, PassResult
from migrate.extras.follow.journal import Followed, FollowJournal
from migrate.extras.follow.mandate import Mandate, mandate_of, plan_of_mandate, policies_of_mandate
from migrate.extras.follow.rollback import undo_of_mandate
from migrate.mm2.flow import Flow
from migrate.model import Failure, Grade, TopicPartition
from migrate.plan.companions import journal_path
from migrate.plan.plan import Plan
from migrate.session.options import SessionOptions
from migrate.survey.renamed import TargetNames
from migrate.survey.survey import Clusters, PlanRequest
from tests.fakes import Crash, FakeApplyEdges, FakeClock, FakeComparer, FakeGroupFacts, NoProgress, Script
from tests.unit.planscene import planned_flow, world

T0, T1, U0 = (TopicPartition(topic, p) for topic, p in (("A.t", 0), ("A.t", 1), ("A.u", 0)))
# What a pass sets of groups g and h of the scene.
G, H = {("A.t", 0): 55, ("A.t", 1): 60}, {("A.u", 0): 100}
DENIED = Script(Failure("GROUP_AUTHORIZATION_FAILED", "no"))


def reasons(result: PassResult) -> dict[str, str]:
    return {group: refusal.reason for group, refusal in result.refused.items()}


def mandate(**changes: Any) -> Mandate:
    values: dict[str, Any] = {
        "until_ms": 1_700_086_400_000, "grades": ("exact", "bounded"), "max_rereads": 1_000_000,
        "match_limit": 1_000_000, "untranslatable": (),
    }  # fmt: skip
    return Mandate(**(values | changes))


def mandated(flow: Flow, waivers: tuple[Any, ...] = (), **changes: Any) -> Plan:
    ids = ("id-a", "id-b")
    return plan_of_mandate(flow, mandate(**changes), tuple(map(str, waivers)), ids, {}, 1_700_000_000_000)


@dataclass
class FollowScene:
    """Groups g (on t, at 55 and 60) and h (on u, at 100) of A, copied one to one, and a mandate for both."""

    folder: Path
    changes: dict[str, Any] = field(default_factory=dict)
    until_ms: int = 10**15
    asked: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source, self.target, self.mirror = world()
        self.clock, self.comparer = FakeClock(), FakeComparer()
        self.on_source, self.on_target = FakeGroupFacts(), FakeGroupFacts()
        self.flow = planned_flow()
        self.plan = mandated(self.flow, **self.changes)
        path = journal_path(self.folder / "follow.plan", self.plan.fingerprint)
        self.journal = FollowJournal(path, self.plan.fingerprint, self.clock.now_ms, self.until_ms)
        self.forgotten = 0
        self._follower: Follower | None = None
        self._writer: Any = None

    def edges(self) -> FollowEdges:
        return FollowEdges(self._clusters, self.target, self._forget, self.source.topic_ids, lambda: 0)

    def _forget(self) -> None:
        self.forgotten += 1

    def _clusters(self) -> Clusters:
        self.source.told, self.target.told = self.on_source, self.on_target
        return Clusters(self.source, self.target, self.mirror, self.comparer)

    def _new_follower(self) -> Follower:
        mandate, policies = mandate_of(self.plan), policies_of_mandate(self.plan, NO_BLOCK_HERE)
        request = PlanRequest(
            self.flow, mandate.filters(), policies, 6.0, {}, mandate.limits(), group_map=mandate.names()
        )
        grades, moving = frozenset(map(Grade, mandate.grades)), mandate.moving_groups()
        choices = FollowChoices(request, ("id-a", "id-b"), grades, 100, 1.0, self.until_ms, moving)
        self.journal.until_ms = self.until_ms
        details = {"plan": self.plan.fingerprint}
        self._writer = self.journal.open("follow", details, name_on_target=request.group_map.mapped)
        return Follower(self.plan, choices, self.edges(), self.journal, self._writer, self.clock, NoProgress())

    def known(self, group: str) -> Followed:
        return Followed.by(self.journal.read(), group)

    def look(self, **wanted: Any) -> PassResult:
        """Make one more pass of the process that is under way, or of a new one."""
        self._follower = self._follower or self._new_follower()
        return self._follower.look_and_write(**wanted)

    def die(self) -> None:
        """The process is gone, as after kill -9; what it has written stays."""
        if self._writer is not None:
            self._writer.close()
        self._follower = self._writer = None

    def kill_amid_a_write(self, is_made: bool = True) -> None:
        """Let group g move on to 70, and the process be killed right after that was written, or right before."""

        def die() -> None:
            raise Crash

        self.source.commit("g", "t", 0, 70)
        if is_made:
            self.target.crash_after = 1
        else:
            self.target.when("alter", die)
        with pytest.raises(Crash):
            self.look()
        self.target.calm()
        self.die()

    def amid(self, call: str, act: Callable[[], object], at: int = 2, on: Any = None) -> None:
        """Let something happen while a cluster, the target if none is named, answers a call for the so-manieth time.

        The second time from now that states are asked for is right before a pass writes.
        """
        cluster = on or self.target
        when = cluster.calls[call] + at

        def on_call(called: str) -> None:
            if called == call and cluster.calls[call] == when:
                act()

        cluster.on_call = on_call

    def on_b(self, group: str) -> dict[tuple[str, int], int]:
        return self.target.held(group)

    def undo(self, moved: str = "refuse") -> Plan:
        """Return the undo of the mandate; `asked` has for each session with the target whether it needed Java."""
        self.die()

        def apply_session(flow: Flow, progress: Any, needs_java: bool, options: Any) -> Any:
            self.asked.append(needs_java)
            return nullcontext(FakeApplyEdges(self.target))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rollback_module, "apply_session", apply_session)
            patch.setattr(rollback_module, "SystemClock", lambda: self.clock)
            state, session = self.journal.read(), SessionOptions(1.0)
            return undo_of_mandate(self.plan, state, (), self.flow, NoProgress(), session, moved)

    def rollback(self, moved: str = "refuse", **options: Any) -> ApplyResult:
        made, path = self.undo(moved), self.journal.path
        clusters = ApplyClusters(self.target.named(TargetNames(made.rows.renamed())))
        journal = Journal(path, made.header.undoes, self.clock.now_ms)
        choices = replace(RunOptions(execute=True, command=ROLLBACK, group_timeout_seconds=1.0), **options)
        return apply_plan(made, clusters, journal, self.clock, NoProgress(), choices)
