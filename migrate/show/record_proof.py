"""`verify --records` as text, and all of `verify` as JSON. No reading here; no payload is known here."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from migrate.apply.record_proof import FAILED, Next, RecordProof, RowProof, Verdict
from migrate.apply.verify import Verification, joint_exit_code
from migrate.errors import EXIT_DONE
from migrate.match.next_record import NextRecord, Part
from migrate.model import Failure
from migrate.plan.plan import Plan
from migrate.show.table import Column, Layout, layout, wrapped
from migrate.text import Colour, cells, many, name, paint, safe

_GOOD = frozenset({Verdict.EQUAL, Verdict.AT_END})
PLANNED = "planned"
_LEGEND = {
    Verdict.AT_END: "at-end: both logs end there, nothing is left to read",
    Verdict.EARLIER: "earlier: the target starts earlier, to be safe; what lies between is read again",
    Verdict.ALIKE: "alike: key and value are the same, the rest was changed on the way",
    Verdict.REMOVED: "removed: retention or compaction has taken one of the two since",
    Verdict.NOT_FOUND: "not-found: no equal record among the target's next ones (not copied yet, changed on the "
    "way, compacted, or further on)",
    Verdict.CHOSEN: "chosen: set by a reviewer's choice, so the records need not agree",
    Verdict.MOVED_ON: "moved-on: consumers have read on; what they started from, at the planned offset, was compared",
    Verdict.BEYOND: "beyond: the committed offset is beyond the planned one, and no consumer accounts for it",
    Verdict.UNCOMMITTED: "uncommitted: the group has no committed offset there",
    Verdict.DIFFERENT: "different: the row was graded exact, and the records are not the same",
    Verdict.UNREADABLE: "unreadable: a log could not be read, so nothing is proven",
}


def proof_lines(proof: RecordProof, plan: Plan, width: int, colour: bool) -> Iterator[str]:
    """Yield the rows' next records, side by side where `width` allows, else one above the other."""
    total, counts = len(proof.rows), proof.counts()
    if not total:
        yield paint("NO RECORDS TO COMPARE: no row has an offset on both sides", Colour.YELLOW, colour)
        return
    same, failed = sum(counts[v] for v in _GOOD), sum(counts[v] for v in FAILED)
    if failed:
        yield paint(f"RECORDS NOT AS PLANNED: {failed} of {many(total, 'row')}", Colour.RED, colour)
    else:
        text = f"RECORDS: {same} of {many(total, 'row')} read the same next record on both sides"
        yield paint(text, Colour.GREEN if same == total else Colour.YELLOW, colour)
    yield from wrapped(", ".join(f"{counts[v]} {v}" for v in Verdict if counts[v]), width, "", "  ")
    for verdict, text in _LEGEND.items():
        if counts[verdict]:
            yield from wrapped(text, width, "  ", "    ")
    if proof.left_out:
        yield f"{many(proof.left_out, 'more row')} not looked at, as --limit says."
    yield ""
    aliases = (name(plan.header.source_alias), name(plan.header.target_alias))
    wide = _wide(proof.rows, aliases, width)
    if wide.width <= width:
        yield from wide.headings
    else:
        yield "Of each row the source's next record, and below it the target's at its committed"
        yield "offset: offset, time, bytes of key and value, fingerprint."
        if any(row.planned is not None for row in proof.rows):
            yield "Where another offset was planned, a third line has the record there."
    for row in proof.rows:
        lines = _side_by_side(row, wide) if wide.width <= width else _one_above_the_other(row, aliases)
        shade = Colour.RED if row.verdict in FAILED else None
        for line in lines:
            yield paint(line, shade, colour) if shade else line
        if row.verdict not in _GOOD:
            yield from wrapped(_why(row), width, "    ", "      ")


def verify_document(found: Verification, plan: Plan, proof: RecordProof | None) -> Iterator[str]:
    """Yield one JSON document: what is committed beside what was planned, and the records if they were read.

    `left_out` are the rows that were not written, by the plan or by apply, `blocks` the open blocks without a row.
    """
    yield "{"
    head: dict[str, Any] = {
        "fingerprint": plan.fingerprint,
        "source": plan.header.source_alias,
        "target": plan.header.target_alias,
        "exit_code": joint_exit_code(found.exit_code, proof.exit_code if proof else EXIT_DONE),
        "rolled_back": found.spent,
        "counts": {str(standing): n for standing, n in found.counts().items()},
        "moving": sorted(found.moving),
        "blocks": [
            {"check": c.check, "subject": c.subject, "expected": c.expected, "seen": c.seen, "todo": c.todo}
            for c in found.blocks
        ],
    }
    if proof is not None:
        head |= {
            "record_counts": {str(verdict): n for verdict, n in proof.counts().items()},
            "record_rows_left_out": proof.left_out,
        }
    for key, value in head.items():
        yield f'"{key}": {json.dumps(value)},'
    findings = (
        {
            "group": f.group,
            "target_topic": f.target_partition.topic,
            "partition": f.target_partition.partition,
            "expected": f.expected,
            "seen": f.seen,
            "standing": str(f.standing),
            "sentence": f.sentence,
            "journal": str(f.journal),
        }
        for f in found.findings
    )
    unwritten = (
        {
            "group": row.group,
            "target_topic": row.target_partition.topic,
            "partition": row.target_partition.partition,
            "why": str(row.why),
            "reason": row.reason,
            "sentence": row.sentence,
        }
        for row in found.not_written
    )
    yield from _list("offsets", findings, ",")
    yield from _list("left_out", unwritten, "," if proof is not None else "")
    if proof is not None:
        yield from _list("records", map(_document, proof.rows), "")
    yield "}"


