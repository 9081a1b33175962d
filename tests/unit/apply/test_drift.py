from collections.abc import Callable
from dataclasses import replace

import pytest

from migrate.apply.drift import Drift, GroupNow, SideWorld, World, cluster_drift, group_drift, group_now, seem_gone
from migrate.apply.history import REMOVED, GroupTrace
from migrate.model import Commit, Commits, Decision, Failure, GroupState, Level, LogRange, TopicPartition
from migrate.plan.plan import Plan
from migrate.row_table import GroupRows
from tests.builders import make_check
from tests.fakes import ALIVE, FakeCluster
from tests.unit.plans import clusters, plan, row

HERE = TopicPartition("A.orders", 0)
THERE = TopicPartition("orders", 0)
WHO = "a consumer or another client has committed there"
Change = Callable[[FakeCluster, FakeCluster], object]


def world(made: Plan, change: Change = lambda target, source: None, source_answers: bool = True) -> World:
    target, source = clusters(made)
    change(target, source)
    groups = list(made.groups())
    sides = [
        SideWorld(c.cluster_id, c.log_ranges(c.ranges.keys()), c.group_states(groups), c.commits(groups))
        for c in (target, source)
    ]
    return World(sides[0], sides[1] if source_answers else None, target.ids, source.ids)


def drift(made: Plan, change: Change = lambda t, s: None, trace: GroupTrace | None = None) -> tuple[Drift, ...]:
    return group_drift(made, "g", group_now(made, "g", now := world(made, change), trace), now)


def test_an_unchanged_world_has_no_drift_nor_has_what_a_plan_does_not_go_by():
    made = plan(row("g", target_prior=10), row("g", "bills", 3))
    assert drift(made) == () and cluster_drift(made, world(made)) == ()
    assert drift(plan(row("g"), source_topic_ids={})) == (), "it knows none"
    assert drift(plan(row("g")), lambda t, s: s.ranges.update({THERE: LogRange(50, 200)})) == (), "retention"
    skips = plan(row("g"), row("g", "bills", decision=Decision.SKIP, offset=None))
    assert drift(skips, lambda t, s: t.commit("g", "A.bills", 0, 5)) == (), "the reviewer's own choice"
    keeps = plan(row("g"), row("g", "bills", decision=Decision.KEEP, target_prior=60))
    assert drift(keeps, lambda t, s: t.commit("g", "A.bills", 0, 61)) != ()


CHANGES: list[tuple[str, Change]] = [
    ("target topic id", lambda t, s: t.ids.update({"A.orders": "another"})),
    ("target topic id", lambda t, s: t.ids.pop("A.orders")),
    ("source topic id", lambda t, s: s.ids.update({"orders": "another"})),
    ("source topic id", lambda t, s: s.ids.pop("orders")),
    ("target log start", lambda t, s: t.ranges.update({HERE: LogRange(61, 100)})),
    ("target log start", lambda t, s: t.ranges.update({HERE: LogRange(1, 100)})),
    ("target log end", lambda t, s: t.ranges.update({HERE: LogRange(0, 101)})),
    ("target log end", lambda t, s: t.ranges.update({HERE: LogRange(0, 99)})),
    ("target log", lambda t, s: t.ranges.pop(HERE)),
    ("target group state", lambda t, s: t.states.update({"g": ALIVE})),
    ("target group state", lambda t, s: t.states.update({"g": GroupState("Unknown", kind="other")})),
    ("target group state", lambda t, s: t.states.update({"g": GroupState("Unknown")})),
    ("target committed offset", lambda t, s: t.commit("g", "A.orders", 0, 11)),
    ("target committed offset", lambda t, s: t.commit("g", "A.orders", 0, 10, "theirs")),
    ("target committed offset", lambda t, s: t.offsets.pop("g")),
    ("source group state", lambda t, s: s.states.update({"g": ALIVE})),
    ("source committed offset", lambda t, s: s.commit("g", "orders", 0, 121)),
    ("source committed offset", lambda t, s: s.commit("g", "orders", 0, 120, "theirs")),
    ("source committed offset", lambda t, s: s.offsets.pop("g")),
    ("source committed offset", lambda t, s: s.commit("g", "orders", 7, 1)),
    ("source committed offsets", lambda t, s: s.unstable.add("g")),
    ("source log end", lambda t, s: s.ranges.update({THERE: LogRange(0, 203)})),
    ("source log end", lambda t, s: s.ranges.update({THERE: LogRange(0, 199)})),
    ("source log", lambda t, s: s.ranges.pop(THERE)),
]


