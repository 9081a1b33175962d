"""A verification as text and as JSON, and its proof by the records. Pure; no payload is known here.

The verdict comes first, then what is not as planned, what moved on, what was not written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from migrate.apply.record_proof import FAILED, Next, RecordProof, RecordVerdict, RowProof
from migrate.apply.verify import (
    Standing,
    Verification,
    VerifyFinding,
    joint_exit_code,
)
from migrate.clock import is_date, iso
from migrate.match.equality import Part
from migrate.match.next_record import NextRecord
from migrate.model import Failure
from migrate.plan.plan import Plan
from migrate.show.lines import at_most, names, tally, wrapped
from migrate.show.next_steps import Typed, only_anew, spent_steps
from migrate.show.table import Column, Table, document_lines, fields_of
from migrate.text import Colour, both_names, many, name, paint, safe

ROWS_SHOWN = 200
NAMED = 20
_WORDS = {
    Standing.BLOCKED: "blocked in the plan",
    Standing.SKIPPED: "skipped, as the plan says",
    Standing.LEFT_OUT: "left out by apply: the journal holds no write",
    Standing.ROLLED_BACK: "given up by `rollback --group`: make a new plan for it",
}
_EMPTY = frozenset({Standing.AHEAD_EMPTY, Standing.METADATA_EMPTY})


def verify_lines(verification: Verification, plan: Plan, width: int, colour: bool) -> Iterator[str]:
    """Yield a verification: verdict, findings by how bad they are, and what there was nothing to verify of."""
    text, shade = verdict(verification)
    yield from wrapped(paint(text, shade, colour), width, "", "  ")
    counts = [f"{count} {standing}" for standing, count in sorted(verification.counts().items())]
    unwritten = Counter(row.standing for row in verification.not_written)
    counts += [f"{count} {why}" for why, count in sorted(unwritten.items())]
    yield from wrapped(
        f"Plan {plan.short_fingerprint} on {safe(plan.header.target_alias)}: {', '.join(counts) or 'no rows'}",
        width, "", "  ",
    )  # fmt: skip
    if verification.spent:
        yield from wrapped("So its offsets are not expected to be there.", width)
    if verification.moving:
        yield from wrapped(f"Moving now: {names(sorted(verification.moving), NAMED)}", width, "", "  ")
    moved = [f for f in verification.findings if f.is_good and f.standing is not Standing.EQUAL]
    called = plan.rows.renamed()
    if not verification.unapplied:
        yield from _section("Not as planned:", (_sentence(f, called) for f in verification.bad), width)
    if any(f.standing in _EMPTY for f in verification.bad):
        yield from wrapped(
            "A client commits for a group without members, such as MM2's group sync, or its consumers have run and "
            "stopped since: only if you know that they have, say --consumers-ran.", width,
        )  # fmt: skip
    yield from _section("Moved on by consumers:", (_sentence(f, called) for f in moved), width)
    rows = Counter((row.group, row.standing, row.reason) for row in verification.not_written)
    those = (
        f"{_both_names(group, called)}: {many(count, 'row')} {_WORDS[why]}{f': {safe(reason)}' if reason else ''}"
        for (group, why, reason), count in rows.items()
    )
    yield from _section("Not written, or rolled back, so not verified:", those, width)
    blocks = (
        f"{safe(b.check)} {name(b.subject)}: {safe(b.seen)}. {safe(b.todo)}".rstrip() for b in verification.blocks
    )
    yield from _section("Blocks of the plan that no row shows:", blocks, width, NAMED, "all")


def verify_steps(
    verification: Verification, plan: Plan, path: str, options: tuple[str, ...], width: int
) -> Iterator[str]:
    """Yield the commands that help with what is not there, each below what it is for."""
    steps: list[tuple[str, str]] = []
    anew = {row.group for row in verification.not_written if row.standing in (Standing.BLOCKED, Standing.ROLLED_BACK)}
    if verification.spent:
        steps += spent_steps(plan, path, options, verification.undone)
    else:
        if verification.unapplied or any(row.standing is Standing.LEFT_OUT for row in verification.not_written):
            steps.append(("To apply what was not, first as a dry run", Typed("apply", path, options).line()))
        if anew:
            steps.append(only_anew(plan, path, options, sorted(anew)))
    for purpose, command in steps:
        yield ""
        yield from wrapped(f"{purpose}:", width)
        yield f"  {command}"


def verdict(verification: Verification) -> tuple[str, Colour]:
    """Return the first line, and its colour: green only where everything that the plan has was verified."""
    total, rest = len(verification.findings), _rest(verification)
    if verification.spent:
        equal = verification.counts()[Standing.EQUAL]
        verb = "is" if equal == 1 else "are"
        what = "ROLLED BACK: this plan is spent" if verification.undone else "SPENT: a rollback of this plan has begun"
        return f"{what}, and {equal} of {many(total, 'offset')} {verb} as it says", Colour.RED
    if verification.unapplied:
        before = f"{many(total, 'offset')} {'is' if total == 1 else 'are'} where they were before"
        return f"NOTHING VERIFIED: nothing of it has been applied, {before}", Colour.RED
    if verification.bad:
        tail = f"; and {rest}" if rest else ""
        return f"NOT AS PLANNED: {len(verification.bad)} of {many(total, 'offset')}{tail}", Colour.RED
    groups = many(len({f.group for f in verification.findings}), "group")
    text = f"VERIFIED: {many(total, 'offset')} of {groups}"
    if rest:
        return f"{text}, BUT {rest}" if total else f"NOTHING VERIFIED: {rest}", Colour.YELLOW
    return (text, Colour.GREEN) if total else ("NOTHING TO VERIFY: the plan sets no offset", Colour.YELLOW)


def _rest(verification: Verification) -> str:
    parts = []
    back = [row for row in verification.not_written if row.standing is Standing.ROLLED_BACK]
    others = [row for row in verification.not_written if row.standing is not Standing.ROLLED_BACK]
    for rows, what in ((others, "not written"), (back, "rolled back")):
        if rows:
            groups, verb = many(len({row.group for row in rows}), "group"), "was" if len(rows) == 1 else "were"
            parts.append(f"{many(len(rows), 'row')} of {groups} {verb} {what}")
    if verification.blocks:
        verb = "is" if len(verification.blocks) == 1 else "are"
        parts.append(f"{many(len(verification.blocks), 'block')} of the plan {verb} open")
    return " and ".join(parts)


def _sentence(finding: VerifyFinding, called: Mapping[str, str]) -> str:
    partition, group = finding.target_partition, finding.group
    where = f"{_both_names(group, called)} {name(partition.topic)}:{partition.partition}"
    return f"{where}: {safe(finding.sentence)}"


def _section(
    title: str, texts: Iterable[str], width: int, most: int = ROWS_SHOWN, what: str = "every row"
) -> Iterator[str]:
    listed = list(texts)
    if listed:
        yield ""
        yield title
        yield from at_most(listed, most, width, f"more; --format json has {what}")


_GOOD = frozenset({RecordVerdict.EQUAL, RecordVerdict.AT_END})
PLANNED = "planned"
_LEGEND = {
    RecordVerdict.AT_END: "at-end: both logs end there, nothing is left to read",
    RecordVerdict.EARLIER: "earlier: the target starts earlier, to be safe; what lies between is read again",
    RecordVerdict.ALIKE: "alike: key and value are the same, the rest was changed on the way",
    RecordVerdict.REMOVED: "removed: retention or compaction has taken one of the two since",
    RecordVerdict.NOT_FOUND: "not-found: no equal record among the target's next ones (not copied yet, changed on the "
    "way, compacted, or further on)",
    RecordVerdict.CHOSEN: "chosen: set by a reviewer's choice, so the records need not agree",
    RecordVerdict.MOVED_ON: "moved-on: consumers have read on; what they started from, at the planned offset, was "
    "compared",
    RecordVerdict.BEYOND: "beyond: the committed offset is beyond the planned one, and no consumer accounts for it",
    RecordVerdict.UNCOMMITTED: "uncommitted: the group has no committed offset there",
    RecordVerdict.DIFFERENT: "different: the row was graded exact, and the records are not the same",
    RecordVerdict.NOTHING_LEFT: "nothing-left: the target's log is empty, the source has records that the group is "
    "owed, and the plan took all of them to be copied",
    RecordVerdict.UNREADABLE: "unreadable: a log could not be read, or was cut, so nothing is proven",
}


def proof_lines(proof: RecordProof, plan: Plan, width: int, colour: bool) -> Iterator[str]:
    """Yield the rows' next records: the source's, below it the target's, and the planned one if that is another."""
    total, counts = len(proof.rows), proof.counts()
    if not total:
        yield paint("NO RECORDS TO COMPARE: no row has an offset on both sides", Colour.YELLOW, colour)
        return
    same, failed = sum(counts[v] for v in _GOOD), sum(counts[v] for v in FAILED)
    text, shade = f"RECORDS NOT AS PLANNED: {failed} of {many(total, 'row')}", Colour.RED
    if not failed:
        text = f"RECORDS: {same} of {many(total, 'row')} read the same next record on both sides"
        shade = Colour.GREEN if same == total else Colour.YELLOW
    yield paint(text, shade, colour)
    yield from wrapped(tally(counts, RecordVerdict), width, "", "  ")
    for verdict, text in _LEGEND.items():
        if counts[verdict]:
            yield from wrapped(text, width, "  ", "    ")
    if proof.left_out:
        yield f"{many(proof.left_out, 'more row')} not looked at, as --limit says."
    yield ""
    called = plan.rows.renamed()
    place: tuple[Column[_Record], ...] = (
        Column("GROUP", lambda r: _both_names(r.proof.row.group, called)),
        Column("TOPIC:PARTITION", lambda r: f"{name(r.proof.row.source_topic)}:{r.proof.row.partition}"),
    )

    def sentence(r: _Record) -> Iterator[str]:
        if r.is_last and r.proof.verdict not in _GOOD:
            differing = f"They differ in {', '.join(r.proof.differing)}. " if r.proof.differing else ""
            yield from wrapped(f"{differing}{safe(r.proof.sentence)}", width, "    ", "      ")

    records = [record for row in proof.rows for record in _records(row, plan)]
    table = Table((*place, *RECORD), records, width, narrow=RECORD)
    yield from table.lines(colour, _shade, lambda r: "  ".join(column.cell(r) for column in place), sentence)


