"""What differs between the world of a plan and that of now, group by group, and which differences do not count."""

from collections.abc import Callable

import pytest

from migrate.apply.assess import ApplyClusters, RunOptions, assess
from migrate.apply.drift import Drift, seem_gone
from migrate.apply.history import JournalState
from migrate.model import Commit, Decision, GroupState, Level, LogRange, TopicPartition
from migrate.plan.plan import Plan
from migrate.row_table import GroupRows
from tests.builders import make_check
from tests.fakes import ALIVE, FakeCluster, NoProgress, Script
from tests.unit.answers import DENIED
from tests.unit.plans import clusters, plan, row

HERE, THERE = TopicPartition("A.orders", 0), TopicPartition("orders", 0)
Change = Callable[[FakeCluster, FakeCluster], object]
MOVED = row("g", target_prior=10)
TWO_TOPICS = plan(MOVED, row("g", "bills", target_prior=10))


def drift(made: Plan, *changes: Change) -> tuple[Drift, ...]:
    """What differs for the plan's one group after these changes of the target and the source."""
    target, source = clusters(made)
    for change in changes:
        change(target, source)
    found = assess(made, ApplyClusters(target, source), JournalState(), NoProgress(), RunOptions())
    assert found.refusals == ()
    return found.groups[0].drifts


def kinds(made: Plan, *changes: Change) -> list[str]:
    return [each.what for each in drift(made, *changes)]


def commits(offset: int, topic: str = "A.orders", metadata: str = "") -> Change:
    return lambda target, source: target.commit("g", topic, 0, offset, metadata)


def source_commits(offset: int, topic: str = "orders", partition: int = 0, metadata: str = "") -> Change:
    return lambda target, source: source.commit("g", topic, partition, offset, metadata)


def target_log(start: int, end: int) -> Change:
    return lambda target, source: target.ranges.update({HERE: LogRange(start, end)})


def source_log(start: int, end: int) -> Change:
    return lambda target, source: source.ranges.update({THERE: LogRange(start, end)})


def target_group(state: GroupState = ALIVE) -> Change:
    return lambda target, source: target.states.update({"g": state})


def source_is_alive(target: FakeCluster, source: FakeCluster):
    source.states["g"] = ALIVE


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("target topic id", lambda t, s: t.ids.update({"A.orders": "another"})),
        ("target topic id", lambda t, s: t.ids.pop("A.orders")),
        ("source topic id", lambda t, s: s.ids.update({"orders": "another"})),
        ("source topic id", lambda t, s: s.ids.pop("orders")),
        ("target log start", target_log(1, 100)),
        ("target log end", target_log(0, 101)),
        ("target log end", target_log(0, 99)),
        ("target log", lambda t, s: t.ranges.pop(HERE)),
        ("target group state", target_group()),
        ("target group state", target_group(GroupState("Unknown", kind="other"))),
        ("target group state", target_group(GroupState("Unknown"))),
        ("target committed offset", commits(11)),
        ("target committed offset", commits(10, metadata="theirs")),
        ("target committed offset", lambda t, s: t.offsets.pop("g")),
        ("source group state", source_is_alive),
        ("source committed offset", source_commits(121)),
        ("source committed offset", source_commits(120, metadata="theirs")),
        ("source committed offset", lambda t, s: s.offsets.pop("g")),
        ("source committed offset", source_commits(1, partition=7)),
        ("source committed offsets", lambda t, s: s.unstable.add("g")),
        ("source log end", source_log(0, 203)),
        ("source log end", source_log(0, 199)),
        ("source log", lambda t, s: s.ranges.pop(THERE)),
    ],
)
def test_each_difference_is_drift_and_named_and_none_of_a_group_whose_rows_are_done(what, change: Change):
    made = plan(MOVED)
    (found,) = drift(made, change)
    assert found.what == what and found.expected and found.seen
    assert drift(made, change, commits(60)) == ()


