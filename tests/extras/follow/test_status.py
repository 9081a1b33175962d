"""The status file: replaced as a whole, and no reason to end when it cannot be."""

import os

import pytest

from migrate.errors import MigrateError
from migrate.extras.follow.passes import read_status, status_path, write_status
from tests.unit.journals import FINGERPRINT


@pytest.fixture
def path(tmp_path):
    return status_path(tmp_path / "follow.plan", FINGERPRINT)


def test_it_lies_beside_the_mandate_and_what_was_written_last_is_read(path):
    assert path.name == f"follow.plan.{FINGERPRINT[:32]}.status.json" and read_status(path) is None
    for number in (1, 2):
        assert write_status(path, {"fingerprint": FINGERPRINT, "pass": number}) == ""
    assert read_status(path) == {"fingerprint": FINGERPRINT, "pass": 2}
    assert path.stat().st_mode & 0o777 == 0o600 and [p.name for p in path.parent.iterdir()] == [path.name]


def test_whoever_reads_it_meanwhile_has_the_old_one_or_the_new_one_and_never_a_part(path, monkeypatch):
    write_status(path, {"pass": 1})
    seen = []
    monkeypatch.setattr(os, "fsync", lambda fd, fsync=os.fsync: seen.append(read_status(path)) or fsync(fd))
    assert write_status(path, {"pass": 2}) == "" and read_status(path) == {"pass": 2}
    assert seen == [{"pass": 1}, {"pass": 2}], "at the sync of the file, and at that of its folder"


def test_a_full_disk_is_told_and_leaves_the_one_before(path, monkeypatch):
    write_status(path, {"pass": 1})
    monkeypatch.setattr(os, "fsync", _full)
    assert "No space left" in write_status(path, {"pass": 2})
    assert read_status(path) == {"pass": 1} and len(list(path.parent.iterdir())) == 1


def _full(descriptor):
    raise OSError(28, "No space left on device")


def test_one_that_is_damaged_is_an_error(path):
    path.write_text("{")
    with pytest.raises(MigrateError, match="cannot be read"):
        read_status(path)
