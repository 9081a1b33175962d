"""The way back in every order of kills, saved undos, second folders and later plans: no group is forgotten in between.

Commands as they are typed, on a cluster in memory.
"""

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from migrate.apply.history import APPLY, SET, GroupTrace, JournalState
from migrate.apply.journal import JournalLost, JournalWriter
from migrate.apply.later_plans import held_by_other_plans
from migrate.apply.runs import PastRun
from migrate.apply.waves import wave_of
from migrate.apply.write import WINDOWS_PER_CHUNK
from migrate.cli import rollback
from migrate.clock import SystemClock
from migrate.model import UNACKNOWLEDGED, Decision, LogRange, TopicPartition
from migrate.plan.file import read_plan, write_plan
from migrate.plan.plan import Plan
from tests.fakes import Script
from tests.unit.answers import DENIED
from tests.unit.nights import GROUPS, PLANNED, PRIOR, UNDO, Night, ends, first_line, night_on, told, verify
from tests.unit.plans import plan, row

STALE = "is not as it was when this undo was made"


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    return night_on(tmp_path, monkeypatch)


@pytest.fixture
def applied(night) -> Night:
    night.applied()
    return night


@pytest.fixture
def half(night) -> Night:
    """An apply that was killed in its first chunk of groups."""
    night.plan()
    night.killed("apply", "cutover.plan", 2)
    return night


def another(night: Night, name: str, groups: list[str], **changes: object):
    """Another plan of some groups, made later; the journals' clock is the machine's."""
    rows = (row(group, source_log_start=None, source_log_end=None, **changes) for group in groups)
    write_plan(plan(*rows, source_down=True, source_cluster_id="", created_at_ms=77), night.folder / name)


def later_plan_that_keeps(night: Night):
    another(night, "later.plan", GROUPS[:4], target_prior=PLANNED, decision=Decision.KEEP, reason="already-there")
    ends(night.execute("apply", "later.plan"), 0)


def test_what_a_killed_undo_plan_has_left_a_rollback_finishes_and_show_counts_all_of_it_as_undone(applied):
    ends(applied.save_undo(), 0)
    applied.target.script("alter", "g07", *[Script(DENIED)] * 9)
    ends(applied.execute("apply", UNDO), 4)
    shown = first_line(applied, "show")
    assert shown.startswith("PARTLY ROLLED BACK: 11 restored, 1 not-restored; this plan is SPENT")
    assert "Finish the rollback that has begun" in shown
    applied.target.scripts.clear()
    ends(applied.execute("rollback", "cutover.plan"), 0)
    assert applied.all_at(PRIOR)
    path = applied.folder / "cutover.plan"
    assert set(wave_of(path, read_plan(path)).groups.values()) == {"undone"}
    ends(applied.execute("apply", UNDO), 3, "is not as it was")


def test_a_rollback_that_was_read_before_an_apply_went_on_writes_nothing(half, monkeypatch):
    """The apply goes on while the rollback still starts: its undo is of half of what is there."""
    make: Callable[..., Plan] = rollback.undo_plan

    def slowly(*arguments: object) -> Plan:
        made = make(*arguments)
        monkeypatch.setattr(rollback, "undo_plan", make)
        ends(half.execute("apply", "cutover.plan"), 0)
        return made

    monkeypatch.setattr(rollback, "undo_plan", slowly)
    ends(half.execute("rollback", "cutover.plan"), 3, STALE)
    assert half.all_at(PLANNED)
    ends(half.execute("rollback", "cutover.plan"), 0)
    assert half.all_at(PRIOR)


# --- some groups alone ------------------------------------------------------------------------------------


