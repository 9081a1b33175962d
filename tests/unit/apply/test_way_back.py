"""The way back in every order of kills, saved undos, second folders and later plans: no group is forgotten in between.

Commands as they are typed, on a cluster in memory.
"""

import itertools
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from migrate.apply.history import APPLY
from migrate.apply.journal import Journal, JournalLost, JournalWriter
from migrate.apply.waves import wave_of
from migrate.cli import rollback
from migrate.clock import SystemClock
from migrate.model import Decision, Failure
from migrate.plan.companions import journal_path
from migrate.plan.file import read_plan, write_plan
from migrate.plan.plan import Plan
from tests.fakes import Crash, Script
from tests.unit.nights import GROUPS, PLANNED, PRIOR, UNDO, Night, ends, first_line, night_on, told
from tests.unit.plans import plan, row


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    return night_on(tmp_path, monkeypatch)


# --- a saved undo and a journal that has gone on ----------------------------------------------------------


def test_a_rollback_that_is_to_be_executed_is_never_only_saved(night, monkeypatch):
    night.applied()
    saved = night.folder / UNDO
    ends(night.execute("rollback", "cutover.plan", "--out", str(saved)), 2, "Give one of the two")
    monkeypatch.setenv("MM2_MIGRATE_OUT", str(saved))
    ends(night.execute("rollback", "cutover.plan"), 2, "MM2_MIGRATE_OUT")
    assert night.all_at(PLANNED) and not saved.exists()


def test_an_undo_that_was_saved_after_a_kill_is_refused_once_the_apply_was_finished(night):
    night.plan()
    night.killed("apply", "cutover.plan", 2)
    ends(night.save_undo(), 0)
    assert len(read_plan(night.folder / UNDO).rows) < len(GROUPS)
    ends(night.execute("apply", "cutover.plan"), 0)
    for ask in (night.run, night.execute):
        ends(ask("apply", UNDO), 3, "is not as it was when this undo was made", "Make the undo anew")
    assert night.all_at(PLANNED)
    ends(night.save_undo("anew.plan"), 0)
    ends(night.execute("apply", "anew.plan"), 0, "RESTORED")
    assert night.all_at(PRIOR)


def test_what_a_journal_gains_without_a_write_does_not_make_an_undo_stale(night):
    """A run that only finds out that all is written, and one that died at once."""
    made = night.plan()
    night.target.crash_after = len(GROUPS)
    with pytest.raises(Crash):
        raise night.execute("apply", "cutover.plan").exception or AssertionError
    ends(night.save_undo(), 0)
    before = len(journal_path(night.folder / "cutover.plan", made.fingerprint).read_bytes())
    ends(night.execute("apply", "cutover.plan"), 0)
    assert len(journal_path(night.folder / "cutover.plan", made.fingerprint).read_bytes()) > before
    ends(night.execute("apply", UNDO), 0, "RESTORED")
    assert night.all_at(PRIOR)


@pytest.mark.parametrize("undone", ["rollback", "undo"])
@pytest.mark.parametrize("again", ["rollback", "undo", "the undo that was saved before"])
def test_undoing_twice_leaves_alone_what_a_later_plan_has_set_in_between(night, undone, again):
    night.applied()
    ends(night.save_undo(), 0)
    if undone == "rollback":
        ends(night.execute("rollback", "cutover.plan"), 0)
    else:
        ends(night.save_undo("another.plan"), 0)
        ends(night.execute("apply", "another.plan"), 0)
    night.plan("later.plan")
    ends(night.execute("apply", "later.plan"), 0)
    if again == "rollback":
        ends(night.execute("rollback", "cutover.plan"), 0, "NOTHING")
    elif again == "undo":
        ends(night.save_undo("second.plan"), 0, "NOTHING TO UNDO")
        assert not (night.folder / "second.plan").exists()
    else:
        ends(night.execute("apply", UNDO), 3, "Make the undo anew")
    assert night.all_at(PLANNED)


def test_what_a_killed_undo_plan_has_left_a_rollback_finishes_and_show_counts_all_of_it_as_undone(night):
    night.applied()
    ends(night.save_undo(), 0)
    night.target.script("alter", "g07", *[Script(Failure("GROUP_AUTHORIZATION_FAILED", "no"))] * 9)
    ends(night.execute("apply", UNDO), 4)
    shown = first_line(night, "show")
    assert shown.startswith("PARTLY ROLLED BACK: 11 restored, 1 not-restored; this plan is SPENT")
    assert "Finish the rollback that has begun" in shown
    night.target.scripts.clear()
    ends(night.execute("rollback", "cutover.plan"), 0)
    assert night.all_at(PRIOR)
    path = night.folder / "cutover.plan"
    assert set(wave_of(path, read_plan(path)).groups.values()) == {"undone"}
    ends(night.execute("apply", UNDO), 3, "is not as it was")


