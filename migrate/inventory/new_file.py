"""A file that appears whole or not at all, and never in the place of another."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from migrate.errors import Refused
from migrate.whole_file import reporting_unwritable, sync_folder, temporary_beside

# Of file systems that have no hard links.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def refuse_existing(path: Path) -> None:
    """Raise `Refused` if something is at `path`, `UsageError` or `MigrateError` if nothing can be written there."""
    with reporting_unwritable(path, f"{path} cannot be written"):
        if path.is_symlink() or path.exists():
            raise _taken(path)
        with temporary_beside(path):
            pass


@contextmanager
def new_file(path: Path) -> Iterator[IO[str]]:
    """Yield a text file (UTF-8, mode 0600) that gets its name in the end, once it is on disk; else nothing is left.

    Raises as `refuse_existing` does, also where another appeared at `path` meanwhile: that one is left alone.
    """
    with reporting_unwritable(path, f"{path} cannot be written"):
        with temporary_beside(path) as (descriptor, temporary):
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n", closefd=False) as file:
                yield file
                file.flush()
                os.fsync(descriptor)
            _name(temporary, path)
        sync_folder(path.parent)


def _name(temporary: Path, path: Path) -> None:
    try:
        # Unlike a renaming, this fails where there is something already.
        path.hardlink_to(temporary)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.is_symlink() or path.exists():
            raise _taken(path) from None
        temporary.replace(path)


def _taken(path: Path) -> Refused:
    return Refused(f"{path} exists: it is not overwritten.", "Choose another --out, or move it away.")
