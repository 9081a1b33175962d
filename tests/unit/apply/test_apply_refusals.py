"""What apply reports although a disk is full or a client breaks, and once passed over in silence."""

import errno
import os

import pytest

from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import apply_plan
from migrate.apply.journal import Journal, JournalLost, JournalWriter
from migrate.apply.outcome import RowStatus
from migrate.errors import MigrateError, Refused
from migrate.model import Commit, Row, TopicPartition
from migrate.plan.file import refuse_replaced, write_plan
from tests.fakes import FakeCluster, NoProgress, Script
from tests.unit.answers import DENIED, MOVED
from tests.unit.applyscene import Scene, block, kept, statuses, text, three_groups, with_checks
from tests.unit.plans import plan, row

P0 = TopicPartition("A.orders", 0)


def full_disk(monkeypatch: pytest.MonkeyPatch, event: str):
    """Let the disk be full from the first event of that kind on, or at the `sync` that follows it."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    write, sync, came = JournalWriter.write, os.fsync, []

    def writing(self: JournalWriter, name: str, **fields: object):
        if name == event.removesuffix("-sync"):
            came.append(name)
        if came and not event.endswith("-sync"):
            raise JournalLost(f"the journal cannot be written any more ({full.strerror})")
        write(self, name, **fields)

    def syncing(descriptor: int):
        if came:
            raise full
        sync(descriptor)

    monkeypatch.setattr(JournalWriter, "write", writing)
    monkeypatch.setattr("migrate.apply.journal.os.fsync", syncing)


@pytest.mark.parametrize(
    ("event", "missing"),
    [
        ("outcome", "what the cluster answered from then on"),
        ("outcome-sync", "what the cluster answered from then on"),
        ("readback", "what was read back, and how this run ended"),
        ("readback-sync", "what was read back, and how this run ended"),
        ("end", "how this run ended"),
        ("end-sync", "how this run ended"),
    ],
)
def test_a_disk_that_fills_after_the_last_write_loses_no_result(tmp_path, monkeypatch, event, missing):
    scene = three_groups(tmp_path)
    with monkeypatch.context() as patch:
        full_disk(patch, event)
        result = scene.apply()
    assert result.exit_code == 4 and set(statuses(result).values()) == {RowStatus.SET}
    assert missing in result.journal_gap and "No space left on device" in text(result)
    assert text(result).startswith("APPLIED, BUT THE JOURNAL IS INCOMPLETE: see below\n")
    assert scene.apply().exit_code == 0, "with room again the same command finishes"
    assert scene.rollback().exit_code == 0 and scene.target.held("a") == {("A.orders", 0): 10, ("A.orders", 1): 11}


@pytest.mark.parametrize("event", ["begin", "begin-sync", "backup", "backup-sync"])
def test_a_disk_that_is_full_before_the_first_write_stops_there(tmp_path, monkeypatch, event):
    scene = three_groups(tmp_path)
    with monkeypatch.context() as patch:
        full_disk(patch, event)
        with pytest.raises(MigrateError, match="Nothing was (written|changed)"):
            scene.apply()
    assert scene.target.writes == 0 and scene.apply().exit_code == 0


@pytest.mark.parametrize("event", ["intent", "intent-sync"])
def test_a_disk_that_is_full_at_the_first_intent_is_a_failure_and_not_a_part_of_it_applied(
    tmp_path, monkeypatch, event
):
    scene = three_groups(tmp_path)
    with monkeypatch.context() as patch:
        full_disk(patch, event)
        result = scene.apply()
    assert result.exit_code == 1 and scene.target.writes == 0 and set(statuses(result).values()) == {RowStatus.PLANNED}
    assert text(result).startswith("FAILED: no offset was set") and "No space left on device" in text(result)


@pytest.mark.parametrize(
    ("fails", "status", "said"),
    [(1000, RowStatus.UNKNOWN, "Too many open files"), (1, RowStatus.SET, "APPLIED, AND ENDED EARLY")],
)
def test_a_client_that_can_not_be_started_again_does_not_hide_what_was_written(
    tmp_path, monkeypatch, fails, status, said
):
    scene = Scene(plan(row("a")), tmp_path)
    scene.target.script("alter", "a", Script(MOVED, applied=True))
    renewed, calls = FakeCluster.renewed, []

    def renewing(self: FakeCluster) -> FakeCluster:
        calls.append(1)
        if len(calls) <= fails:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return renewed(self)

    monkeypatch.setattr(FakeCluster, "renewed", renewing)
    result = scene.apply(group_timeout_seconds=0.5)
    assert result.exit_code == 4 and set(statuses(result).values()) == {status}
    assert said in text(result)


@pytest.mark.parametrize("rows", [(), (kept("a"),)])
def test_an_open_block_beside_nothing_to_write_is_a_4_that_names_it_where_it_is_passed_over(
    tmp_path, rows: tuple[Row, ...]
):
    scene = Scene(with_checks(plan(*rows), block("named-groups-exist", "bilings")), tmp_path)
    assert scene.apply().exit_code == 3
    result = scene.apply(allow_partial=True)
    assert result.exit_code == 4 and "bilings" in text(result)


@pytest.mark.parametrize("error", [RuntimeError("bug"), MemoryError()])
def test_whatever_breaks_in_the_reading_at_the_end_the_writes_are_reported(tmp_path, error):
    scene = three_groups(tmp_path)

    def fail():
        raise error

    scene.target.when("commits", fail, once_written=True)
    result = scene.apply(group_timeout_seconds=0.5)
    assert result.exit_code == 4 and set(statuses(result).values()) == {RowStatus.UNKNOWN}
    assert type(error).__name__ in text(result)


def test_what_has_moved_on_since_it_was_read_back_is_not_said_to_be_as_planned(tmp_path):
    scene = Scene(plan(row("a"), row("b")), tmp_path)
    scene.target.script("alter", "b", Script(DENIED))
    assert scene.apply().exit_code == 4
    scene.target.offsets["a"][P0] = Commit(95)
    assert text(scene.apply()).startswith("APPLIED: 1 offset is as planned, read back; 1 has moved on since")
    result = scene.apply()
    assert text(result).startswith("NOTHING LEFT TO DO; 1 offset moved on since") and result.exit_code == 0


@pytest.mark.parametrize("replaced_by", ["another plan", "nothing", "no plan"])
def test_a_plan_file_that_was_replaced_while_it_was_assessed_is_not_applied(tmp_path, replaced_by):
    scene, path = three_groups(tmp_path), tmp_path / "cutover.plan"
    write_plan(scene.plan, path)

    def replace_it(call):
        path.unlink(missing_ok=True)
        if replaced_by == "another plan":
            write_plan(plan(row("z")), path)
        elif replaced_by == "no plan":
            path.write_text("a letter")

    scene.target.on_call = replace_it
    with pytest.raises(Refused, match="while it was being looked at"):
        scene.apply(begun=lambda: refuse_replaced(scene.plan, path))
    assert scene.target.writes == 0 and not scene.journal.read().applied
    scene.target.calm()
    path.unlink(missing_ok=True)
    write_plan(scene.plan, path)
    assert scene.apply(begun=lambda: refuse_replaced(scene.plan, path)).exit_code == 0


def test_an_undo_that_is_not_begun_spends_nothing_and_its_journal_says_how_it_ended(tmp_path):
    scene = three_groups(tmp_path)
    scene.apply()
    undo = scene.undo()
    own = Journal(tmp_path / "undo.journal.jsonl", undo.fingerprint, scene.clock.now_ms)

    def refuse():
        raise Refused("The file was replaced.", "Put it back.")

    options = RunOptions(execute=True, spends=scene.journal, begun=refuse)
    with pytest.raises(Refused):
        apply_plan(undo, ApplyClusters(scene.target), own, scene.clock, NoProgress(), options)
    assert not scene.journal.read().is_spent
    (run,) = own.read().runs
    assert (run.exit_code, bool(run.ended)) == (3, True)