@pytest.mark.parametrize(
    ("made", "change"),
    [
        (plan(MOVED, row("g", "bills", 3)), lambda t, s: None),
        (plan(row("g"), source_topic_ids={}), lambda t, s: None),
        # Retention; the reviewer's own choice; a topic that the plan filtered; the rest of a group that is half done.
        (plan(row("g")), source_log(50, 200)),
        (plan(row("g"), row("g", "bills", decision=Decision.SKIP, offset=None)), commits(5, "A.bills")),
        (plan(row("g"), settings={"topic": "orders"}), source_commits(7, "another")),
        (TWO_TOPICS, commits(60)),
    ],
)
def test_what_a_plan_does_not_go_by_is_no_drift(made: Plan, change: Change):
    assert drift(made, change) == ()


def test_what_was_seen_instead_is_said():
    (found,) = drift(plan(row("g")), source_log(0, 203))
    assert str(found) == "orders-0: source log end: expected 200, seen 203: 3 records written since the plan"
    (found,) = drift(plan(MOVED), commits(10, metadata="theirs"))
    assert (found.expected, found.seen.partition(":")[0]) == ("10 (as planned from)", "10 with other metadata")
    (found,) = drift(plan(MOVED), lambda t, s: t.offsets["g"].clear())
    assert found.seen == "none"
    (found,) = drift(plan(MOVED), lambda t, s: t.script("commits", "g", Script(DENIED)))
    assert "GROUP_AUTHORIZATION_FAILED" in found.seen


def test_only_what_the_source_shows_is_excused_where_it_was_accepted_alive_and_a_topic_created_anew_is_not():
    def accepted(group: str) -> Plan:
        alive = make_check(check="source-group-stopped", subject=group, accepted=True)
        grows = make_check("producers-stopped", "orders", accepted=True, level=Level.WARN)
        return plan(row("g"), waivers=("source-group-stopped",), checks=(alive, grows))

    moves = source_is_alive, source_commits(150), source_log(0, 300)
    assert drift(accepted("g"), *moves) == ()
    # A waiver for all groups excuses those that it was needed for, not one that was stopped then.
    assert kinds(accepted("h"), *moves) == ["source group state", "source committed offset"]
    assert kinds(accepted("g"), target_group()) == ["target group state"]
    (found,) = drift(accepted("g"), lambda t, s: s.ids.update({"orders": "another"}))
    assert (found.what, found.seen) == ("source topic id", "another: the topic was re-created")


def test_an_undo_looks_at_the_target_group_only():
    made = plan(row("g", offset=10, target_prior=60), kind="undo")
    assert drift(made, source_is_alive, source_commits(190), target_log(20, 500)) == ()
    who = "a consumer or another client has committed there"
    for offset, moved in ((180, "on by 120"), (4, "back by 56")):
        (found,) = drift(made, commits(offset))
        assert (found.expected, found.seen) == ("60 (what apply set)", f"{offset}: moved {moved} since: {who}")
    restoring = plan(*made.rows, kind="undo", settings={"moved": "restore"})
    assert drift(restoring, commits(180)) == ()
    assert kinds(made, target_group()) == kinds(restoring, target_group()) == ["target group state"]


@pytest.mark.parametrize(
    ("live", "now", "drifts"),
    [(150, 120, True), (150, 150, False), (150, 151, True), (150, None, True), (None, None, False), (None, 120, True)],
)
def test_in_a_plan_of_an_earlier_time_the_live_commit_that_it_saw_is_compared(live, now, drifts):
    made = plan(row("g", live_source_offset=live), settings={"commits-as-of": "2026-11-23T22:00:00.000Z"})
    live_now = {} if now is None else {THERE: Commit(now, "of now")}
    found = drift(made, lambda target, source: source.offsets.update(g=live_now))
    told = [(d.what, d.expected, d.seen) for d in found]
    expected, seen = ("none" if offset is None else str(offset) for offset in (live, now))
    assert told == [("source committed offset", expected, seen)] * drifts


def test_only_rows_to_remove_can_seem_to_be_gone_and_none_of_a_group_that_was_not_read():
    removals = [row("g", partition=p, offset=None, decision=Decision.REMOVE, target_prior=60) for p in (0, 1)]
    assert seem_gone(GroupRows.of_rows([*removals, row("g", partition=2)]), {HERE: Commit(60)}) == [removals[1]]
    assert seem_gone(GroupRows.of_rows(removals), DENIED) == ()