def test_a_rollback_after_an_undo_plan_whose_journal_is_gone_does_not_guess_what_that_restored(night):
    night.applied()
    ends(night.save_undo(), 0)
    ends(night.execute("apply", UNDO), 0)
    journal_path(night.folder / UNDO, read_plan(night.folder / UNDO).fingerprint).unlink()
    ends(night.execute("rollback", "cutover.plan"), 3, "whose journal is not in")


def test_a_rollback_that_was_read_before_an_apply_went_on_writes_nothing(night, monkeypatch):
    """The apply goes on while the rollback still starts: its undo is of half of what is there."""
    night.plan()
    night.killed("apply", "cutover.plan", 2)
    make: Callable[..., Plan] = rollback.undo_plan

    def slowly(*arguments: object) -> Plan:
        made = make(*arguments)
        monkeypatch.setattr(rollback, "undo_plan", make)
        ends(night.execute("apply", "cutover.plan"), 0)
        return made

    monkeypatch.setattr(rollback, "undo_plan", slowly)
    ends(night.execute("rollback", "cutover.plan"), 3, "is not as it was when this undo was made")
    assert night.all_at(PLANNED)
    ends(night.execute("rollback", "cutover.plan"), 0)
    assert night.all_at(PRIOR)


def test_no_undo_is_saved_of_a_plan_that_is_being_applied(night):
    made = night.plan()
    log = Journal(journal_path(night.folder / "cutover.plan", made.fingerprint), made.fingerprint, lambda: 0)
    with log.open(APPLY, {}):
        ends(night.save_undo(), 3, "in use")


def test_while_an_undo_is_applied_nobody_else_works_on_the_plan_that_it_undoes(night):
    night.applied()
    ends(night.save_undo(), 0)
    others: list[Result] = []

    def meanwhile(call):
        if call == "alter":
            night.target.on_call = lambda call: None
            others.append(night.execute("rollback", "cutover.plan"))

    night.target.on_call = meanwhile
    ends(night.execute("apply", UNDO), 0)
    ends(others[0], 3, "in use")


def test_an_undo_of_another_folders_journal_is_refused(night):
    """The apply was killed here and finished there: the undo of the half here is no undo beside the journal there."""
    night.plan()
    other = night.elsewhere()
    night.killed("apply", "cutover.plan", 2)
    ends(night.execute("apply", "cutover.plan", folder=other), 0)
    ends(night.save_undo(), 4)
    shutil.copy(night.folder / UNDO, other)
    ends(night.execute("apply", UNDO, folder=other), 3, "or is another one")


# --- some groups alone ------------------------------------------------------------------------------------


def test_one_group_is_taken_back_alone_and_no_apply_sets_it_again_and_the_rest_goes_back_later(night):
    night.plan()
    ends(night.execute("apply", "cutover.plan"), 0, "APPLIED")
    dry = night.run("rollback", "cutover.plan", "--group", "g03")
    ends(dry, 0, "DRY RUN: 1 offset of 1 group", "--group g03")
    assert night.all_at(PLANNED)
    ends(
        night.execute("rollback", "cutover.plan", "--group", "g03"),
        0,
        "RESTORED: 1 offset",
        "the rest of the plan stays as it is",
    )
    assert night.at() == {**dict.fromkeys(GROUPS, PLANNED), "g03": PRIOR}
    ends(night.execute("apply", "cutover.plan"), 3, "Rolled back, each alone: g03", "1 rolled back")
    ends(night.execute("apply", "cutover.plan", "--allow-partial"), 4, "11 done already")
    ends(night.execute("rollback", "cutover.plan", "--group", "g03"), 0, "NOTHING TO UNDO", "1 group was restored")
    assert night.at()["g03"] == PRIOR
    night.target.commit("g03", "A.orders", 0, 5)  # a later plan's: a rollback of the rest leaves it where it is
    ends(night.execute("rollback", "cutover.plan", "--moved", "restore"), 0, "RESTORED: 11 offsets are as planned")
    assert night.at() == {**dict.fromkeys(GROUPS, PRIOR), "g03": 5}
    ends(night.execute("apply", "cutover.plan"), 3, "has been rolled back")


