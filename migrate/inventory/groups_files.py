"""Waves as files that `--groups-file` reads. All of them are written, or none; no file is ever overwritten."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from migrate.errors import MigrateError, Refused, UsageError
from migrate.inventory.group_waves import WavePart
from migrate.text import many, safe, some

WAVE_FILE = re.compile(r"wave[0-9]+\.txt")
TOPICS_NAMED = 10


def refuse_waves_in(folder: Path) -> None:
    """Raise `Refused` if the folder has a wave already, `UsageError` if there is no such folder.

    Any wave counts, not only those that would be written: a wave9.txt of an earlier day beside today's five would be
    taken for one of them.
    """
    try:
        there = sorted(path.name for path in folder.iterdir() if WAVE_FILE.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"There is no folder {folder} to write waves to.", "Create it, or choose --out-dir.") from None
    except OSError as error:
        raise MigrateError(f"{folder} cannot be looked at: {error.strerror}.", "Choose another --out-dir.") from None
    if there:
        raise Refused(
            f"{folder} has waves already ({some(there, 3)}): they are not overwritten.",
            "Move them away, or choose another --out-dir.",
        )


def write_waves(waves: Sequence[Sequence[WavePart]], folder: Path) -> tuple[Path, ...]:
    """Write wave1.txt, wave2.txt and so on; return their paths.

    Raises as `refuse_waves_in` does, and `MigrateError` where the file system refuses; then none of them is left.
    """
    refuse_waves_in(folder)
    written: list[Path] = []
    try:
        for number, parts in enumerate(waves, 1):
            path = folder / f"wave{number}.txt"
            # Exclusively: what appeared since the folder was looked at is somebody's, too.
            with path.open("x", encoding="utf-8", newline="\n") as file:
                written.append(path)
                file.writelines(f"{line}\n" for line in wave_lines(number, len(waves), parts))
    except BaseException as error:
        # Ctrl-C too: half a list of groups is a groups file like any other.
        for path in written:
            with suppress(OSError):
                path.unlink()
        if not isinstance(error, OSError):
            raise
        raise MigrateError(
            f"The waves cannot be written to {folder}: {error.strerror}.", "Fix that, or choose another --out-dir."
        ) from error
    return tuple(written)


def wave_lines(number: int, count: int, parts: Sequence[WavePart]) -> Iterator[str]:
    """Yield the lines of one wave's file: comments, and a group to a line."""
    yield f"# Wave {number} of {count}: {many(sum(len(part.groups) for part in parts), 'group')}"
    for part in parts:
        yield f"# {many(len(part.groups), 'group')} on {some(map(safe, part.topics), TOPICS_NAMED)}"
        yield from part.groups
