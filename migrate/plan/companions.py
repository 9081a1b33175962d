"""The files beside a plan file (journal, signatures, status): where they lie, and under which names.

They belong to the plan's real file: whoever names a symbolic link to it gets the same files, and the same lock.
A name holds 32 digits of the fingerprint: 12, which people read, the maker of a plan can make two plans share.
"""

import os
from pathlib import Path

from migrate.errors import MigrateError

NAME_DIGITS = 32
_JOURNAL = "journal.jsonl"


def companion_path(plan_path: Path, fingerprint: str, ending: str) -> Path:
    """Return where a file beside the plan lies, there or not: "PLAN.<first 32 of the fingerprint>.<ending>".

    Raises `MigrateError` where the file system does not say whether it is there.
    """
    real = real_path(plan_path)
    path = real.with_name(f"{real.name}{_after_name(fingerprint, ending)}")
    try:
        path.exists()
    except OSError as error:
        raise MigrateError(
            f"The {ending.partition('.')[0]} of {plan_path} cannot be looked for: {error.strerror}.",
            "Make the plan's folder readable; a name of more than 200 bytes is too long.",
        ) from None
    return path


def journal_path(plan_path: Path, fingerprint: str) -> Path:
    """Return where the journal of a plan lies, there or not; raises as `companion_path` does."""
    return companion_path(plan_path, fingerprint, _JOURNAL)


def journals_under_any_name(folder: Path, fingerprint: str) -> tuple[Path, ...]:
    """Return the journals in a folder that belong to this fingerprint, whatever the plan file was called."""
    return tuple(sorted(folder.glob(f"*{_after_name(fingerprint, _JOURNAL)}")))


def journals_in(folder: Path) -> tuple[Path, ...]:
    """Return all journals in a folder, of whatever plan."""
    return tuple(sorted(folder.glob(f"*.{_JOURNAL}")))


def plan_of_journal(journal: Path, fingerprint: str) -> Path:
    """Return the plan file that a journal with this fingerprint was written beside."""
    return journal.with_name(journal.name.removesuffix(_after_name(fingerprint, _JOURNAL)))


def _after_name(fingerprint: str, ending: str) -> str:
    return f".{fingerprint[:NAME_DIGITS]}.{ending}"


def real_path(path: Path) -> Path:
    """Return the path itself where no symbolic link is on the way, else what it leads to."""
    real = os.path.realpath(path)
    return path if real == os.path.normpath(path.absolute()) else Path(real)


def is_no_ordinary_file(path: Path) -> bool:
    """True for a pipe, a terminal or another device: to open one may wait for its other end for ever.

    False for files and folders, and for what is not there. Raises `OSError` where that cannot be told.
    """
    return path.exists() and not (path.is_file() or path.is_dir())