def test_an_undo_that_was_applied_after_one_group_was_taken_back_is_told_as_far_as_its_journal_is_there(night):
    night.applied()
    ends(night.execute("rollback", "cutover.plan", "--group", "g03"), 0)
    ends(night.save_undo(), 0)
    ends(night.execute("apply", UNDO), 0, "RESTORED: 11 offsets")
    assert night.all_at(PRIOR)
    assert first_line(night, "show").startswith("ROLLED BACK: 12 offsets restored, read back; this plan is SPENT")
    assert "has been rolled back" in told(night.run("apply", "cutover.plan"))
    (journal,) = night.folder.glob(f"{UNDO}.*.journal.jsonl")
    journal.rename(night.folder.parent / journal.name)
    assert first_line(night, "show").startswith("SPENT: its undo")
    assert "a rollback of it has begun" in told(night.run("apply", "cutover.plan"))


def test_a_group_that_no_plan_has_and_an_undo_plan_of_some_groups_are_wrong_usage(night):
    night.applied()
    ends(night.run("rollback", "cutover.plan", "--group", "typo"), 2, "matches none of this plan's 12 groups")
    both = night.run("rollback", "cutover.plan", "--group", "g03", "--out", str(night.folder / UNDO))
    ends(both, 2, "--out saves the undo of the whole plan")


# --- two folders ------------------------------------------------------------------------------------------


def test_a_rollback_names_what_a_copy_elsewhere_has_written_and_is_not_done(night):
    night.plan()
    other = night.elsewhere()
    night.killed("apply", "cutover.plan", 2)
    ends(night.execute("apply", "cutover.plan", folder=other), 0, "APPLIED")
    here = [g for g in GROUPS if g in night_journal(night)]
    assert 0 < len(here) < len(GROUPS)
    left = [g for g in GROUPS if g not in here]
    dry = night.run("rollback", "cutover.plan")
    ends(dry, 4, f"NOT ALL OF IT: {len(left)} offsets of {len(left)} groups are as planned")
    done = night.execute("rollback", "cutover.plan")
    ends(done, 4, "this journal did not write them", f"{left[0]} A.orders:0: at {PLANNED}", "Roll back there too")
    assert [g for g, offset in night.at().items() if offset == PLANNED] == left
    ends(night.execute("rollback", "cutover.plan", folder=other), 0, "RESTORED")
    assert night.all_at(PRIOR)
    ends(night.execute("rollback", "cutover.plan"), 0, "NOTHING TO UNDO")


def test_groups_that_cannot_be_looked_at_are_not_taken_for_untouched(night):
    night.plan()
    night.killed("apply", "cutover.plan", 2)
    denied = Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")
    night.target.script("commits", "g11", *[Script(denied)] * 99)
    ends(night.execute("rollback", "cutover.plan"), 4, "NOT LOOKED AT: 1 group", "g11: GROUP_AUTHORIZATION_FAILED")


def test_a_signal_after_the_last_write_does_not_hide_what_was_restored(night):
    night.plan()
    night.killed("apply", "cutover.plan", 2)
    asked: list[str] = []

    def interrupt(call):
        asked.append(call)
        if call == "facts" and "alter" in asked:
            os.kill(os.getpid(), signal.SIGINT)

    night.target.on_call = interrupt
    ends(night.execute("rollback", "cutover.plan"), 0, "RESTORED: 5 offsets")
    assert asked.count("facts") == 2


def night_journal(night: Night) -> frozenset[str]:
    """The groups that the journal here says were, or may have been, written."""
    path = night.folder / "cutover.plan"
    fingerprint = read_plan(path).fingerprint
    return frozenset(Journal(journal_path(path, fingerprint), fingerprint, lambda: 0).read().applied)


@pytest.mark.parametrize("runs", [1, 2])
def test_what_the_target_does_not_show_was_not_removed(night, runs):
    """Brokers leave commits on a topic without DESCRIBE out of their answer, and the topic out of every listing."""
    night.target.offsets.clear()
    night.plan(prior=None)
    ends(night.execute("apply", "cutover.plan"), 0)
    held, ranges = dict(night.target.offsets), dict(night.target.ranges)
    night.target.offsets.clear()
    night.target.ranges.clear()
    for _ in range(runs):
        ends(night.execute("rollback", "cutover.plan"), 3, "deleted, or the principal lacks DESCRIBE on it")
    night.target.offsets.update(held)
    night.target.ranges.update(ranges)
    assert night.all_at(PLANNED)
    ends(night.execute("rollback", "cutover.plan"), 0, "RESTORED")
    assert night.all_at(None)
    # Once they were removed, and read back, nobody needs the topic any more.
    night.target.ranges.clear()
    ends(night.execute("rollback", "cutover.plan"), 0)


# --- what was restored, and what another plan holds ---------------------------------------------------------


