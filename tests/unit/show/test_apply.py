"""Results of writing: the verdict, each row, what a rollback cannot take back, and the command that comes next."""

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.apply.outcome import RowStatus
from migrate.apply.undo import Elsewhere
from migrate.model import Failure, Level
from migrate.row_table import PlanRows
from migrate.show.apply import NAMED, apply_lines, deleted_whole_lines, elsewhere_lines
from migrate.show.next_steps import Typed
from tests.builders import make_check, make_row
from tests.fakes import ALIVE, Script
from tests.unit.applyscene import Scene, block, three_groups, with_checks
from tests.unit.plans import plan, row


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return three_groups(tmp_path)


def said(result, command="apply", options=(), to_sign=""):
    return "\n".join(apply_lines(result, Typed(command, "my plan", options, to_sign), "f" * 64, 120, False))


def test_a_dry_run_ends_with_the_command_that_writes_or_where_the_plan_is_unsigned_with_how_to_sign(scene):
    told = said(scene.apply(execute=False), options=("--target", "a b"))
    assert told.startswith("DRY RUN: ")
    assert told.endswith(f"  mm2-migrate apply 'my plan' --target 'a b' --approve {'f' * 64} --execute")
    told = said(scene.apply(execute=False), to_sign="Sign with: mm2-migrate sign 'my plan' --by NAME")
    assert told.endswith("Nothing was written. Sign with: mm2-migrate sign 'my plan' --by NAME")
    assert "--execute" not in told


def test_a_refused_dry_run_ends_with_another_dry_run_and_that_one_with_the_command_that_writes(scene):
    scene.source.commit("b", "orders", 0, 121)
    refused = said(scene.apply(execute=False), to_sign="Sign.")
    assert refused.endswith("mm2-migrate apply 'my plan' --allow-partial") and "Only a new plan helps" in refused
    partly = said(scene.apply(execute=False, allow_partial=True))
    assert partly.endswith(f"mm2-migrate apply 'my plan' --approve {'f' * 64} --execute --allow-partial")


def test_a_large_dry_run_says_that_the_plan_has_the_rows_and_a_large_apply_that_the_journal_has(scene, monkeypatch):
    monkeypatch.setattr("migrate.show.apply.ROWS_SHOWN", 0)
    dry, done = (" ".join(said(scene.apply(execute=execute)).split()) for execute in (False, True))
    assert "mm2-migrate show PLAN has all" in dry and "journal beside the plan has all" not in dry
    assert "the journal beside the plan has all" in done


def test_what_was_written_is_a_row_each_and_verified_next_and_one_cause_of_many_rows_is_said_once(scene):
    result = scene.apply()
    told = said(result)
    assert told.startswith("APPLIED: ") and told.endswith("Next: mm2-migrate verify 'my plan'")
    assert all(row.key[0] in told for row in result.rows) and "PRIOR-OFFSET" in told
    lost = tuple(row._replace(status=RowStatus.UNKNOWN, detail="no certain answer (B)") for row in result.rows)
    told = said(replace(result, rows=lost, exit_code=4))
    assert told.count("no certain answer") == 1
    assert f" and {len(lost) - 1} more rows: no certain answer (B)" in told


LOADING = [Script(Failure("COORDINATOR_LOAD_IN_PROGRESS", "later"))] * 9
TROUBLE = {
    "a commit has moved": lambda target: target.commit("b", "A.orders", 0, 75),
    "another cluster": lambda target: setattr(target, "cluster_id", "other"),
    "consumers are alive": lambda target: target.states.update(b=ALIVE),
    "the coordinator loads": lambda target: target.script("commits", "b", *LOADING),
}


@pytest.mark.parametrize("options", [{"execute": False}, {"execute": True, "allow_partial": True}])
@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_refused_rollback_says_why_and_never_to_plan_anew(scene, trouble, options):
    scene.apply()
    TROUBLE[trouble](scene.target)
    told = " ".join(said(scene.rollback(**options), "rollback").split())
    moved = trouble == "a commit has moved"
    assert ("--moved restore" in told) == ("plan --failback" in told) == moved and ("moved since" in told) <= moved
    assert moved or "then run the same command again" in told
    assert "new plan" not in told and "plan anew" not in told and "plan again" not in told


def test_only_a_new_plan_is_named_where_a_commit_has_moved_and_the_same_command_where_it_may_help(scene):
    scene.source.commit("b", "orders", 0, 121)
    told = " ".join(said(scene.apply(execute=False)).split())
    assert "Only a new plan helps" in told and "same command" not in told
    scene.source.commit("b", "orders", 0, 120)
    scene.source.states["b"] = ALIVE
    told = " ".join(said(scene.apply(execute=False)).split())
    assert "then run the same command again" in told and "new plan" not in told
    scene.source.down = True
    told = said(scene.apply(execute=False))
    assert "not compared" in told and "changed since the plan" not in told


def test_a_plan_of_living_groups_offers_no_writing(scene):
    scene.plan = with_checks(scene.plan, block("source-group-stopped", "gone"))
    told = said(scene.apply(execute=False))
    assert "--execute" not in told and "then make a new plan" in " ".join(told.split())


def test_a_plan_without_rows_is_nothing_to_do_and_never_as_planned(tmp_path):
    for execute in (False, True):
        told = said(Scene(plan(), tmp_path).apply(execute=execute))
        assert told.startswith("NOTHING TO DO: the plan has no row") and "as planned" not in told


def test_what_a_rollback_cannot_take_back_is_counted_and_groups_that_could_not_be_read_are_named():
    many = Elsewhere(rows=tuple(make_row(f"g{i}") for i in range(NAMED + 3)))
    unread = Elsewhere(unread=("a", "b"), why="it timed out")
    told, named, nothing = ("\n".join(elsewhere_lines(each, 100, False)) for each in (many, unread, Elsewhere()))
    assert f"{NAMED + 3} offsets of {NAMED + 3} groups are as planned" in told and "and 3 more" in told
    assert "NOT LOOKED AT: 2 groups" in named and "a, b: it timed out" in named and nothing == ""


@pytest.mark.parametrize(("level", "said"), [
    (None, "is not known"), (Level.WARN, "2 outside the flow are there"), (Level.NOT_VISIBLE, "2 outside the flow"),
    (Level.PASS, ""),
])  # fmt: skip
def test_a_rollback_that_deletes_groups_says_so_unless_the_target_showed_all_its_topics(tmp_path, level, said):
    check = make_check("topics-visible", "B", level=level, seen="2 outside the flow are there and not shown to us")
    scene = Scene(plan(row("a"), row("b", target_prior=10), checks=(check,) if level else ()), tmp_path)
    scene.apply()
    undo = scene.undo()
    told = " ".join(" ".join(deleted_whole_lines(scene.plan, undo, 100, False)).split())
    assert told.startswith("MAY DELETE MORE: 1 group that had no offset on B") == bool(said) and said in told
    dry, done = scene.rollback(execute=False), scene.rollback()
    assert bool(list(deleted_whole_lines(scene.plan, undo, 100, False, dry))) == bool(said)
    after = " ".join(deleted_whole_lines(scene.plan, undo, 100, False, done))
    assert ("was deleted there" in after) == bool(said) and "granted on them first" not in after
    assert not list(deleted_whole_lines(scene.plan, undo, 100, False, scene.rollback())), "nothing is left to delete"
    back_alone = replace(undo, rows=PlanRows.of(r for r in undo.rows if r.group == "b"))
    assert not list(deleted_whole_lines(scene.plan, back_alone, 100, False))