@pytest.mark.parametrize(("what", "change"), CHANGES)
def test_each_difference_is_drift_and_named(what, change: Change):
    found = drift(plan(row("g", target_prior=10)), change)
    assert [d.what for d in found] == [what]
    assert found[0].expected and found[0].seen


@pytest.mark.parametrize(("what", "change"), CHANGES)
def test_a_group_whose_rows_are_done_is_left_alone_whatever_changed(what, change: Change):
    def done(target: FakeCluster, source: FakeCluster):
        change(target, source)
        target.commit("g", "A.orders", 0, 60)

    assert drift(plan(row("g", target_prior=10)), done) == ()


def test_a_source_topic_that_was_created_anew_counts_for_a_group_that_was_accepted_alive_and_growing():
    made = plan(
        row("g"),
        checks=(
            make_check("source-group-stopped", "g", accepted=True, level=Level.WARN),
            make_check("producers-stopped", "orders", accepted=True, level=Level.WARN),
        ),
    )
    (found,) = drift(made, lambda t, s: s.ids.update({"orders": "another"}))
    assert (found.what, found.seen) == ("source topic id", "another: the topic was re-created")


def test_what_was_seen_instead_is_said():
    (found,) = drift(plan(row("g")), lambda t, s: s.ranges.update({THERE: LogRange(0, 203)}))
    assert str(found) == "orders-0: source log end: expected 200, seen 203: 3 records written since the plan"
    (found,) = drift(made := plan(row("g", target_prior=5)), lambda t, s: t.commit("g", *HERE, 5, "theirs"))
    assert (found.expected, found.seen.partition(":")[0]) == ("5 (as planned from)", "5 with other metadata")
    (found,) = drift(made, lambda t, s: t.offsets["g"].clear())
    assert found.seen == "none"


def test_only_what_the_source_shows_is_excused_where_it_was_accepted_alive():
    def moves(target: FakeCluster, source: FakeCluster):
        source.states["g"] = ALIVE
        source.commit("g", "orders", 0, 150)
        source.ranges[THERE] = LogRange(0, 300)

    def accepted(group: str) -> Plan:
        alive = make_check(check="source-group-stopped", subject=group, accepted=True)
        return plan(row("g"), waivers=("source-group-stopped",), checks=(alive,))

    assert drift(accepted("g"), moves) == ()
    # A waiver for all groups excuses those that it was needed for, not one that was stopped then.
    assert drift(accepted("h"), moves) != ()
    assert drift(accepted("g"), lambda t, s: t.states.update({"g": ALIVE})) != ()


def test_a_new_source_commit_on_any_topic_is_drift_unless_the_plan_filters_topics():
    def commits_elsewhere(target: FakeCluster, source: FakeCluster):
        source.commit("g", "another", 0, 7)

    assert [d.subject for d in drift(plan(row("g")), commits_elsewhere)] == ["g/another/0"]
    assert drift(plan(row("g"), settings={"topic": "orders"}), commits_elsewhere) == ()


def test_a_source_that_does_not_answer_is_not_compared():
    made = plan(row("g"))
    now = world(made, lambda t, s: s.states.update({"g": ALIVE}), source_answers=False)
    assert group_drift(made, "g", group_now(made, "g", now), now) == ()


def test_a_half_done_group_is_checked_for_its_other_rows():
    made = plan(row("g", target_prior=10), row("g", "bills", target_prior=10))
    half = lambda t, s: t.commit("g", "A.orders", 0, 60)  # noqa: E731
    assert drift(made, half) == ()

    def half_and_alive(target: FakeCluster, source: FakeCluster):
        half(target, source)
        target.states["g"] = ALIVE

    assert [d.what for d in drift(made, half_and_alive)] == ["target group state"]


def test_ahead_is_done_only_where_our_own_write_was_read_back():
    made = plan(row("g"))
    ahead = lambda t, s: t.commit("g", "A.orders", 0, 75)  # noqa: E731
    trace = GroupTrace({HERE: 60}, {HERE: "set"}, read_back=True)
    assert drift(made, ahead, trace) == ()
    assert drift(made, ahead, replace(trace, read_back=None)) != ()
    assert drift(made, ahead) != ()
    assert drift(made, lambda t, s: t.commit("g", "A.orders", 0, 59), trace) != ()