def verify_document(
    verification: Verification,
    plan: Plan,
    proof: RecordProof | None,
    looked_ms: int,
) -> Iterator[str]:
    """Return one JSON document in lines: what is committed beside what was planned, and the records if they were read.

    `looked_ms` is when the target was read; `rows_looked_at` are fewer than `rows_in_plan` where rows were selected.
    `left_out` are the rows that were not written, by the plan or by apply, `blocks` the open blocks without a row.
    """
    codes = [result.exit_code for result in (verification, proof) if result is not None]
    head: dict[str, Any] = {
        "fingerprint": plan.fingerprint,
        "source": plan.header.source_alias,
        "target": plan.header.target_alias,
        "exit_code": joint_exit_code(*codes),
        "time": iso(looked_ms),
        "rows_in_plan": len(plan.rows),
        "rows_looked_at": len(verification.findings) + len(verification.not_written),
        "rolled_back": verification.spent,
        "counts": verification.counts(),
        "moving": sorted(verification.moving),
        "blocks": [fields_of(c, "check", "subject", "expected", "seen", "todo") for c in verification.blocks],
    }
    fields = ("expected", "seen", "standing", "sentence", "journal")
    called = plan.rows.renamed()
    findings = (_place(finding, called) | fields_of(finding, *fields) for finding in verification.findings)
    unwritten = (
        _place(row, called) | {"why": row.standing} | fields_of(row, "reason", "sentence")
        for row in verification.not_written
    )
    lists: dict[str, Iterable[dict[str, Any]]] = {"offsets": findings, "left_out": unwritten}
    if proof is not None:
        head |= {"record_counts": proof.counts(), "record_rows_left_out": proof.left_out}
        lists["records"] = (_document(row, called) for row in proof.rows)
    return document_lines(head, lists)


