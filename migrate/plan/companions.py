"""The files beside a plan file, its journal and its signatures: where they lie, and under which names.

Invariants:
- They belong to the plan's real file: whoever names a symbolic link to it gets the same files, and the same lock.
- A name holds 32 digits of the fingerprint. Earlier versions took 12, which the maker of a plan can make two plans
  share; a file with such a name counts only if its first line names the whole fingerprint.
"""

import json
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.errors import MigrateError, Refused
from migrate.plan.plan import SHORT_DIGITS

_SEAL = b',"crc":"'

NAME_DIGITS = 32
OLD_NAME_DIGITS = SHORT_DIGITS


@dataclass(frozen=True, slots=True)
class Companion:
    """A kind of file beside a plan: the `ending` of its name, the `word` for messages.

    `fingerprint_of` returns the fingerprint that a line (without line feed) names; raises for a damaged line.
    """

    ending: str
    word: str
    fingerprint_of: Callable[[bytes], str]

    def path(self, plan_path: Path, fingerprint: str) -> Path:
        """Return where this file lies, whether it exists or not: "PLAN.<first 32 of the fingerprint>.<ending>".

        The file that an earlier version left, with 12 digits, where there is one. Raises `Refused` where there are two,
        or where an earlier version left one beside a link; `MigrateError` where the file system does not say.
        """
        try:
            return self._path(plan_path, fingerprint)
        except OSError as error:
            raise MigrateError(
                f"The {self.word} of {plan_path} cannot be looked for: {error.strerror}.",
                "Make the plan's folder readable; a name of more than 200 bytes is too long.",
            ) from None

    def _path(self, plan_path: Path, fingerprint: str) -> Path:
        real = real_path(plan_path)
        new, old = self._named(real, fingerprint, NAME_DIGITS), self._named(real, fingerprint, OLD_NAME_DIGITS)
        files = [path for path in (new, old) if path.exists() and (path is new or self._is_of(path, fingerprint))]
        linked = self._beside_link(plan_path, fingerprint)
        if linked is not None and not any(linked.samefile(path) for path in files):
            files.append(linked)
        if len(files) > 1 and not all(files[0].samefile(path) for path in files):
            raise Refused(
                f"Plan {fingerprint[:SHORT_DIGITS]} has two {self.word} files: {' and '.join(map(str, files))}.",
                "Each tells a part. Keep both, move one into another folder with a copy of the plan, and run the "
                "command in both.",
            )
        if files and files[0] is linked:
            raise Refused(
                f"The {self.word} {linked} lies beside a link: an earlier version put it there.",
                f"Move it to where the plan is: mv {linked} {new}",
            )
        return files[0] if files else new

    def under_any_name(self, folder: Path, fingerprint: str) -> tuple[Path, ...]:
        """Return the files in a folder that belong to this fingerprint, whatever the plan file was called."""
        new, old = (folder.glob(f"*.{fingerprint[:n]}.{self.ending}") for n in (NAME_DIGITS, OLD_NAME_DIGITS))
        return tuple(sorted([*new, *(path for path in old if self._is_of(path, fingerprint))]))

    def _named(self, plan_path: Path, fingerprint: str, digits: int) -> Path:
        return plan_path.with_name(f"{plan_path.name}.{fingerprint[:digits]}.{self.ending}")

    def _beside_link(self, plan_path: Path, fingerprint: str) -> Path | None:
        """Return the file that an earlier version left beside a link to the plan, None for none."""
        if real_path(plan_path) == plan_path:
            return None
        path = self._named(plan_path, fingerprint, OLD_NAME_DIGITS)
        return path if path.exists() and self._is_of(path, fingerprint) else None

    def _is_of(self, path: Path, fingerprint: str) -> bool:
        """True unless the first line names another plan: a damaged file is reported by its reader, not passed over."""
        try:
            with path.open("rb") as file:
                line = file.readline()
            return not line.endswith(b"\n") or self.fingerprint_of(line[:-1]) == fingerprint
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return True


def real_path(path: Path) -> Path:
    """Return the path itself where no symbolic link is on the way, else what it leads to."""
    real = os.path.realpath(path)
    return path if real == os.path.normpath(path.absolute()) else Path(real)


def is_no_ordinary_file(path: Path) -> bool:
    """True for a pipe, a terminal or another device: to open one may wait for its other end for ever.

    False for files and folders, and for what is not there. Raises `OSError` where that cannot be told.
    """
    return path.exists() and not (path.is_file() or path.is_dir())


# Made once: `json.dumps` with separators makes an encoder for each line, and a run has three lines for each group.
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def sealed(event: Mapping[str, Any]) -> bytes:
    """Return an event as a journal's line with its checksum (CRC-32 of what is before it), without line feed."""
    # ASCII: names that are not UTF-8 come as lone surrogates, which JSON escapes can carry.
    body = _ENCODER.encode(event).encode("ascii")[:-1]
    return body + _SEAL + b'%08x"}' % zlib.crc32(body)


def unsealed(line: bytes) -> dict[str, Any]:
    """Return the event of a line; raises `ValueError` for one that is not just as it was written."""
    body, _, _ = line.rpartition(_SEAL)
    if line != body + _SEAL + b'%08x"}' % zlib.crc32(body):
        raise ValueError("checksum")
    event: dict[str, Any] = json.loads(line)
    return event


_JOURNAL = Companion("journal.jsonl", "journal", lambda line: str(unsealed(line)["fingerprint"]))


journal_path, journals_under_any_name = _JOURNAL.path, _JOURNAL.under_any_name
