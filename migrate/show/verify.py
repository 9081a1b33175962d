"""A verification as text and as JSON, and its proof by the records. Pure; no payload is known here.

The verdict comes first, then what is not as planned, what moved on, what was not written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from migrate.apply.not_written import NotWritten, WhyNotWritten
from migrate.apply.proof_logs import Next
from migrate.apply.record_proof import FAILED, RecordProof, RecordVerdict, RowProof
from migrate.apply.verify import Standing, Verification, VerifyFinding, joint_exit_code
from migrate.apply.verify_positions import PositionVerification, not_looked_at
from migrate.clock import is_date, iso
from migrate.match.equality import Part
from migrate.match.next_record import NextRecord
from migrate.model import Failure
from migrate.plan.plan import Plan
from migrate.show.layout import Column, Layout, columns, layout
from migrate.show.lines import at_most, names, tally, wrapped
from migrate.show.streamed_json import document_lines, fields_of
from migrate.show.verify_positions import position_document, unread_document
from migrate.text import Colour, both_names, cells, many, name, paint, safe

ROWS_SHOWN = 200
NAMED = 20
_WORDS = {
    WhyNotWritten.BLOCKED: "blocked in the plan",
    WhyNotWritten.SKIPPED: "skipped, as the plan says",
    WhyNotWritten.LEFT_OUT: "left out by apply: the journal tells of no write",
}
_EMPTY = frozenset({Standing.AHEAD_EMPTY, Standing.METADATA_EMPTY})


def verify_lines(verification: Verification, plan: Plan, width: int, colour: bool) -> Iterator[str]:
    """Yield a verification: verdict, findings by how bad they are, and what there was nothing to verify of."""
    text, shade = verdict(verification)
    yield from wrapped(paint(text, shade, colour), width, "", "  ")
    counts = [f"{count} {standing}" for standing, count in sorted(verification.counts().items())]
    unwritten = Counter(row.why for row in verification.not_written)
    counts += [f"{count} {why}" for why, count in sorted(unwritten.items())]
    yield from wrapped(
        f"Plan {plan.short_fingerprint} on {safe(plan.header.target_alias)}: {', '.join(counts) or 'no rows'}",
        width, "", "  ",
    )  # fmt: skip
    if verification.spent:
        yield "This plan was rolled back, so its offsets are not expected to be there: make a new plan."
    if verification.moving:
        yield from wrapped(f"Moving now: {names(sorted(verification.moving), NAMED)}", width, "", "  ")
    moved = [f for f in verification.findings if f.is_good and f.standing is not Standing.EQUAL]
    called = plan.rows.renamed()
    yield from _section("Not as planned:", (_sentence(f, called) for f in verification.bad), width)
    if any(f.standing in _EMPTY for f in verification.bad):
        yield from wrapped(
            "Somebody commits for a group without members, such as MM2's group sync, or its consumers have run and "
            "stopped since: only if you know that they have, say --consumers-ran.", width,
        )  # fmt: skip
    yield from _section("Moved on by consumers:", (_sentence(f, called) for f in moved), width)
    rows = Counter((row.group, row.why, row.reason) for row in verification.not_written)
    those = (
        f"{_both_names(group, called)}: {many(count, 'row')} {_WORDS[why]}{f': {safe(reason)}' if reason else ''}"
        for (group, why, reason), count in rows.items()
    )
    yield from _section("Not written, so not verified:", those, width)
    blocks = (
        f"{safe(b.check)} {name(b.subject)}: {safe(b.seen)}. {safe(b.todo)}".rstrip() for b in verification.blocks
    )
    yield from _section("Blocks of the plan that no row shows:", blocks, width, NAMED, "all")


def verdict(verification: Verification) -> tuple[str, Colour]:
    """Return the first line, and its colour: green only where everything that the plan has was verified."""
    total, rest = len(verification.findings), _rest(verification)
    if verification.spent:
        equal = verification.counts()[Standing.EQUAL]
        return f"ROLLED BACK: this plan is spent, and {equal} of {total} offsets are as it says", Colour.RED
    if verification.bad:
        tail = f"; and {rest}" if rest else ""
        return f"NOT AS PLANNED: {len(verification.bad)} of {total} offsets{tail}", Colour.RED
    text = f"VERIFIED: {total} offsets of {len({f.group for f in verification.findings})} groups"
    if rest:
        return f"{text}, BUT {rest}" if total else f"NOTHING VERIFIED: {rest}", Colour.YELLOW
    return (text, Colour.GREEN) if total else ("NOTHING TO VERIFY: the plan sets no offset", Colour.YELLOW)


def _rest(verification: Verification) -> str:
    parts = []
    if verification.not_written:
        groups = many(len({row.group for row in verification.not_written}), "group")
        verb = "was" if len(verification.not_written) == 1 else "were"
        parts.append(f"{many(len(verification.not_written), 'row')} of {groups} {verb} not written")
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
    """Yield the rows' next records, side by side where `width` allows, else one above the other."""
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
    aliases = (name(plan.header.source_alias), name(plan.header.target_alias))
    called = plan.rows.renamed()
    wide = _wide(proof.rows, aliases, called, width)
    if wide.width <= width:
        yield from wide.headings
    else:
        yield "Of each row the source's next record, and below it the target's at its committed"
        yield "offset: offset, time, bytes of key and value, fingerprint."
        if any(row.planned is not None for row in proof.rows):
            yield "Where another offset was planned, a third line has the record there."
    for row in proof.rows:
        lines = (
            map(wide.line, _lines(row, called)) if wide.width <= width else _one_above_the_other(row, aliases, called)
        )
        for line in lines:
            yield paint(line, Colour.RED, colour and row.verdict in FAILED)
        if row.verdict not in _GOOD:
            differing = f"They differ in {', '.join(row.differing)}. " if row.differing else ""
            yield from wrapped(f"{differing}{safe(row.sentence)}", width, "    ", "      ")


