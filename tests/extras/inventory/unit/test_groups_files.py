"""Waves as files: what is written is read back as the same groups, and nothing that is there is touched."""

import errno
from pathlib import Path

import pytest

from migrate.errors import MigrateError, Refused, UsageError
from migrate.extras.inventory.waves import WavePart, refuse_waves_in, write_waves
from migrate.survey.filters import read_groups_file

WAVES = (
    (WavePart(("billing", "grün"), ("orders", "pay")), WavePart(("crm",), ("clicks",))),
    (WavePart(("x" * 249,), tuple(f"t{n}" for n in range(40))),),
)


def test_the_option_groups_file_reads_what_was_written(tmp_path):
    written = write_waves(WAVES, tmp_path)
    assert [path.name for path in written] == ["wave1.txt", "wave2.txt"]
    assert [read_groups_file(path) for path in written] == [{"billing", "grün", "crm"}, {"x" * 249}]
    assert written[0].read_text().splitlines()[:2] == ["# Wave 1 of 2: 3 groups", "# 2 groups on orders, pay"]


@pytest.mark.parametrize("name", ["wave1.txt", "wave17.txt"])
def test_a_folder_with_a_wave_is_refused_and_left_as_it_is(tmp_path, name):
    (tmp_path / name).write_text("yesterday's\n")
    with pytest.raises(Refused, match=f"{name}.*not overwritten"):
        write_waves(WAVES, tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "yesterday's\n")]


def test_whoever_interrupts_the_writing_finds_no_wave_that_lacks_groups(tmp_path, monkeypatch):
    def lines(number, count, parts):
        if number == 2:
            raise KeyboardInterrupt
        yield "billing"

    monkeypatch.setattr("migrate.extras.inventory.waves.wave_lines", lines)
    with pytest.raises(KeyboardInterrupt):
        write_waves(WAVES, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_files_do_not_matter_and_a_folder_that_is_not_there_is_wrong_usage(tmp_path):
    (tmp_path / "wave.txt").write_text("")
    (tmp_path / "my-wave1.txt").write_text("")
    refuse_waves_in(tmp_path)
    for folder in (tmp_path / "none", tmp_path / "wave.txt"):
        with pytest.raises(UsageError, match="There is no folder"):
            refuse_waves_in(folder)


def test_where_one_cannot_be_written_none_is_left(tmp_path, monkeypatch):
    opened = Path.open

    def failing(path, *mode, **options):
        if path.name == "wave2.txt":
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, *mode, **options)

    monkeypatch.setattr(Path, "open", failing)
    with pytest.raises(MigrateError, match="No space left"):
        write_waves(WAVES, tmp_path)
    assert list(tmp_path.iterdir()) == []
