"""The files beside a plan belong to the plan itself: not to one of its names, nor to digits that others can share."""

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest
from click.testing import Result

from migrate.apply.history import APPLY, ROLLBACK
from migrate.apply.journal import Journal, journal_to_read
from migrate.apply.signatures import add_signature, signature_of, signatures_path
from migrate.errors import MigrateError, Refused
from migrate.plan.companions import is_no_ordinary_file, journal_path, journals_under_any_name
from migrate.plan.file import write_plan
from migrate.plan.plan import Plan
from tests.unit.commands import clusters, run
from tests.unit.plans import plan, row

FORGED = "0123456789ab"
FINGERPRINT, TWIN = FORGED + "1" * 52, FORGED + "2" * 52
NOW = "2026-11-21T02:00:00.000Z"


def journal(path: Path, fingerprint: str) -> Journal:
    return Journal(path, fingerprint, lambda: 1_700_000_000_123)


def begun(path: Path, fingerprint: str, command: str = APPLY) -> Path:
    with journal(path, fingerprint).open(command, {}):
        return path


@pytest.fixture
def made() -> Plan:
    return plan(row("a", target_prior=10))


@pytest.fixture
def plan_file(made: Plan, tmp_path: Path) -> Path:
    path = tmp_path / "cutover.plan"
    write_plan(made, path)
    return path


