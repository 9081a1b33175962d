"""What a plan is refused for before anything is written: blocks, a silent source, and what has changed since."""

from collections.abc import Callable

import pytest

from migrate.apply.assess import ApplyClusters, Fate, RunOptions, assess, refuse_other_cluster
from migrate.apply.drift import Drift, seem_gone
from migrate.apply.history import JournalState
from migrate.apply.outcome import RowStatus
from migrate.errors import Refused
from migrate.model import Commit, Decision, Failure, GroupState, Level, LogRange, Scope, Side, TopicPartition
from migrate.plan.plan import Plan
from migrate.plan.totals import totals
from migrate.row_table import GroupRows
from migrate.show.plan_table import verdict
from migrate.show.review import next_commands
from tests.builders import make_check
from tests.fakes import ALIVE, FakeCluster, NoProgress, Script
from tests.unit.answers import DENIED
from tests.unit.applyscene import Scene, block, kept, statuses, text, with_checks
from tests.unit.plans import clusters, plan, row

P0, ON_A = TopicPartition("A.orders", 0), TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("rows", "scope"),
    [((row("a"),), Scope.GROUP), ((row("a"),), Scope.TOPIC), ((), Scope.GROUP), ((kept("a"),), Scope.GROUP)],
    ids=["a name that no row has", "a topic that no row is on", "nothing to write", "only what is kept"],
)
def test_a_block_that_no_row_shows_is_refused_and_named_when_passed_over(tmp_path, rows, scope: Scope):
    scene = Scene(with_checks(plan(*rows), block("some-check", "bilings", scope)), tmp_path)
    assert not scene.plan.is_clean()
    for execute in (False, True):
        result = scene.apply(execute=execute)
        assert result.exit_code == 3 and scene.target.writes == 0
        assert "some-check: bilings" in text(result) and text(result).startswith("REFUSED")
    first, again = scene.apply(allow_partial=True), scene.apply(allow_partial=True)
    assert first.exit_code == again.exit_code == 4 and "bilings" in text(first) and "bilings" in text(again)
    assert scene.target.held("a") == ({("A.orders", 0): 60} if rows else {})
    if scene.target.writes:
        assert text(first).startswith("PARTLY APPLIED: 1 block of the plan passed over")


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("subject", ["a", "b", "orders", "b/orders/0", "unseen"])
def test_plan_show_review_and_apply_agree_on_whether_a_plan_may_be_applied_whole(
    tmp_path, level: Level, scope: Scope, subject
):
    check = make_check(check="some-check", subject=subject, scope=scope, level=level, counts_as=level)
    blocked = level is Level.BLOCK and (scope, subject) == (Scope.GROUP, "b")
    second = row("b", decision=Decision.BLOCK, reason="some-check") if blocked else row("b")
    scene = Scene(with_checks(plan(row("a"), second), check), tmp_path)
    clean = scene.plan.is_clean()
    assert clean == (level is not Level.BLOCK)
    assert verdict(scene.plan, totals(scene.plan))[0].startswith("READY" if clean else "BLOCKED")
    assert (scene.apply(execute=False).exit_code == 0) == clean
    partial = scene.apply(execute=False, allow_partial=True).exit_code
    assert partial == (0 if clean else 3 if scope is Scope.CLUSTER else 4)
    typed = next_commands(scene.plan, "cutover.plan")
    assert ("apply" in typed) == (partial != 3) and ("--allow-partial" in typed) == (partial == 4)


def test_a_plan_that_only_keeps_or_skips_is_compared_before_it_is_called_as_planned(tmp_path):
    scene = Scene(plan(kept("a"), row("b", decision=Decision.SKIP, offset=None)), tmp_path)
    result = scene.apply()
    assert result.exit_code == 0 and text(result).startswith("NOTHING LEFT TO DO") and scene.target.writes == 0
    assert {g.fate for g in result.assessment.groups} == {Fate.NOTHING}
    assert set(statuses(result).values()) == {RowStatus.KEPT, RowStatus.SKIPPED}
    applied = scene.journal.read().applied["a"]
    assert applied.read_back and not applied.written() and applied.seen == {P0: 60}
    scene.target.offsets["a"][P0] = Commit(59)
    assert scene.apply().exit_code == 3


