"""The files beside a plan belong to the plan itself: not to one of its names, nor to digits that others can share."""

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from migrate.apply.history import APPLY, ROLLBACK
from migrate.apply.journal import Journal, journal_to_read
from migrate.apply.signatures import add_signature, signature_of, signatures_path
from migrate.errors import MigrateError, Refused
from migrate.plan.companions import journal_path
from migrate.plan.file import write_plan
from tests.unit.commands import clusters, run
from tests.unit.plans import plan, row

MADE = plan(row("a", target_prior=10))


def journal(plan_path, fingerprint=MADE.fingerprint):
    return Journal(journal_path(plan_path, fingerprint), fingerprint, lambda: 1_700_000_000_123)


def begun(plan_path, command=APPLY, fingerprint=MADE.fingerprint):
    log = journal(plan_path, fingerprint)
    with log.open(command, {}):
        return log.path


@pytest.fixture
def plan_file(tmp_path):
    write_plan(MADE, tmp_path / "cutover.plan")
    return tmp_path / "cutover.plan"


@pytest.fixture
def link(plan_file, tmp_path):
    """A symbolic link to the plan, in another folder and under another name."""
    path = tmp_path / "elsewhere" / "link.plan"
    path.parent.mkdir()
    path.symlink_to(plan_file)
    return path


def execute(command, path):
    """Run a command that writes, on clusters that nobody answers for."""
    return run(
        command, str(path), *clusters(path.parent), "--request-timeout=1", "--approve", MADE.fingerprint, "--execute"
    )


def test_a_link_leads_to_the_journal_the_lock_and_the_signatures_of_the_plan(plan_file, link, tmp_path):
    (tmp_path / "night").symlink_to(tmp_path, target_is_directory=True)
    for through in (link, tmp_path / "night" / "cutover.plan"):
        assert journal(through).path == journal(plan_file).path
    assert signatures_path(link, MADE.fingerprint) == signatures_path(plan_file, MADE.fingerprint)
    with journal(plan_file).open(APPLY, {}), pytest.raises(Refused, match="in use"):
        journal(link).open(APPLY, {})


@pytest.mark.parametrize("way", [shutil.copy, os.link])
def test_a_second_name_in_the_same_folder_finds_what_was_done_and_writes_nothing_nor_does_a_link(plan_file, link, way):
    second = plan_file.with_name("second.plan")
    way(plan_file, second)
    own = begun(plan_file, ROLLBACK)
    assert journal_to_read(second, MADE.fingerprint) == own
    by_first_name = "Use the plan by its first name: cutover.plan"
    for command, path, said in (
        ("apply", second, by_first_name), ("rollback", second, by_first_name), ("apply", link, "has been rolled back"),
    ):  # fmt: skip
        refused = execute(command, path)
        assert refused.exit_code == 3 and said in refused.stderr
        assert run("sign", str(path), "--by", "Ada").exit_code == 3


def test_two_names_that_begin_at_the_same_time_do_not_both_get_a_journal(plan_file, tmp_path):
    """Neither has a journal when they look; whoever writes the first line second is refused, and leaves nothing."""
    second = tmp_path / "second.plan"
    os.link(plan_file, second)
    both = journal(plan_file), journal(second)
    with both[0].open(APPLY, {}), pytest.raises(Refused, match="under another file name"):
        both[1].open(APPLY, {})
    assert [log.path.exists() for log in both] == [True, False]


def test_a_rollback_goes_by_the_journal_of_its_own_name_and_no_plan_of_any_name_is_written_over(plan_file, tmp_path):
    second = tmp_path / "second.plan"
    shutil.copy(plan_file, second)
    shutil.copy(begun(plan_file), journal(second).path)
    assert "has two journals here" in execute("apply", second).stderr
    assert "NOTHING TO UNDO" in execute("rollback", second).stdout
    with pytest.raises(Refused, match="being the way back"):
        write_plan(plan(row("b")), plan_file.rename(tmp_path / "wave1.plan"))


def test_a_journal_that_is_moved_away_while_it_is_opened_is_not_written(plan_file, tmp_path, monkeypatch):
    log, locking = journal(plan_file), fcntl.flock

    def moved(descriptor, how):
        locking(descriptor, how)
        log.path.rename(tmp_path / "away")

    monkeypatch.setattr("migrate.apply.journal.fcntl.flock", moved)
    with pytest.raises(Refused, match="moved or replaced"):
        log.open(APPLY, {})
    assert (tmp_path / "away").read_bytes() == b""


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_file_system_without_locks_is_called_that_and_nothing_is_left_on_it(plan_file, monkeypatch, code):
    def none(descriptor, how):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(MigrateError, match="has no locks") as found:
        journal(plan_file).open(APPLY, {})
    assert found.value.exit_code == 1 and "in use" not in str(found.value) and "local disk" in found.value.todo
    assert not journal(plan_file).path.exists()
    signature = signature_of(MADE.fingerprint, "Ada", "", "2026-11-21T02:00:00.000Z")
    with pytest.raises(MigrateError, match="has no locks"):
        add_signature(signatures_path(plan_file, MADE.fingerprint), signature)


def test_a_run_that_finds_the_journal_there_brings_its_name_to_disk_as_well(tmp_path, monkeypatch):
    log = journal(tmp_path / "cutover.plan")
    log.path.touch()  # a run made it, and was killed before anything else
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda d: (synced.append(str(Path(f"/proc/self/fd/{d}").readlink())), sync(d)))
    with log.open(APPLY, {}):
        assert synced[0] == str(tmp_path)
