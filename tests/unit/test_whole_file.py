"""Files that we write are there whole, and their owner's alone, or not at all; a new one takes nothing's place."""

import os
import stat

import pytest

from migrate.errors import MigrateError, Refused, UsageError
from migrate.whole_file import new_file, refuse_existing, replacing, reporting_unwritable, temporary_beside


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


def full(descriptor):
    raise OSError(28, "No space left on device")


def test_what_breaks_off_or_finds_the_disk_full_leaves_what_was_there_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"half")
        1 / 0  # noqa: B018
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
    for takes_place, left in ((False, []), (True, ["a"])):
        with temporary_beside(tmp_path / "a") as (_, temporary):
            assert len(names(tmp_path)) == 1
            if takes_place:
                temporary.replace(tmp_path / "a")
        assert names(tmp_path) == left


def test_what_keeps_a_file_from_being_written_is_told_with_what_to_do(tmp_path):
    missing = tmp_path / "none" / "page.html"
    with (
        pytest.raises(UsageError, match="The page cannot be written: there is no folder"),
        reporting_unwritable(missing, "The page cannot be written"),
        replacing(missing),
    ):
        pass
    with (
        pytest.raises(MigrateError, match="The page cannot be written: .*No space left on device. Fix that"),
        reporting_unwritable(missing, "The page cannot be written"),
    ):
        full(0)
    with pytest.raises(UsageError, match="there is no folder"):
        refuse_existing(missing)


# A new file, in the place of nothing.


def written(path):
    with new_file(path) as file:
        file.write("grüppe\n")


def test_what_is_written_is_its_owners_alone(tmp_path):
    written(tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == "grüppe\n"
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600
    assert names(tmp_path) == ["out.jsonl"]


def test_what_is_there_already_is_refused_and_stays_be_it_a_link_that_leads_nowhere(tmp_path):
    path, link = tmp_path / "out.jsonl", tmp_path / "link"
    path.write_text("somebody's")
    link.symlink_to(tmp_path / "nowhere")
    for attempt in (refuse_existing, written):
        for there in (path, link):
            with pytest.raises(Refused, match="it is not overwritten"):
                attempt(there)
    assert path.read_text() == "somebody's" and names(tmp_path) == ["link", "out.jsonl"]


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
        full(0)
    assert not list(tmp_path.iterdir())