def verify_document(
    verification: Verification,
    plan: Plan,
    proof: RecordProof | None,
    looked_ms: int,
    positions: PositionVerification | None = None,
) -> Iterator[str]:
    """Return one JSON document in lines: what is committed beside what was planned, and the records if they were read.

    `looked_ms` is when the target was read; `rows_looked_at` are fewer than `rows_in_plan` where rows were selected.
    `left_out` are the rows that were not written, by the plan or by apply, `blocks` the open blocks without a row.
    `positions` are those of checkpoints that were named, None where none was.
    """
    codes = [result.exit_code for result in (verification, proof, positions) if result is not None]
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
    unwritten = (_place(row, called) | fields_of(row, "why", "reason", "sentence") for row in verification.not_written)
    lists: dict[str, Iterable[dict[str, Any]]] = {"offsets": findings, "left_out": unwritten}
    if proof is not None:
        head |= {"record_counts": proof.counts(), "record_rows_left_out": proof.left_out}
        lists["records"] = (_document(row, called) for row in proof.rows)
    if plan.positions:
        head["holders_not_looked_at"] = list(not_looked_at(plan, positions))
    if positions is not None:
        lists["positions"] = map(position_document, positions.findings)
        lists["checkpoints_not_read"] = map(unread_document, positions.unread)
    return document_lines(head, lists)


def _place(row: VerifyFinding | NotWritten, called: Mapping[str, str]) -> dict[str, Any]:
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


def _wide(proofs: Iterable[RowProof], aliases: tuple[str, str], called: Mapping[str, str], width: int) -> Layout:
    headings = (("OFFSET", True), ("TIME", False), ("BYTES", True), ("FINGERPRINT", False))
    sides = [Column(f"{alias}-{heading}", right=right) for alias in aliases for heading, right in headings]
    fields = [*columns("GROUP", "TOPIC:PARTITION", right=False), *sides, Column("RECORDS", right=False)]
    return layout(fields, (line for proof in proofs for line in _lines(proof, called)), width)


def _lines(proof: RowProof, called: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield a row's cells, and those of the line below it: the planned offset, where that is not the committed one."""
    row = proof.row
    place = [_both_names(row.group, called), f"{name(row.source_topic)}:{row.partition}"]
    yield [*place, *_record(proof, proof.source), *_record(proof, proof.target), str(proof.verdict)]
    if proof.planned is not None:
        yield [*[""] * 6, *_record(proof, proof.planned), PLANNED]


def _record(proof: RowProof, answer: Next | Failure) -> tuple[str, str, str, str]:
    if isinstance(answer, Failure):
        return "-", safe(answer.code), "-", "-"
    if (record := answer.record) is None:
        return str(answer.offset), "end of log", "-", "-"
    return str(record.offset), _time(record) or "no time", str(record.size), record.fingerprint(proof.parts)


def _one_above_the_other(proof: RowProof, aliases: tuple[str, str], called: Mapping[str, str]) -> Iterator[str]:
    row = proof.row
    yield f"{_both_names(row.group, called)}  {name(row.source_topic)}:{row.partition}  {proof.verdict}"
    widest = max(map(cells, aliases))
    sides = [(aliases[0], proof.source, ""), (aliases[1], proof.target, "")]
    if proof.planned is not None:
        sides.append((aliases[1], proof.planned, f"  {PLANNED}"))
    for alias, answer, end in sides:
        offset, time, size, fingerprint = _record(proof, answer)
        blanks = " " * (widest - cells(alias))
        yield f"  {alias}{blanks}  {offset:>12}  {time:<24}  {size:>9}  {fingerprint}{end}"
