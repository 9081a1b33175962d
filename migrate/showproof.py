"""`verify --records` as text, and all of `verify` as JSON. No reading here; no payload is known here."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from migrate.model import Failure
from migrate.nextrecord import NextRecord, Part
from migrate.plan import Plan
from migrate.recordproof import FAILED, Next, RecordProof, RowProof, Verdict
from migrate.table import Column, Layout, layout, wrapped
from migrate.terminal import Colour, cells, many, name, paint, safe
from migrate.verification import Verification

_GOOD = frozenset({Verdict.EQUAL, Verdict.AT_END})
_LEGEND = {
    Verdict.AT_END: "at-end: both logs end there, nothing is left to read",
    Verdict.EARLIER: "earlier: the target starts earlier, to be safe; what lies between is read again",
    Verdict.ALIKE: "alike: key and value are the same, the rest was changed on the way",
    Verdict.REMOVED: "removed: retention or compaction has taken one of the two since",
    Verdict.NOT_FOUND: "not-found: no equal record among the target's next ones (not copied yet, changed on the "
    "way, compacted, or further on)",
    Verdict.CHOSEN: "chosen: set by a reviewer's choice, so the records need not agree",
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
        yield "Of each row the source's next record, and below it the target's: offset, time,"
        yield "bytes of key and value, fingerprint."
    for row in proof.rows:
        lines = _side_by_side(row, wide) if wide.width <= width else _one_above_the_other(row, aliases)
        shade = Colour.RED if row.verdict in FAILED else None
        for line in lines:
            yield paint(line, shade, colour) if shade else line
        if row.verdict not in _GOOD:
            yield from wrapped(_why(row), width, "    ", "      ")


def verify_document(
    found: Verification, plan: Plan, proof: RecordProof | None, exit_code: int, spent: bool
) -> Iterator[str]:
    """Yield one JSON document: what is committed beside what was planned, and the records if they were read."""
    yield "{"
    head: dict[str, Any] = {
        "fingerprint": plan.fingerprint,
        "source": plan.header.source_alias,
        "target": plan.header.target_alias,
        "exit_code": exit_code,
        "rolled_back": spent,
        "counts": {str(standing): n for standing, n in found.counts().items()},
        "moving": sorted(found.moving),
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
        }
        for f in found.findings
    )
    yield from _list("offsets", findings, "," if proof is not None else "")
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
        widest = [max(w, cells(text)) for w, text in zip(widest, _cells(proof), strict=True)]
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


def _record(proof: RowProof, seen: Next | Failure) -> tuple[str, str, str, str]:
    if isinstance(seen, Failure):
        return "-", safe(seen.code), "-", "-"
    if seen.record is None:
        return str(seen.offset), "end of log", "-", "-"
    record = seen.record
    return str(record.offset), _time(record) or "no time", str(record.size), record.fingerprint(proof.parts)


def _side_by_side(proof: RowProof, wide: Layout) -> Iterator[str]:
    yield wide.line(_cells(proof))


def _one_above_the_other(proof: RowProof, aliases: tuple[str, str]) -> Iterator[str]:
    row = proof.row
    yield f"{name(row.group)}  {name(row.source_topic)}:{row.partition}  {proof.verdict}"
    widest = max(map(cells, aliases))
    for alias, seen in zip(aliases, (proof.source, proof.target), strict=True):
        offset, time, size, fingerprint = _record(proof, seen)
        blanks = " " * (widest - cells(alias))
        yield f"  {alias}{blanks}  {offset:>12}  {time:<24}  {size:>9}  {fingerprint}"


def _why(proof: RowProof) -> str:
    differing = f"They differ in {', '.join(proof.differing)}. " if proof.differing else ""
    return f"{differing}{safe(proof.sentence)}"