def test_one_group_is_taken_back_alone_and_no_apply_sets_it_again_and_the_rest_goes_back_later(applied):
    alone = "rollback", "cutover.plan", "--group", "g03"
    ends(applied.run(*alone), 0, "DRY RUN: 1 offset of 1 group", "--group g03")
    applied.target.script("alter", "g03", Script(DENIED))
    ends(applied.execute(*alone), 1, "FAILED: no offset was restored")
    assert applied.all_at(PLANNED) and "ROLLED BACK" not in first_line(applied, "show")
    ends(applied.execute(*alone), 0, "RESTORED: 1 offset", "the rest of the plan stays as it is")
    assert applied.at() == {**dict.fromkeys(GROUPS, PLANNED), "g03": PRIOR}
    ends(applied.execute("apply", "cutover.plan"), 3, "Rolled back, each alone: g03", "1 rolled back")
    ends(applied.execute("apply", "cutover.plan", "--allow-partial"), 4, "11 done already")
    ends(applied.execute(*alone), 0, "NOTHING TO UNDO", "1 group was restored")
    assert applied.at()["g03"] == PRIOR
    applied.target.commit("g03", "A.orders", 0, 5)  # a later plan's: a rollback of the rest leaves it where it is
    ends(applied.execute("rollback", "cutover.plan", "--moved", "restore"), 0, "RESTORED: 11 offsets are as planned")
    assert applied.at() == {**dict.fromkeys(GROUPS, PRIOR), "g03": 5}
    ends(applied.execute("apply", "cutover.plan"), 3, "has been rolled back")


def test_groups_that_a_rollback_names_are_spent_also_where_apply_had_not_reached_them(night):
    night.plan()
    night.killed("apply", "cutover.plan", 4)
    ends(night.execute("rollback", "cutover.plan", "--group", "g0[08]"), 0, "RESTORED")
    assert "--execute --allow-partial" in first_line(night, "show"), "that takes up the rest"
    ends(night.execute("rollback", "cutover.plan", "--group", "g10"), 0, "no apply of it sets them any more")
    ends(night.execute("apply", "cutover.plan", "--allow-partial"), 4)
    assert night.at() == {**dict.fromkeys(GROUPS, PLANNED), **dict.fromkeys(["g00", "g08", "g10"], PRIOR)}


def test_an_undo_that_was_applied_after_one_group_was_taken_back_is_told_as_far_as_its_journal_is_there(applied):
    ends(applied.execute("rollback", "cutover.plan", "--group", "g03"), 0)
    ends(applied.save_undo(), 0)
    ends(applied.execute("apply", UNDO), 0, "RESTORED: 11 offsets")
    assert applied.all_at(PRIOR)
    assert first_line(applied, "show").startswith("ROLLED BACK: 12 offsets restored, read back; this plan is SPENT")
    assert "has been rolled back" in told(applied.run("apply", "cutover.plan"))
    (journal,) = applied.folder.glob(f"{UNDO}.*.journal.jsonl")
    journal.rename(applied.folder.parent / journal.name)
    assert first_line(applied, "show").startswith("SPENT: its undo")
    assert "a rollback of it has begun" in told(applied.run("apply", "cutover.plan"))
    # What that has restored is not guessed.
    ends(applied.execute("rollback", "cutover.plan"), 3, "whose journal is not in")


def test_options_of_a_rollback_that_contradict_each_other_or_name_no_group_are_wrong_usage(applied, monkeypatch):
    saved = applied.folder / UNDO
    out = "--out", str(saved)
    ends(applied.execute("rollback", "cutover.plan", *out), 2, "Give one of the two")
    ends(applied.run("rollback", "cutover.plan", "--group", "typo"), 2, "matches none of this plan's 12 groups")
    whole = "--out saves the undo of the whole plan"
    ends(applied.run("rollback", "cutover.plan", "--group", "g03", *out), 2, whole)
    monkeypatch.setenv("MM2_MIGRATE_OUT", str(saved))
    ends(applied.execute("rollback", "cutover.plan"), 2, "MM2_MIGRATE_OUT")
    assert applied.all_at(PLANNED) and not saved.exists()


# --- what a journal does not tell -------------------------------------------------------------------------


