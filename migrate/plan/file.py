"""The plan file: an Avro object container that any Avro reader opens, one record per group, one column per field.

The header is canonical JSON in the file's metadata, next to the format version and the fingerprint.
Invariants:

- The same plan gives the same bytes (fixed sync marker, fixed codec, canonical header).
- A file is complete or not there: it is written beside its place, synced, and renamed.
- What `read_plan` returns has the fingerprint that its maker stored; anything else is refused.
- The schema's namespace carries the format version: another set of fields is another format. Enums have the default
  `unknown`, so that a reader of another version sees that it does not know a word.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from migrate.errors import MigrateError, NoSuchPlan, Refused, UnreadablePlan
from migrate.model import CheckResult, Decision, Grade, Level, Method, Scope
from migrate.plan.companions import is_no_ordinary_file, journal_path, journals_under_any_name, real_path
from migrate.plan.plan import (
    FORMAT_VERSION,
    SHORT_DIGITS,
    Header,
    PinnedRange,
    Plan,
    PlannedActivity,
    PlannedGroupState,
)
from migrate.row_table import GROUP, GroupRows, Known, PlanRows
from migrate.whole_file import refuse_unwritable, replacing, reporting_unwritable

NAMESPACE = f"mm2_migrate.plan.v{FORMAT_VERSION}"


def _enum(words: type[StrEnum], doc: str) -> dict[str, Any]:
    symbols = [*map(str, words), "unknown"]
    return {"type": "enum", "name": words.__name__, "symbols": symbols, "default": "unknown", "doc": doc}


def _text(name: str, doc: str) -> dict[str, Any]:
    return {"name": name, "type": "string", "doc": doc}


def _offset(name: str, doc: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", "long"], "doc": doc}


_DECISION = _enum(Decision, "What apply does with the row.")
_METHOD = _enum(Method, "How the target offset was found.")
_GRADE = _enum(Grade, "How much is proven about the target offset.")

# What a row holds, field by field; the file has a column for each but `group`.
ROW_SCHEMA_FIELDS: tuple[dict[str, Any], ...] = (
    _text("group", "Consumer group."),
    _text("source_topic", "Topic on the source cluster, which the groups leave."),
    _text("target_topic", "Its replica's name on the target cluster."),
    {"name": "partition", "type": "int", "doc": "Partition, the same number on both clusters."},
    _offset("source_committed", "Offset committed on the source: the next record that the group wants."),
    _text("source_metadata", "Metadata of that commit; empty if it has none."),
    _offset("source_log_start", "First offset of the source partition's log when it was pinned."),
    _offset("source_log_end", "Last stable offset of the source partition when it was pinned."),
    _offset("target_log_start", "First offset of the target partition's log when it was pinned."),
    _offset("target_log_end", "Last stable offset of the target partition when it was pinned."),
    _offset("target_prior", "Offset committed on the target before; null if there was none."),
    _text("target_prior_metadata", "Metadata of that commit; empty if it has none."),
    {"name": "decision", "type": _DECISION, "doc": "set, remove, keep, skip or block."},
    _offset("target_offset", "Offset planned on the target; null where nothing is planned."),
    {"name": "method", "type": ["null", _METHOD], "doc": "How it was found."},
    {"name": "grade", "type": ["null", _GRADE], "doc": "exact, bounded or estimated."},
    _offset("rereads_at_most", "Proven bound on records read twice; null where none is proven."),
    _offset("rereads_estimate", "Likely number of records read twice; bounds nothing."),
    _text("reason", "Code that says why, such as translated or already-there."),
    _text("sentence", "The same in a sentence."),
    _text("lower_kind", "What the lower end is: proven-sync, sync, log-start, ...; empty if nothing."),
    _offset("lower_source_offset", "Source offset of the sync at the lower end."),
    _offset("lower_target_offset", "Target offset of that sync."),
    _offset("upper_source_offset", "Source offset of the sync at the window's upper end."),
    _offset("upper_target_offset", "Target offset of that sync."),
    _offset("checkpoint_source_offset", "Source offset of MM2's newest checkpoint, to compare with."),
    _offset("checkpoint_target_offset", "Target offset of MM2's newest checkpoint."),
    _text("equality", "What two records had to agree in to count as one: all, without-headers, ..."),
    _text("why", "Code of what comparing records said, such as proven; empty if none were compared."),
    _offset("missing_on_target", "Owed records that have no copy on the target; null where that is not known."),
    _text("target_metadata", "Metadata to commit with the target offset, byte for byte; empty for none."),
    _offset("live_source_offset", "In a plan of commits as of an earlier time: what is committed on the source now."),
    _text("target_group", "What the group is called on the target; empty where it keeps its name."),
)


_NULLABLE = ["null", "long"]
# Plain longs are read more than twice as fast, and most columns of offsets have no null.
_SPARSE: dict[str, Any] = {
    "type": "record",
    "name": "SparseOffsets",
    "doc": "A column of offsets that some rows do not have.",
    "fields": [{"name": "items", "type": {"type": "array", "items": _NULLABLE}, "doc": "Null where a row has none."}],
}


def _columns() -> Iterator[dict[str, Any]]:
    sparse: Any = _SPARSE
    for field in ROW_SCHEMA_FIELDS:
        if field["name"] == GROUP:
            yield field
        elif field["type"] == _NULLABLE:
            yield field | {"type": [{"type": "array", "items": "long"}, sparse]}
            sparse = _SPARSE["name"]  # Avro defines a record once; from then on it is named
        else:
            yield field | {"type": {"type": "array", "items": field["type"]}}


PLAN_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "GroupRows",
    "namespace": NAMESPACE,
    "doc": "The committed offsets of one consumer group, and what becomes of each on the target cluster. "
    "Item n of an array belongs to row n; an array with a single item holds for all rows. "
    "`partition` has an item for every row.",
    "fields": list(_columns()),
}
_OFFSETS = frozenset(field["name"] for field in ROW_SCHEMA_FIELDS if field["type"] == _NULLABLE)


FORMAT_KEY = "mm2-migrate.format"
HEADER_KEY = "mm2-migrate.header"
FINGERPRINT_KEY = "mm2-migrate.fingerprint"
MAGIC = b"Obj\x01"
SYNC_MARKER = b"mm2-migrate-plan"


def write_plan(plan: Plan, path: Path) -> None:
    """Write the plan durably, readable by its owner only (mode 0600).

    Raises `Refused` as `refuse_overwrite` does, `UsageError` if the folder is missing, `MigrateError` if the
    file system will not have it; then nothing is left behind.
    """
    refuse_overwrite(path)
    try:
        # Writing it takes minutes: the plan that was there may have been applied meanwhile.
        last_look = partial(refuse_overwrite, path)
        with reporting_unwritable(path, f"The plan cannot be written to {path}"), replacing(path, last_look) as file:
            _write(plan, file)
    except UnicodeEncodeError as error:
        raise MigrateError(
            f"The plan cannot be written to {path}: the name {ascii(error.object)} is not valid Unicode.",
            "Leave it out with --exclude-group or --exclude-topic.",
        ) from error


def refuse_out(path: Path) -> None:
    """Raise what `write_plan` would, as far as it can be known before there is a plan; leaves nothing behind.

    Reading two clusters takes minutes or hours: that nobody can write its result has to be known before.
    """
    refuse_overwrite(path)
    refuse_unwritable(path, f"The plan cannot be written to {path}")


def read_plan(path: Path) -> Plan:
    """Read a plan and recompute its fingerprint.

    Raises `NoSuchPlan` for a path that leads to no file, `UnreadablePlan` for a file that is no plan, cut short,
    damaged or of an unknown format, and `Refused` for one whose contents its stored fingerprint was not made of.
    """
    content = _content(path)
    metadata = _metadata(content, path)
    try:
        header = _header(json.loads(metadata[HEADER_KEY]))
        if str(header.format_version) != metadata[FORMAT_KEY]:
            raise ValueError(f"format {header.format_version} in the header")
        plan = Plan(header, _rows(content))
    except Exception as error:  # a damaged file can fail in any way in any layer: Avro, deflate, JSON, types
        raise UnreadablePlan(
            f"{path} is a plan, but it is damaged or cut short ({type(error).__name__}: {str(error)[:200]}).",
            "Get the file again from where it was made, or make a new plan.",
        ) from error
    stored = metadata[FINGERPRINT_KEY]
    if stored != plan.fingerprint:
        raise Refused(
            f"{path} was edited or damaged after it was made: its fingerprint says {stored[:SHORT_DIGITS]}, "
            f"its contents give {plan.short_fingerprint}.",
            "A plan is never edited: get the file again from where it was made, or make a new plan.",
        )
    return plan


def refuse_overwrite(path: Path) -> None:
    """Raise `Refused` if `path` holds a plan that has a journal, or is or holds anything that is not a plan.

    The journal is the way back from what was applied, and means nothing without its plan.
    """
    try:
        if not path.exists() and not path.is_symlink():
            return
        if is_no_ordinary_file(path):
            raise Refused(f"{path} is not a regular file; refusing to write a plan there.", "Choose another --out.")
    except OSError as error:
        raise MigrateError(
            f"{path} cannot be looked at: {error.strerror}.",
            "Choose another --out, or have the folder opened.",
        ) from error
    try:
        fingerprint = stored_fingerprint(path)
    except UnreadablePlan as error:
        raise Refused(
            f"{path} exists and is not a plan that can be read: it is not overwritten.",
            "Choose another --out, or move that file away.",
        ) from error
    own = journal_path(path, fingerprint)
    # Under another name, too: this may be the only copy of the plan that the journal is of.
    for journal in (own,) if own.exists() else journals_under_any_name(real_path(path).parent, fingerprint):
        raise Refused(
            f"{path} holds a plan that has a journal ({journal.name}): it is not overwritten, being the way back.",
            "Choose another --out.",
        )


def refuse_replaced(plan: Plan, path: Path) -> None:
    """Raise `Refused` where the file holds another plan by now: the journal alone would be no way back from this one.

    Assessing takes up to minutes, and until the journal has begun `plan` may write to the same file.
    """
    try:
        if stored_fingerprint(path) == plan.fingerprint:
            return
        why = "was replaced by another plan"
    except UnreadablePlan as error:
        why = f"cannot be read any more ({error.problem})"
    raise Refused(
        f"{path} {why} while it was being looked at: a rollback needs the plan that was applied. Nothing was written.",
        "Put the plan back under its name, or review and apply the new one.",
    )


def stored_fingerprint(path: Path) -> str:
    """Return the fingerprint that the file has, unchecked; raises `UnreadablePlan` if it is no plan."""
    return _metadata(_content(path), path)[FINGERPRINT_KEY]


def _write(plan: Plan, file: IO[bytes]) -> None:
    import fastavro

    fastavro.writer(
        file,
        fastavro.parse_schema(PLAN_SCHEMA),
        (_stored(rows.document()) for rows in plan.groups().values()),
        codec="deflate",
        sync_marker=SYNC_MARKER,
        strict=True,
        metadata={
            FORMAT_KEY: str(plan.header.format_version),
            # ASCII, for Avro readers decode metadata as UTF-8 and an option may hold bytes that are not
            HEADER_KEY: json.dumps(asdict(plan.header), sort_keys=True, separators=(",", ":")),
            FINGERPRINT_KEY: plan.fingerprint,
        },
    )


def _content(path: Path) -> bytes:
    """Return the whole file: from memory, a damaged length cannot make the reader ask for terabytes."""
    todo = "Name the plan file that `mm2-migrate plan` wrote (--out, by default cutover.plan)."
    try:
        if is_no_ordinary_file(path):
            raise UnreadablePlan(f"The plan {path} cannot be read: it is not a regular file.", todo)
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
            if magic != MAGIC:
                raise UnreadablePlan(f"{path} is not a plan file: it does not begin as an Avro file does.", todo)
            return magic + file.read()
    except OSError as error:
        raise not_opened(f"The plan {path}", error, todo) from error


def not_opened(what: str, error: OSError, todo: str) -> UnreadablePlan:
    """Return the error for a file that cannot be opened; wrong usage where its path leads to none."""
    leads_nowhere = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    return (NoSuchPlan if leads_nowhere else UnreadablePlan)(f"{what} cannot be read: {error.strerror}.", todo)


def _metadata(content: bytes, path: Path) -> Mapping[str, str]:
    """Return the file's three entries of ours; raises `UnreadablePlan` if any is missing or unknown."""
    import fastavro

    try:
        entries = fastavro.reader(BytesIO(content)).metadata
    except Exception as error:  # see read_plan
        raise UnreadablePlan(
            f"{path} is damaged or cut short ({type(error).__name__}: {str(error)[:200]}).",
            "Get the file again from where it was made, or make a new plan.",
        ) from error
    missing = [key for key in (FORMAT_KEY, HEADER_KEY, FINGERPRINT_KEY) if key not in entries]
    if missing:
        raise UnreadablePlan(
            f"{path} is an Avro file, but not a plan: its metadata lacks {', '.join(missing)}.",
            "Name the plan file that `mm2-migrate plan` wrote.",
        )
    if entries[FORMAT_KEY] != str(FORMAT_VERSION):
        raise UnreadablePlan(
            f"{path} has plan format {entries[FORMAT_KEY][:20]!r}; this version reads format {FORMAT_VERSION}.",
            "Use the version of mm2-migrate that made it, or make a new plan.",
        )
    if not re.fullmatch("[0-9a-f]{64}", entries[FINGERPRINT_KEY]):
        raise UnreadablePlan(
            f"{path} is damaged: its fingerprint field holds no fingerprint.",
            "Get the file again from where it was made, or make a new plan.",
        )
    return {key: entries[key] for key in (FORMAT_KEY, HEADER_KEY, FINGERPRINT_KEY)}


