"""Files that we write are there whole, and their owner's alone, or not at all."""

import os
import stat

import pytest

from migrate.errors import MigrateError, UsageError
from migrate.whole_file import replacing, reporting_unwritable, temporary_beside


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_takes_the_place_of_another_only_when_it_is_whole(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(b"before")
    with replacing(path) as file:
        file.write(b"after")
        file.flush()
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after" and names(tmp_path) == ["page.html"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_breaks_off_leaves_what_was_there_and_nothing_beside_it(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"half")
        1 / 0  # noqa: B018
    assert path.read_bytes() == b"before" and names(tmp_path) == ["page.html"]


def test_a_disk_that_is_full_at_the_end_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_bytes(b"before")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"), replacing(path) as file:
        file.write(b"after")
    assert path.read_bytes() == b"before" and names(tmp_path) == ["page.html"]


def test_a_link_is_replaced_and_what_it_points_to_is_left_alone(tmp_path):
    (tmp_path / "other").write_bytes(b"somebody's")
    (tmp_path / "page.html").symlink_to(tmp_path / "other")
    with replacing(tmp_path / "page.html") as file:
        file.write(b"ours")
    assert (tmp_path / "other").read_bytes() == b"somebody's" and not (tmp_path / "page.html").is_symlink()


def test_a_temporary_file_goes_away_unless_it_took_a_place(tmp_path):
    with temporary_beside(tmp_path / "a"):
        assert len(names(tmp_path)) == 1
    assert names(tmp_path) == []
    with temporary_beside(tmp_path / "a") as (_, temporary):
        temporary.replace(tmp_path / "a")
    assert names(tmp_path) == ["a"]


def test_what_keeps_a_file_from_being_written_is_told_with_what_to_do(tmp_path):
    missing = tmp_path / "none" / "page.html"
    with (
        pytest.raises(UsageError, match="The page cannot be written: there is no folder"),
        reporting_unwritable(missing, "The page cannot be written"),
        replacing(missing),
    ):
        pass
    with (
        pytest.raises(MigrateError, match="The page cannot be written: No space left. Fix that"),
        reporting_unwritable(missing, "The page cannot be written"),
    ):
        raise OSError(28, "No space left")