def _place(row: VerifyFinding, called: Mapping[str, str]) -> dict[str, Any]:
    partition = row.target_partition
    return _names(row.group, called) | {"target_topic": partition.topic, "partition": partition.partition}


def _both_names(group: str, called: Mapping[str, str]) -> str:
    return both_names(group, called.get(group, group))


def _names(group: str, called: Mapping[str, str]) -> dict[str, str]:
    return {"group": group, "target_group": called.get(group, "")}


def _document(proof: RowProof, called: Mapping[str, str]) -> dict[str, Any]:
    return {
        **_names(proof.row.group, called),
        **fields_of(proof.row, "source_topic", "target_topic", "partition", "grade"),
        **fields_of(proof, "verdict", "sentence"),
        "compared": [part for part in Part if part in proof.parts],
        "differing": list(proof.differing),
        "source": _side(proof, proof.source),
        "target": _side(proof, proof.target),
        "planned": None if proof.planned is None else _side(proof, proof.planned),
        **fields_of(proof, "found_at", "records_before"),
    }


def _side(proof: RowProof, answer: Next | Failure) -> dict[str, Any]:
    if isinstance(answer, Failure):
        return {"error": str(answer)}
    record = answer.record
    return {
        "looked_from": answer.offset,
        "log_start": answer.log_start,
        "record": None
        if record is None
        else {
            "offset": record.offset,
            "timestamp": _time(record),
            "size": record.size,
            "fingerprint": record.fingerprint(proof.parts),
        },
    }