def test_a_rollback_names_what_a_copy_elsewhere_has_written_and_is_not_done(half):
    other, left = half.elsewhere(), GROUPS[WINDOWS_PER_CHUNK:]
    ends(half.execute("apply", "cutover.plan", folder=other), 0, "APPLIED")
    dry = half.run("rollback", "cutover.plan")
    ends(dry, 4, f"NOT ALL OF IT: {len(left)} offsets of {len(left)} groups are as planned")
    # The undo of the half here is no undo beside the journal there.
    ends(half.save_undo(), 4)
    shutil.copy(half.folder / UNDO, other)
    ends(half.execute("apply", UNDO, folder=other), 3, "or is another one")
    done = half.execute("rollback", "cutover.plan")
    ends(done, 4, "this journal did not write them", f"{left[0]} A.orders:0: at {PLANNED}", "Roll back there too")
    assert [g for g, offset in half.at().items() if offset == PLANNED] == left
    ends(half.execute("rollback", "cutover.plan", folder=other), 0, "RESTORED")
    assert half.all_at(PRIOR)
    ends(half.execute("rollback", "cutover.plan"), 0, "NOTHING TO UNDO")
    ends(half.save_undo("empty.plan"), 0, "NOTHING TO UNDO")
    assert not (half.folder / "empty.plan").exists()


def test_what_the_target_does_not_show_was_not_removed(night):
    """Brokers leave commits on a topic without DESCRIBE out of their answer, and the topic out of every listing."""
    night.target.offsets.clear()
    night.plan(prior=None)
    ends(night.execute("apply", "cutover.plan"), 0)
    held, ranges = dict(night.target.offsets), dict(night.target.ranges)
    night.target.offsets.clear()
    night.target.ranges.clear()
    for _ in range(2):
        ends(night.execute("rollback", "cutover.plan"), 3, "deleted, or the principal lacks DESCRIBE on it")
    night.target.offsets.update(held)
    night.target.ranges.update(ranges)
    assert night.all_at(PLANNED)
    ends(night.execute("rollback", "cutover.plan"), 0, "RESTORED")
    assert night.all_at(None)
    # Once they were removed, and read back, nobody needs the topic any more.
    night.target.ranges.clear()
    ends(night.execute("rollback", "cutover.plan"), 0)


# --- what another plan holds ------------------------------------------------------------------------------


def test_what_another_plan_has_found_right_is_not_taken_from_under_it(applied):
    later_plan_that_keeps(applied)
    ends(applied.execute("rollback", "cutover.plan"), 3, "kept-by-a-later-plan", "--moved restore takes it back")
    assert applied.all_at(PLANNED)
    ends(applied.execute("rollback", "cutover.plan", "--allow-partial"), 4)
    assert applied.at() == {**dict.fromkeys(GROUPS, PRIOR), **dict.fromkeys(GROUPS[:4], PLANNED)}
    ends(applied.execute("rollback", "cutover.plan", "--moved", "restore"), 0)
    assert applied.all_at(PRIOR)


def test_an_undo_that_was_saved_before_another_plan_found_the_offsets_right_is_refused_until_that_is_rolled_back(
    applied, monkeypatch
):
    ends(applied.save_undo(), 0)
    later_plan_that_keeps(applied)
    ends(applied.execute("apply", UNDO), 3, "4 groups that this undo would take back are held by another plan")
    assert applied.all_at(PLANNED)

    def full(self: JournalWriter, exit_code: int, counts: object):
        raise JournalLost("the journal cannot be written any more (No space left on device)")

    with monkeypatch.context() as patch:
        patch.setattr(JournalWriter, "end", full)
        ends(applied.execute("rollback", "later.plan"), 1, "Nothing was written to the target", "Make room")
    ends(applied.execute("rollback", "later.plan"), 0, "NOTHING TO UNDO")
    ends(applied.execute("rollback", "cutover.plan"), 0, "RESTORED")
    assert applied.all_at(PRIOR)