@pytest.fixture
def link(plan_file: Path, tmp_path: Path) -> Path:
    """A symbolic link to the plan, in another folder and under another name."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = elsewhere / "link.plan"
    path.symlink_to(plan_file)
    return path


def execute(command: str, path: Path, fingerprint: str, folder: Path) -> Result:
    """Run a command that writes, on clusters that nobody answers for."""
    return run(command, str(path), *clusters(folder), "--request-timeout=1", "--approve", fingerprint, "--execute")


# --- links, copies, other names ---------------------------------------------------------------------------


def test_a_link_leads_to_the_journal_the_lock_and_the_signatures_of_the_plan(made, plan_file, link, tmp_path):
    own = journal_path(plan_file, made.fingerprint)
    (tmp_path / "night").symlink_to(tmp_path, target_is_directory=True)
    for through in (link, tmp_path / "night" / "cutover.plan"):
        assert journal_path(through, made.fingerprint) == own
    assert signatures_path(link, made.fingerprint) == signatures_path(plan_file, made.fingerprint)
    with journal(own, made.fingerprint).open(APPLY, {}), pytest.raises(Refused, match="in use"):
        journal(journal_path(link, made.fingerprint), made.fingerprint).open(APPLY, {})


def test_a_spent_plan_is_not_applied_again_through_a_link(made, plan_file, link):
    begun(journal_path(plan_file, made.fingerprint), made.fingerprint, ROLLBACK)
    refused = execute("apply", link, made.fingerprint, link.parent)
    assert refused.exit_code == 3 and "has been rolled back" in refused.stderr
    assert run("sign", str(link), "--by", "Ada").exit_code == 3


@pytest.mark.parametrize("way", [shutil.copy, os.link])
def test_a_second_name_in_the_same_folder_finds_what_was_done_and_writes_nothing(made, plan_file, tmp_path, way):
    second = tmp_path / "second.plan"
    way(plan_file, second)
    own = begun(journal_path(plan_file, made.fingerprint), made.fingerprint, ROLLBACK)
    assert journal_to_read(second, made.fingerprint) == own
    for command in ("apply", "rollback"):
        refused = execute(command, second, made.fingerprint, tmp_path)
        assert refused.exit_code == 3 and "Use the plan by its first name: cutover.plan" in refused.stderr
    assert run("sign", str(second), "--by", "Ada").exit_code == 3


def test_two_names_that_begin_at_the_same_time_do_not_both_get_a_journal(made, plan_file, tmp_path):
    """Neither has a journal when they look; whoever writes the first line second is refused, and leaves nothing."""
    second = tmp_path / "second.plan"
    os.link(plan_file, second)
    both = [journal(journal_path(path, made.fingerprint), made.fingerprint) for path in (plan_file, second)]
    with both[0].open(APPLY, {}), pytest.raises(Refused, match="under another file name"):
        both[1].open(APPLY, {})
    assert [log.path.exists() for log in both] == [True, False]


def test_a_rollback_goes_by_the_journal_of_its_own_name_where_the_plan_has_two(made, plan_file, tmp_path):
    second = tmp_path / "second.plan"
    shutil.copy(plan_file, second)
    own = begun(journal_path(plan_file, made.fingerprint), made.fingerprint)
    shutil.copy(own, journal_path(second, made.fingerprint))
    assert "has two journals here" in execute("apply", second, made.fingerprint, tmp_path).stderr
    assert "NOTHING TO UNDO" in execute("rollback", second, made.fingerprint, tmp_path).stdout


def test_a_plan_is_not_overwritten_while_a_journal_of_it_lies_there_under_any_name(made, plan_file, tmp_path):
    begun(journal_path(plan_file, made.fingerprint), made.fingerprint)
    renamed = plan_file.rename(tmp_path / "wave1.plan")
    with pytest.raises(Refused, match="being the way back"):
        write_plan(plan(row("b")), renamed)


def test_a_journal_that_is_moved_away_while_it_is_opened_is_not_written(tmp_path, monkeypatch):
    log = journal(journal_path(tmp_path / "cutover.plan", FINGERPRINT), FINGERPRINT)
    locking = fcntl.flock

    def moved(descriptor: int, how: int):
        locking(descriptor, how)
        log.path.rename(tmp_path / "away")

    monkeypatch.setattr("migrate.apply.journal.fcntl.flock", moved)
    with pytest.raises(Refused, match="moved or replaced"):
        log.open(APPLY, {})
    assert (tmp_path / "away").read_bytes() == b""


# --- locks and disks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_file_system_without_locks_is_called_that_and_nothing_is_left_on_it(made, plan_file, monkeypatch, code):
    def none(descriptor: int, how: int):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", none)
    log = journal(journal_path(plan_file, made.fingerprint), made.fingerprint)
    with pytest.raises(MigrateError, match="has no locks") as found:
        log.open(APPLY, {})
    assert found.value.exit_code == 1 and "in use" not in str(found.value) and "local disk" in found.value.todo
    assert not log.path.exists()
    with pytest.raises(MigrateError, match="has no locks"):
        add_signature(signatures_path(plan_file, made.fingerprint), signature_of(made.fingerprint, "Ada", "", NOW))


def test_a_run_that_finds_the_journal_there_brings_its_name_to_disk_as_well(tmp_path, monkeypatch):
    log = journal(journal_path(tmp_path / "cutover.plan", FINGERPRINT), FINGERPRINT)
    log.path.touch()  # a run made it, and was killed before anything else
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda d: (synced.append(str(Path(f"/proc/self/fd/{d}").readlink())), sync(d)))
    with log.open(APPLY, {}):
        assert synced[0] == str(tmp_path)


# --- names ------------------------------------------------------------------------------------------------


def test_names_have_32_digits_and_lines_all_of_them_and_two_plans_that_share_12_share_no_file(tmp_path):
    path = tmp_path / "cutover.plan"
    log, signed = journal_path(path, FINGERPRINT), signatures_path(path, FINGERPRINT)
    assert log.name == f"cutover.plan.{FINGERPRINT[:32]}.journal.jsonl"
    assert signed.name == f"cutover.plan.{FINGERPRINT[:32]}.signatures.jsonl"
    assert FINGERPRINT in begun(log, FINGERPRINT).read_text()
    assert not journal_path(path, TWIN).exists() and journals_under_any_name(tmp_path, TWIN) == ()
    assert signed != signatures_path(path, TWIN)


def test_a_pipe_and_a_device_are_no_ordinary_files_also_behind_a_link(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("pipe")
    odd = ("pipe", "link", "/dev/null")
    assert [name for name in (*odd, "file", ".", "nowhere") if is_no_ordinary_file(tmp_path / name)] == [*odd]