def _list(key: str, entries: Iterable[Mapping[str, Any]], end: str) -> Iterator[str]:
    yield f'"{key}": ['
    waiting = ""
    for entry in entries:
        if waiting:
            yield waiting + ","
        waiting = json.dumps(entry)
    if waiting:
        yield waiting
    yield f"]{end}"


def _document(proof: RowProof) -> dict[str, Any]:
    row = proof.row
    return {
        "group": row.group,
        "source_topic": row.source_topic,
        "target_topic": row.target_topic,
        "partition": row.partition,
        "grade": None if row.grade is None else str(row.grade),
        "verdict": str(proof.verdict),
        "sentence": proof.sentence,
        "compared": [str(part) for part in Part if part in proof.parts],
        "differing": [str(part) for part in proof.differing],
        "source": _side(proof, proof.source),
        "target": _side(proof, proof.target),
        "planned": None if proof.planned is None else _side(proof, proof.planned),
        "found_at": proof.found_at,
        "records_before": proof.records_before,
    }


def _side(proof: RowProof, seen: Next | Failure) -> dict[str, Any]:
    if isinstance(seen, Failure):
        return {"error": f"{seen.code}: {seen.message}"}
    record = seen.record
    return {
        "looked_from": seen.offset,
        "log_start": seen.log_start,
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
    if record.timestamp < 0:
        return None
    try:
        at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{at:%Y-%m-%dT%H:%M:%S}.{record.timestamp % 1000:03}Z"


def _wide(proofs: Iterable[RowProof], aliases: tuple[str, str], width: int) -> Layout:
    headings = ["GROUP", "TOPIC:PARTITION"]
    for alias in aliases:
        headings += [f"{alias}-OFFSET", f"{alias}-TIME", f"{alias}-BYTES", f"{alias}-FINGERPRINT"]
    headings.append("RECORDS")
    widest = [0] * len(headings)
    for proof in proofs:
        for line in (_cells(proof), _planned_cells(proof)):
            widest = [max(w, cells(text)) for w, text in zip(widest, line, strict=True)]
    numbers = {2, 4, 6, 8}
    return layout([Column(h, w, i in numbers) for i, (h, w) in enumerate(zip(headings, widest, strict=True))], width)


def _cells(proof: RowProof) -> list[str]:
    row = proof.row
    return [
        name(row.group),
        f"{name(row.source_topic)}:{row.partition}",
        *_record(proof, proof.source),
        *_record(proof, proof.target),
        str(proof.verdict),
    ]


def _planned_cells(proof: RowProof) -> list[str]:
    """Return the line below a row's own, of the planned offset; blank where that is the committed one."""
    if proof.planned is None:
        return [""] * 11
    return ["", "", "", "", "", "", *_record(proof, proof.planned), PLANNED]


def _record(proof: RowProof, seen: Next | Failure) -> tuple[str, str, str, str]:
    if isinstance(seen, Failure):
        return "-", safe(seen.code), "-", "-"
    if seen.record is None:
        return str(seen.offset), "end of log", "-", "-"
    record = seen.record
    return str(record.offset), _time(record) or "no time", str(record.size), record.fingerprint(proof.parts)


def _side_by_side(proof: RowProof, wide: Layout) -> Iterator[str]:
    yield wide.line(_cells(proof))
    if proof.planned is not None:
        yield wide.line(_planned_cells(proof))


def _one_above_the_other(proof: RowProof, aliases: tuple[str, str]) -> Iterator[str]:
    row = proof.row
    yield f"{name(row.group)}  {name(row.source_topic)}:{row.partition}  {proof.verdict}"
    widest = max(map(cells, aliases))
    lines = [(aliases[0], proof.source, ""), (aliases[1], proof.target, "")]
    if proof.planned is not None:
        lines.append((aliases[1], proof.planned, f"  {PLANNED}"))
    for alias, seen, end in lines:
        offset, time, size, fingerprint = _record(proof, seen)
        blanks = " " * (widest - cells(alias))
        yield f"  {alias}{blanks}  {offset:>12}  {time:<24}  {size:>9}  {fingerprint}{end}"


def _why(proof: RowProof) -> str:
    differing = f"They differ in {', '.join(proof.differing)}. " if proof.differing else ""
    return f"{differing}{safe(proof.sentence)}"
