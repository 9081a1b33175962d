"""Files that are there whole, and on disk, or not at all; and why one could not be written."""

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from migrate.errors import MigrateError, Refused, UsageError

# Of a full disk one block shows: making an empty file needs none.
TRIED_BYTES = 4096


@contextmanager
def replacing(path: Path, last_look: Callable[[], None] = lambda: None) -> Iterator[IO[bytes]]:
    """Yield a file, mode 0600, that takes the place of `path` in the end, once it is on disk; else nothing is left.

    Until then its name is one that nobody can foresee: a link that lies in wait under a known name would have it
    written where that points to. `last_look` is called right before it takes that place; what it raises leaves
    `path` as it is. Raises `OSError`.
    """
    with temporary_beside(path) as (descriptor, temporary):
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        last_look()
        temporary.replace(path)
    sync_folder(path.parent)


@contextmanager
def temporary_beside(path: Path) -> Iterator[tuple[int, Path]]:
    """Make a file beside `path` with mode 0600, and yield its descriptor and path; in the end it goes away.

    What has taken the place of `path` by then stays.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        yield descriptor, Path(name)
    finally:
        os.close(descriptor)
        Path(name).unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on disk; raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def reporting_unwritable(path: Path, problem: str) -> Iterator[None]:
    """Raise what keeps `path` from being written as an error that begins with `problem`.

    `UsageError` if its folder is missing, `MigrateError` for whatever else the file system says.
    """
    try:
        yield
    except FileNotFoundError as error:
        folder = f"there is no folder {path.parent}" if path.parent != Path() else "the working folder is gone"
        raise UsageError(f"{problem}: {folder}.", "Create it, or choose another --out.") from error
    except OSError as error:
        raise MigrateError(f"{problem}: {error.strerror}.", "Fix that, or choose another --out.") from error


def refuse_unwritable(path: Path, problem: str) -> None:
    """Raise as `reporting_unwritable` does if no file can be written beside `path`; leaves nothing behind."""
    with reporting_unwritable(path, problem), temporary_beside(path) as (descriptor, _):
        os.write(descriptor, bytes(TRIED_BYTES))
        os.fsync(descriptor)


def refuse_existing(path: Path) -> None:
    """Raise `Refused` if something is at `path`, `UsageError` or `MigrateError` if nothing can be written there."""
    problem = f"{path} cannot be written"
    with reporting_unwritable(path, problem):
        _refuse_taken(path)
    refuse_unwritable(path, problem)


@contextmanager
def new_file(path: Path) -> Iterator[IO[str]]:
    """Yield a text file (UTF-8, mode 0600) that gets its name in the end, once it is on disk; else nothing is left.

    Raises as `refuse_existing` does, also where another appeared at `path` meanwhile: that one is left alone.
    """
    with (
        reporting_unwritable(path, f"{path} cannot be written"),
        replacing(path, lambda: _refuse_taken(path)) as file,
    ):
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        yield text
        text.flush()
        # Closed by whoever opened it, once it is on disk.
        text.detach()


def _refuse_taken(path: Path) -> None:
    if path.is_symlink() or path.exists():
        raise Refused(f"{path} exists: it is not overwritten.", "Choose another --out, or move it away.")
