"""Who says that they have read a plan: a file beside it with one line per signature.

Names are claims, not authentication: whoever can write the file can write any name. What the file does give is that
a plan made with `--require-signatures N` is not applied by one person in a hurry, and that the journal says who was
named. Invariants:
- A signature names the whole fingerprint, so it cannot be carried over to another plan.
- A line is complete or not there: a torn last line (no line feed) is dropped; any other damage is an error.
"""

import fcntl
import json
import os
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from migrate.apply.history import JournalState
from migrate.apply.journal import drop_torn_line, history_beside, no_locks, write_all
from migrate.errors import MigrateError, Refused, UnreadablePlan, UsageError
from migrate.plan.companions import companion_path
from migrate.plan.plan import SHORT_DIGITS, Plan, signatures_required, signed_so_far
from migrate.text import shell_word
from migrate.whole_file import sync_folder

LONGEST_NAME = 200
LONGEST_NOTE = 2000
# What `isprintable` lets pass although nothing shows: Default_Ignorable_Code_Point (Unicode 16,
# DerivedCoreProperties.txt) as far as it is no control or format character, and the braille pattern without a dot.
_UNSEEN = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF),
)  # fmt: skip


FilesBeside = tuple[JournalState, Sequence["Signature"]]
"""What lies beside a plan: its journal, folded, and who has signed it."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One line: the plan's whole fingerprint, a name as it was given, a note ("" for none), the time in UTC."""

    time: str
    fingerprint: str
    name: str
    note: str


def signatures_path(plan_path: Path, fingerprint: str) -> Path:
    """Return where the signatures of a plan lie, there or not; raises as `companion_path` does."""
    return companion_path(plan_path, fingerprint, "signatures.jsonl")


def files_beside(path: Path, fingerprint: str) -> FilesBeside | MigrateError:
    """Return what lies beside a plan file, or the error of a file that cannot be read: the plan itself is readable."""
    try:
        return history_beside(path, fingerprint), signatures_beside(path, fingerprint)
    except MigrateError as error:
        return error


def person(name: str) -> str:
    """Return the name as it is counted: letter case, blanks and Unicode's ways of writing it make nobody else.

    The folding is Unicode's compatibility caseless matching (D146): once would leave names apart that look the same.
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFD", name).casefold())
    return " ".join(unicodedata.normalize("NFKC", folded.casefold()).split())


def names_of(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the different names, each as it was first written."""
    first: dict[str, str] = {}
    for signature in signatures:
        first.setdefault(person(signature.name), signature.name)
    return tuple(first.values())


def signature_of(fingerprint: str, name: str, note: str, time: str) -> Signature:
    """Return a signature of what has this fingerprint.

    Raises `UsageError` for a name or note that is too long or not printable.
    """
    for option, text, longest in (("--by", name, LONGEST_NAME), ("--note", note, LONGEST_NOTE)):
        if len(text) > longest:
            raise UsageError(f"{option} has more than {longest} characters.", "Write one plain line.")
        # A note may have emoji, which variation selectors belong to; a name is compared, and has to show whole.
        hidden = option == "--by" and any(first <= ord(c) <= last for c in text for first, last in _UNSEEN)
        if hidden or not text.isprintable():
            raise UsageError(
                f"{option} holds control characters, or invisible characters.", "Type it as one plain line."
            )
    if not person(name):
        raise UsageError("--by is empty.", "Give the name of the person who has read the plan.")
    return Signature(time, fingerprint, " ".join(name.split()), note.strip())


def read_signatures(path: Path, fingerprint: str) -> tuple[Signature, ...]:
    """Return the signatures in the order they were made; none where there is no file.

    Raises `UnreadablePlan` for a damaged line or one of another plan, `MigrateError` if it cannot be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise MigrateError(f"The signatures {path} cannot be read: {error.strerror}.") from None
    *lines, _torn = content.split(b"\n")
    return tuple(_parsed(line, number, path, fingerprint) for number, line in enumerate(lines, 1))


def signatures_beside(plan_path: Path, fingerprint: str) -> tuple[Signature, ...]:
    """Return the signatures in the file beside the plan; raises as `read_signatures` does."""
    return read_signatures(signatures_path(plan_path, fingerprint), fingerprint)


def add_signature(path: Path, signature: Signature) -> tuple[Signature, ...]:
    """Append a signature durably (the file has mode 0600) and return all of them, it included.

    Raises as `read_signatures` does, and `MigrateError` if the file cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MigrateError(
            f"The signatures {path} cannot be written: {error.strerror}.",
            "Make the plan's folder writable, and this file where it is there.",
        ) from None
    try:
        # Two people may sign at once; a line half written by the one would damage the other's.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise no_locks(path, error) from None
        before = read_signatures(path, signature.fingerprint)
        drop_torn_line(path, descriptor)
        write_all(descriptor, json.dumps(asdict(signature), separators=(",", ":")).encode("ascii") + b"\n")
        os.fsync(descriptor)
        sync_folder(path.parent)
    except OSError as error:
        raise MigrateError(
            f"The signature could not be written to {path}: {error.strerror}. The plan is as it was.",
            "Make room for it, then sign again.",
        ) from error
    finally:
        os.close(descriptor)
    return (*before, signature)


def _parsed(line: bytes, number: int, path: Path, fingerprint: str) -> Signature:
    try:
        signature = Signature(**json.loads(line))
        if not all(isinstance(text, str) for text in asdict(signature).values()) or not person(signature.name):
            raise ValueError(line)
    except (ValueError, TypeError):
        raise UnreadablePlan(
            f"Line {number} of the signatures {path} is damaged.",
            "Move the file away and have the plan signed again, or restore it from a copy.",
        ) from None
    if signature.fingerprint != fingerprint:
        raise UnreadablePlan(
            f"Line {number} of the signatures {path} is for plan {signature.fingerprint[:SHORT_DIGITS]}, not for "
            f"{fingerprint[:SHORT_DIGITS]}.",
            "Have this plan signed: a signature holds for one fingerprint only.",
        )
    return signature


def refusal(plan: Plan, path: Path, signatures: Sequence[Signature]) -> Refused | None:
    """Return why `apply` must not write this plan yet; None where enough different people have signed."""
    names, settings = names_of(signatures), plan.header.settings
    if len(names) >= signatures_required(settings):
        return None
    file = signatures_path(path, plan.fingerprint).name
    return Refused(
        f"Plan {plan.short_fingerprint} asks for {signatures_required(settings)} signatures of different names, and "
        f"has {signed_so_far(settings, names)} in {file}.",
        f"Whoever has read it signs with: mm2-migrate sign {shell_word(str(path))} --by NAME --note TEXT",
    )