def test_a_group_that_a_rollback_names_is_spent_also_where_apply_had_not_reached_it(night):
    night.plan()
    night.killed("apply", "cutover.plan", 4)
    ends(night.execute("rollback", "cutover.plan", "--group", "g0[08]"), 0, "RESTORED")
    ends(night.execute("rollback", "cutover.plan", "--group", "g10"), 0, "no apply of it sets them any more")
    ends(night.execute("apply", "cutover.plan", "--allow-partial"), 4)
    assert night.at() == {**dict.fromkeys(GROUPS, PLANNED), **dict.fromkeys(["g00", "g08", "g10"], PRIOR)}


def test_a_restoring_that_was_denied_is_not_called_a_rollback(night):
    night.applied()
    night.target.script("alter", "g03", Script(Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")))
    ends(night.execute("rollback", "cutover.plan", "--group", "g03"), 1, "FAILED: no offset was restored")
    assert "ROLLED BACK" not in first_line(night, "show")


def later_plan_that_keeps(night: Night):
    rows = (
        row(
            group, target_prior=PLANNED, decision=Decision.KEEP, reason="already-there", source_log_start=None,
            source_log_end=None,
        )
        for group in GROUPS[:4]
    )  # fmt: skip
    write_plan(plan(*rows, source_down=True, source_cluster_id="", created_at_ms=99), night.folder / "later.plan")
    ends(night.execute("apply", "later.plan"), 0)


def test_what_another_plan_has_found_right_is_not_taken_from_under_it(night):
    night.applied()
    later_plan_that_keeps(night)
    ends(night.execute("rollback", "cutover.plan"), 3, "kept-by-a-later-plan", "--moved restore takes it back")
    assert night.all_at(PLANNED)
    ends(night.execute("rollback", "cutover.plan", "--allow-partial"), 4)
    assert night.at() == {**dict.fromkeys(GROUPS, PRIOR), **dict.fromkeys(GROUPS[:4], PLANNED)}
    ends(night.execute("rollback", "cutover.plan", "--moved", "restore"), 0)
    assert night.all_at(PRIOR)


def test_an_undo_that_was_saved_before_another_plan_found_the_offsets_right_is_refused_until_that_is_rolled_back(night):
    night.applied()
    ends(night.save_undo(), 0)
    later_plan_that_keeps(night)
    ends(night.execute("apply", UNDO), 3, "4 groups that this undo would take back are held by another plan")
    assert night.all_at(PLANNED)
    ends(night.execute("rollback", "later.plan"), 0, "NOTHING TO UNDO")
    ends(night.execute("rollback", "cutover.plan"), 0, "RESTORED")
    assert night.all_at(PRIOR)


def second_plan(night: Night, prior: int, to: int):
    """A plan of all groups, made later; the journals' clock is the machine's."""
    rows = (
        row(group, target_prior=prior, target_offset=to, source_log_start=None, source_log_end=None) for group in GROUPS
    )
    made = plan(*rows, source_down=True, source_cluster_id="", created_at_ms=77)
    write_plan(made, night.folder / "second.plan")


@pytest.mark.parametrize("words", [(), ("--allow-partial",), ("--group", "g0.*")])
def test_a_write_in_doubt_is_taken_back_to_what_an_earlier_plan_holds(night, words):
    night.applied()
    second_plan(night, PLANNED, 40)
    night.killed("apply", "second.plan", 3)
    ends(night.execute("rollback", "second.plan", *words), 0, "RESTORED")
    assert night.all_at(PLANNED)


def test_of_two_plans_that_set_the_same_offset_the_later_one_can_be_rolled_back(night, monkeypatch):
    now, ticks = SystemClock.now_ms, itertools.count(0, 1000)
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: now(self) + next(ticks))
    night.applied()
    for group in GROUPS:
        night.target.commit(group, "A.orders", 0, 80)
    second_plan(night, 80, PLANNED)
    ends(night.execute("apply", "second.plan"), 0)
    ends(night.execute("rollback", "cutover.plan"), 3, "kept-by-a-later-plan")
    ends(night.execute("rollback", "second.plan"), 0, "RESTORED")
    assert night.all_at(80)


def test_what_show_says_to_type_after_some_groups_went_back_alone_takes_up_the_rest(night):
    night.plan()
    night.killed("apply", "cutover.plan", 4)
    ends(night.execute("rollback", "cutover.plan", "--group", "g00"), 0)
    assert "--execute --allow-partial" in first_line(night, "show")


def test_a_disk_that_is_full_when_there_is_nothing_to_undo_is_a_clear_error(night, monkeypatch):
    night.applied()
    later_plan_that_keeps(night)

    def full(self: JournalWriter, exit_code: int, counts: object):
        raise JournalLost("the journal cannot be written any more (No space left on device)")

    monkeypatch.setattr(JournalWriter, "end", full)
    ends(night.execute("rollback", "later.plan"), 1, "Nothing was written to the target", "Make room")