@pytest.mark.parametrize(
    ("group", "said"), [("k", "was to be kept at 60"), ("a", "was already at 60"), ("b", "was already at 60")]
)
def test_a_row_that_was_not_to_be_written_and_that_somebody_moves_meanwhile_has_failed(tmp_path, group, said):
    rows = row("a", target_prior=60), row("a", partition=1), row("b", target_prior=60), kept("k")
    scene = Scene(plan(*rows), tmp_path)
    scene.target.when("alter", lambda: scene.target.commit(group, *P0, 95))
    result = scene.apply()
    assert result.exit_code == 4 and statuses(result)[group, "orders", 0] is RowStatus.FAILED
    assert f"{said}, and was read back at 95" in text(result)
    applied = scene.journal.read().applied
    read_back = {name: applied[name].read_back for name in ("a", "b", "k")}
    assert read_back == {"a": True, "b": True, "k": True} | {group: False}, "verify knows that b was as planned, too"
    assert [r.partition for r in scene.undo().rows] == [1], "and what was not written is not undone"


@pytest.mark.parametrize("dies_at", ["facts", "commits", "states", "log_ranges"])
def test_a_source_that_does_not_answer_refuses_before_any_write(scene, tmp_path, dies_at):
    scene.source.when(dies_at, lambda: setattr(scene.source, "down", True))
    for options in ({"execute": False}, {}, {"allow_partial": True}):
        result = scene.apply(**options)
        assert result.exit_code == 3 and scene.target.writes == 0 and list(tmp_path.iterdir()) == []
        assert "source A: expected an answer" in text(result) and "--source-unreachable" in text(result)


def test_a_source_that_is_known_to_be_gone_is_named_in_verdict_and_journal_and_no_difference_is_forgiven(scene):
    scene.source.states["a"] = ALIVE
    assert scene.apply(source_unreachable=True).exit_code == 3, "it answers"
    scene.source.down = True
    result = scene.apply(source_unreachable=True)
    assert result.exit_code == 0 and set(statuses(result).values()) == {RowStatus.SET}
    assert text(result).startswith("APPLIED, SOURCE NOT SEEN: 5 offsets")
    assert '"source_not_seen":"source A cannot be reached."' in scene.journal.path.read_text()
    assert text(scene.apply()).startswith("NOTHING LEFT TO DO"), "a finished apply does not need the source"


def test_a_source_group_that_nobody_answers_for_is_passed_over_only_by_the_option(scene):
    lost = Script(Failure("_TIMED_OUT", "no answer", retriable=True))
    scene.source.script("commits", "a", lost, lost)
    assert scene.apply(execute=False).exit_code == 3
    result = scene.apply(source_unreachable=True)
    assert result.exit_code == 0 and "SOURCE NOT SEEN" in text(result) and "a: _TIMED_OUT" in text(result)


@pytest.mark.parametrize("side", list(Side))
def test_a_cluster_that_is_not_the_plans_is_refused_whatever_is_allowed_and_a_plan_without_its_id_cannot_tell(
    scene, side: Side
):
    cluster = scene.source if side is Side.SOURCE else scene.target
    planned_id = cluster.cluster_id
    for known in (planned_id, ""):
        refuse_other_cluster(cluster, known)
    cluster.cluster_id = "another"
    with pytest.raises(Refused, match=f"The plan is for {side} cluster {planned_id}, and {cluster.alias} is another"):
        refuse_other_cluster(cluster, planned_id)
    result = scene.apply(allow_partial=True)
    assert result.exit_code == 3 and scene.target.writes == 0
    told = f"{side} {cluster.alias}: cluster id: expected {planned_id}, seen another"
    assert result.assessment.refusals == (told,)


# --- what differs from the world of the plan --------------------------------------------------------------

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