def test_a_target_that_cannot_be_read_is_drift():
    made = plan(row("g"))
    now = world(made)
    unread = replace(now.target, commits={"g": Failure("GROUP_AUTHORIZATION_FAILED", "no")})
    now = replace(now, target=unread)
    (found,) = group_drift(made, "g", group_now(made, "g", now), now)
    assert "GROUP_AUTHORIZATION_FAILED" in found.seen


def test_each_cluster_is_known_by_its_id():
    made = plan(row("g"))
    now = world(made)
    other = replace(now, source=replace(now.source or now.target, cluster_id="x"))
    assert [d.subject for d in cluster_drift(made, other)] == ["source A"]
    other = replace(now, target=replace(now.target, cluster_id="x"))
    assert [d.subject for d in cluster_drift(made, other)] == ["target B"]


def test_an_undo_looks_at_the_target_group_only():
    made = plan(row("g", offset=10, target_prior=60), kind="undo")

    def all_moves(target: FakeCluster, source: FakeCluster):
        source.states["g"] = ALIVE
        source.commit("g", "orders", 0, 190)
        target.ranges[HERE] = LogRange(20, 500)

    assert drift(made, all_moves) == ()
    (found,) = drift(made, lambda t, s: t.commit("g", "A.orders", 0, 180))
    assert found.expected == "60 (what apply set)"
    assert found.seen == f"180: moved on by 120 since: {WHO}"
    (found,) = drift(made, lambda t, s: t.commit("g", "A.orders", 0, 4))
    assert found.seen == f"4: moved back by 56 since: {WHO}"
    (found,) = drift(made, lambda t, s: t.states.update({"g": ALIVE}))
    assert found.what == "target group state"
    restoring = plan(*made.rows, kind="undo", settings={"moved": "restore"})
    assert drift(restoring, lambda t, s: t.commit("g", "A.orders", 0, 180)) == ()
    assert [d.what for d in drift(restoring, lambda t, s: t.states.update({"g": ALIVE}))] == ["target group state"]


AS_OF = {"commits-as-of": "2026-11-23T22:00:00.000Z"}


@pytest.mark.parametrize(("now", "drifts"), [(120, True), (150, False), (151, True), (None, True)])
def test_in_a_plan_of_an_earlier_time_the_live_commit_that_it_saw_is_compared(now, drifts):
    made = plan(row("g", live_source_offset=150), settings=AS_OF)

    def committed(target: FakeCluster, source: FakeCluster):
        source.offsets["g"] = {} if now is None else {THERE: Commit(now, "of now")}

    found = drift(made, committed)
    assert [d.what for d in found] == ["source committed offset"] * drifts
    assert not drifts or found[0].expected == "150"


def test_a_commit_that_was_gone_when_an_earlier_time_was_planned_is_to_be_gone_still():
    made = plan(row("g", live_source_offset=None), settings=AS_OF)
    assert drift(made, lambda t, s: s.offsets["g"].clear()) == ()
    (found,) = drift(made)
    assert (found.expected, found.seen) == ("none", "120")


P0, P1 = (TopicPartition("A.orders", p) for p in (0, 1))
REMOVALS = [row("g", partition=p, offset=None, decision=Decision.REMOVE, target_prior=60) for p in (0, 1)]


def told(commits: Commits, topics: frozenset[str] | None, trace: GroupTrace | None = None) -> list[str]:
    world = World(SideWorld("id", {}, {}, {"g": commits}), None, {}, target_topics=topics)
    now = group_now(plan(*REMOVALS, kind="undo"), "g", world, trace)
    assert isinstance(now, GroupNow)
    return [drift.subject for drift in now.hidden]


def test_an_offset_is_hidden_where_its_topic_is_not_listed_unless_it_was_read_back_as_removed_or_nobody_asked():
    unlisted, listed = frozenset[str](), frozenset({"A.orders"})
    results = dict.fromkeys((P0, P1), REMOVED)
    assert told({}, unlisted) == told({P0: Commit(60)}, unlisted) == ["A.orders"]
    assert told({P0: Commit(60), P1: Commit(60)}, unlisted) == told({}, listed) == told({}, None) == []
    assert told({}, unlisted, GroupTrace({}, results, read_back=True)) == []
    assert told({}, unlisted, GroupTrace({}, results, read_back=False)) == ["A.orders"]


def test_only_rows_to_remove_can_seem_to_be_gone_and_none_of_a_group_that_was_not_read():
    assert seem_gone(GroupRows.of_rows([*REMOVALS, row("g", partition=2)]), {P0: Commit(60)}) == [REMOVALS[1]]
    assert seem_gone(GroupRows.of_rows(REMOVALS), Failure("NO_ANSWER", "silent")) == ()