def test_of_two_plans_that_set_the_same_offset_the_later_one_can_be_rolled_back(night, monkeypatch):
    now, ticks = SystemClock.now_ms, itertools.count(0, 1000)
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: now(self) + next(ticks))
    night.applied()
    for group in GROUPS:
        night.target.commit(group, "A.orders", 0, 80)
    another(night, "second.plan", GROUPS, target_prior=80, target_offset=PLANNED)
    ends(night.execute("apply", "second.plan"), 0)
    ends(night.execute("rollback", "cutover.plan"), 3, "kept-by-a-later-plan")
    ends(night.execute("rollback", "second.plan"), 0, "RESTORED")
    assert night.all_at(80)


@pytest.mark.parametrize(
    ("acknowledged", "holds", "read_back", "is_held"),
    [
        (True, 60, True, True),
        (True, 77, True, False),
        (False, 60, True, True),
        # Nobody knows what is there: the undo writes over whatever it is.
        (False, 77, True, True),
        (False, 10, True, False),
        (True, 60, None, False),
    ],
)
def test_another_plan_holds_what_an_undo_expects_there_and_where_that_writes_unseen_all_but_what_it_brings_back(
    acknowledged, holds, read_back, is_held
):
    reason = "restored" if acknowledged else UNACKNOWLEDGED
    undo = plan(row("g", offset=10, target_prior=60, reason=reason), kind="undo")
    place = TopicPartition("A.orders", 0)
    trace = GroupTrace({place: holds}, {place: SET}, read_back)
    later = JournalState(applied={"g": trace}, runs=(PastRun(APPLY, "2026-11-30T02:00:00.000Z", ""),))
    others = [(plan(row("g", offset=holds)), later)]
    assert bool(held_by_other_plans(undo, JournalState(), others)) is is_held


# --- another name on the target ---------------------------------------------------------------------------


def test_a_group_is_written_told_kept_in_the_journal_and_taken_back_under_its_name_on_the_target(night):
    def held() -> list[dict[int, int]]:
        return [{p: offset for (_, p), offset in night.target.held(group).items()} for group in ("g00", "g00-eu", "h")]

    def execute(command: str, *words: str):
        ends(night.execute(command, "cutover.plan"), 0, "g00 -> g00-eu", *words)

    night.plan()
    no_log = {"source_log_start": None, "source_log_end": None}
    renamed = no_log | {"target_group": "g00-eu"}
    rows = row("g00", target_prior=10, **renamed), row("g00", partition=1, **renamed), row("h", **no_log)
    write_plan(plan(*rows, source_down=True, source_cluster_id=""), night.folder / "cutover.plan")
    night.target.ranges |= {r.target_partition: LogRange(0, 100) for r in rows}
    night.target.commit("g00", "A.orders", 0, 77)
    night.target.commit("g00-eu", "A.orders", 0, 10)
    before = held()
    execute("apply")
    assert held() == [{0: 77}, {0: 60, 1: 60}, {0: 60}]
    (journal,) = night.folder.glob("*.journal.jsonl")
    events = map(json.loads, journal.read_text().splitlines())
    named = {(event["event"], event["group"], event.get("target_group")) for event in events if "group" in event}
    kinds = ("backup", "intent", "outcome", "readback")
    assert named == {(kind, *names) for kind in kinds for names in (("g00", "g00-eu"), ("h", None))}
    document = json.loads(verify(night, "--format", "json").stdout)
    assert {offset["group"]: offset["target_group"] for offset in document["offsets"]} == {"g00": "g00-eu", "h": ""}
    night.target.commit("g00-eu", "A.orders", 0, 20)
    ends(verify(night), 1, "g00 -> g00-eu A.orders:0")
    night.target.commit("g00-eu", "A.orders", 0, 60)
    execute("rollback")
    assert held() == before