def source_is_alive(target: FakeCluster, source: FakeCluster):
    source.states["g"] = ALIVE


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("target topic id", lambda t, s: t.ids.update({"A.orders": "another"})),
        ("target topic id", lambda t, s: t.ids.pop("A.orders")),
        ("source topic id", lambda t, s: s.ids.update({"orders": "another"})),
        ("source topic id", lambda t, s: s.ids.pop("orders")),
        ("target log start", lambda t, s: t.ranges.update({P0: LogRange(1, 100)})),
        ("target log end", lambda t, s: t.ranges.update({P0: LogRange(0, 101)})),
        ("target log end", lambda t, s: t.ranges.update({P0: LogRange(0, 99)})),
        ("target log", lambda t, s: t.ranges.pop(P0)),
        ("target group state", lambda t, s: t.states.update(g=ALIVE)),
        ("target group state", lambda t, s: t.states.update(g=GroupState("Unknown", kind="other"))),
        ("target group state", lambda t, s: t.states.update(g=GroupState("Unknown"))),
        ("target committed offset", commits(11)),
        ("target committed offset", commits(10, metadata="theirs")),
        ("target committed offset", lambda t, s: t.offsets.pop("g")),
        ("source group state", source_is_alive),
        ("source committed offset", source_commits(121)),
        ("source committed offset", source_commits(120, metadata="theirs")),
        ("source committed offset", lambda t, s: s.offsets.pop("g")),
        ("source committed offset", source_commits(1, partition=7)),
        ("source committed offsets", lambda t, s: s.unstable.add("g")),
        ("source log end", lambda t, s: s.ranges.update({ON_A: LogRange(0, 203)})),
        ("source log end", lambda t, s: s.ranges.update({ON_A: LogRange(0, 199)})),
        ("source log", lambda t, s: s.ranges.pop(ON_A)),
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
        (plan(row("g")), lambda t, s: s.ranges.update({ON_A: LogRange(50, 200)})),
        (plan(row("g"), row("g", "bills", decision=Decision.SKIP, offset=None)), commits(5, "A.bills")),
        (plan(row("g"), settings={"topic": "orders"}), source_commits(7, "another")),
        (TWO_TOPICS, commits(60)),
    ],
)
def test_what_a_plan_does_not_go_by_is_no_drift(made: Plan, change: Change):
    assert drift(made, change) == ()


def test_what_was_seen_instead_is_said():
    (found,) = drift(plan(row("g")), lambda t, s: s.ranges.update({ON_A: LogRange(0, 203)}))
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

    moves = source_is_alive, source_commits(150), lambda t, s: s.ranges.update({ON_A: LogRange(0, 300)})
    assert drift(accepted("g"), *moves) == ()
    # A waiver for all groups excuses those that it was needed for, not one that was stopped then.
    assert kinds(accepted("h"), *moves) == ["source group state", "source committed offset"]
    assert kinds(accepted("g"), lambda t, s: t.states.update(g=ALIVE)) == ["target group state"]
    (found,) = drift(accepted("g"), lambda t, s: s.ids.update({"orders": "another"}))
    assert (found.what, found.seen) == ("source topic id", "another: the topic was re-created")


def test_an_undo_looks_at_the_target_group_only():
    made = plan(row("g", offset=10, target_prior=60), kind="undo")
    assert drift(made, source_is_alive, source_commits(190), lambda t, s: t.ranges.update({P0: LogRange(9, 500)})) == ()
    who = "a consumer or another client has committed there"
    for offset, moved in ((180, "on by 120"), (4, "back by 56")):
        (found,) = drift(made, commits(offset))
        assert (found.expected, found.seen) == ("60 (what apply set)", f"{offset}: moved {moved} since: {who}")
    restoring = plan(*made.rows, kind="undo", settings={"moved": "restore"})
    assert drift(restoring, commits(180)) == ()
    for each in (made, restoring):
        assert kinds(each, lambda t, s: t.states.update(g=ALIVE)) == ["target group state"]


@pytest.mark.parametrize(
    ("live", "now", "drifts"),
    [(150, 120, True), (150, 150, False), (150, 151, True), (150, None, True), (None, None, False), (None, 120, True)],
)
def test_in_a_plan_of_an_earlier_time_the_live_commit_that_it_saw_is_compared(live, now, drifts):
    made = plan(row("g", live_source_offset=live), settings={"commits-as-of": "2026-11-23T22:00:00.000Z"})
    live_now = {} if now is None else {ON_A: Commit(now, "of now")}
    found = drift(made, lambda target, source: source.offsets.update(g=live_now))
    told = [(d.what, d.expected, d.seen) for d in found]
    expected, seen = ("none" if offset is None else str(offset) for offset in (live, now))
    assert told == [("source committed offset", expected, seen)] * drifts


def test_only_rows_to_remove_can_seem_to_be_gone_and_none_of_a_group_that_was_not_read():
    removals = [row("g", partition=p, offset=None, decision=Decision.REMOVE, target_prior=60) for p in (0, 1)]
    assert seem_gone(GroupRows.of_rows([*removals, row("g", partition=2)]), {P0: Commit(60)}) == [removals[1]]
    assert seem_gone(GroupRows.of_rows(removals), DENIED) == ()
