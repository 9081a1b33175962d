"""A new file is there whole or not at all, and never in the place of another."""

import errno
import stat

import pytest

from migrate.errors import MigrateError, Refused, UsageError
from migrate.whole_file import new_file, refuse_existing


def written(path):
    with new_file(path) as file:
        file.write("grüppe\n")


def test_what_is_written_is_its_owners_alone(tmp_path):
    written(tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == "grüppe\n"
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_what_is_there_already_is_refused_and_stays(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("somebody's")
    for attempt in (refuse_existing, written):
        with pytest.raises(Refused, match="it is not overwritten"):
            attempt(path)
    assert path.read_text() == "somebody's" and len(list(tmp_path.iterdir())) == 1


def test_a_link_that_leads_nowhere_is_something_too(tmp_path):
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Refused):
        refuse_existing(tmp_path / "out")


def test_what_appears_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(Refused), new_file(path) as file:
        file.write("ours")
        path.write_text("theirs")
    assert path.read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1


def test_an_error_or_ctrl_c_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_file(tmp_path / "out") as file:
        file.write("half")
        raise KeyboardInterrupt
    with pytest.raises(MigrateError, match="No space left"), new_file(tmp_path / "out"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match="there is no folder"):
        refuse_existing(tmp_path / "none" / "out")