def _time(record: NextRecord) -> str | None:
    """Return the record's timestamp in UTC, as ISO 8601 has it; None where it has none, or none that is a date."""
    return iso(record.timestamp) if record.timestamp >= 0 and is_date(record.timestamp) else None


class _Record(NamedTuple):
    """What was found at one offset of a row, on which cluster, and the word for it: the verdict, or `PLANNED`."""

    proof: RowProof
    cluster: str
    found: Next | Failure
    word: str = ""

    @property
    def record(self) -> NextRecord | None:
        return None if isinstance(self.found, Failure) else self.found.record

    @property
    def is_last(self) -> bool:
        return self.word == (self.proof.verdict if self.proof.planned is None else PLANNED)


def _records(proof: RowProof, plan: Plan) -> Iterator[_Record]:
    """Yield the source's next record and the target's, then that at the planned offset where another is committed."""
    yield _Record(proof, plan.header.source_alias, proof.source)
    yield _Record(proof, plan.header.target_alias, proof.target, proof.verdict)
    if proof.planned is not None:
        yield _Record(proof, plan.header.target_alias, proof.planned, PLANNED)


def _offset(r: _Record) -> int | None:
    if isinstance(r.found, Failure):
        return None
    return r.found.offset if r.record is None else r.record.offset


def _when(r: _Record) -> str:
    if isinstance(r.found, Failure):
        return r.found.code
    return "end of log" if r.record is None else _time(r.record) or "no time"


RECORD: tuple[Column[_Record], ...] = (
    Column("CLUSTER", lambda r: r.cluster, name),
    Column("OFFSET", _offset, right=True),
    Column("TIME", _when),
    Column("BYTES", lambda r: r.record and r.record.size, right=True),
    Column("FINGERPRINT", lambda r: r.record and r.record.fingerprint(r.proof.parts)),
    Column("RECORDS", lambda r: r.word, str),
)


def _shade(r: _Record) -> Colour | None:
    return Colour.RED if r.proof.verdict in FAILED else None
