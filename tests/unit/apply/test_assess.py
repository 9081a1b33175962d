"""What a plan is refused for, group by group, before anything is written: blocks, kept rows, a silent source."""

import pytest

from migrate.apply.assess import Fate, refuse_other_cluster
from migrate.apply.outcome import RowStatus
from migrate.errors import Refused
from migrate.model import Commit, Decision, Failure, Level, Scope, Side, TopicPartition
from migrate.plan.totals import totals
from migrate.show.plan_table import verdict
from migrate.show.review import next_commands
from tests.builders import make_check
from tests.fakes import ALIVE, Script
from tests.unit.applyscene import Scene, block, kept, statuses, text, with_checks
from tests.unit.plans import plan, row

P0 = TopicPartition("A.orders", 0)


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