def _rows(content: bytes) -> PlanRows:
    """Return the rows: a record is the table of a group."""
    import fastavro

    known: Known = {}
    records: Iterator[Any] = fastavro.reader(BytesIO(content))
    return PlanRows(GroupRows.of_table(_table_of(record), known) for record in records)


def _stored(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table as the file's schema has it."""
    return {name: {"items": v} if name in _OFFSETS and None in v else v for name, v in table.items()}


def _table_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return the table that a record of the file is."""
    return {name: column["items"] if isinstance(column, dict) else column for name, column in record.items()}


def _header(document: dict[str, Any]) -> Header:
    """Build the header from its JSON form; raises TypeError, KeyError or ValueError where it does not fit."""
    document["waivers"] = tuple(document["waivers"])
    document["pinned"] = tuple(PinnedRange(**entry) for entry in document["pinned"])
    document["group_states"] = tuple(PlannedGroupState(**entry) for entry in document["group_states"])
    document["checks"] = tuple(check_result(entry) for entry in document["checks"])
    document["activity"] = tuple(PlannedActivity(**entry) for entry in document["activity"])
    return Header(**document)


def check_result(entry: dict[str, Any]) -> CheckResult:
    """Return a check's result from its JSON form; raises TypeError, KeyError or ValueError where it does not fit."""
    for name, kind in (("level", Level), ("scope", Scope), ("counts_as", Level)):
        entry[name] = kind(entry[name])
    return CheckResult(**entry)
