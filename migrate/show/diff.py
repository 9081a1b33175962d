"""`show --diff`: what changed between two plans, as text and as JSON. Pure.

What was decided otherwise is listed row by row; offsets that merely moved are added up per group, and groups that one
plan alone has are counted.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from migrate.clock import iso
from migrate.model import CheckResult, Decision, Level, Row
from migrate.plan.diff import PlanDiff, RowChange, moved_by
from migrate.plan.plan import Plan
from migrate.plan.totals import totals
from migrate.row_table import row_document
from migrate.show.lines import aligned, number, tally, wrapped
from migrate.show.table import fields_of
from migrate.text import Colour, many, name, paint, safe

# A text, and whether it is red.
Entry = tuple[str, bool]


def diff_lines(diff: PlanDiff, paths: tuple[str, str], width: int = 80, colour: bool = False) -> Iterator[str]:
    """Yield the differences as text; `paths` are the earlier plan's file and the later one's."""
    yield paint(_verdict(diff), Colour.GREEN if diff.is_empty else Colour.BOLD, colour)
    yield from aligned(
        [
            (label, f"{name(path)}, {plan.short_fingerprint}, made {iso(plan.header.created_at_ms)}, {_counted(plan)}")
            for label, path, plan in zip(("Before", "Now"), paths, (diff.before, diff.now), strict=True)
        ],
        width,
    )
    sections = (
        ("NEW BLOCKS AND WARNINGS", _checks(diff.found)),
        ("DECIDED OTHERWISE", _judged(diff.judged)),
        ("OFFSETS THAT MOVED, BY GROUP", _moved(diff.moved)),
        ("NEW ROWS", _rows(diff.new, diff.before)),
        ("ROWS THAT ARE GONE", ((text, False) for text, _ in _rows(diff.gone, diff.now))),
        ("NO LONGER THERE", ((text, False) for text, _ in _checks(diff.mended))),
        ("CHOSEN OTHERWISE", _settings(diff)),
        ("OUTSIDE THIS PLAN'S FILTERS, NOT COMPARED", _outside(diff.outside)),
    )
    for title, entries in sections:
        for i, (text, is_grave) in enumerate(entries):
            if i == 0:
                yield from ("", paint(title, Colour.BOLD, colour))
            yield from wrapped(text, width, "  ", "    ", Colour.RED if colour and is_grave else None)


def diff_document(diff: PlanDiff) -> Iterator[str]:
    """Yield one JSON document; rows are as `show --format json` has them, changes with the fields that differ."""
    yield json.dumps(
        {
            "before": diff.before.fingerprint,
            "now": diff.now.fingerprint,
            "same_rows": diff.same_rows,
            "settings": [fields_of(s, "name", "before", "now") for s in diff.settings],
            "found": [fields_of(c, "check", "subject", "counts_as", "seen") for c in diff.found],
            "mended": [fields_of(c, "check", "subject", "counts_as", "seen") for c in diff.mended],
            "changed": [_change_document(c) for c in sorted((*diff.judged, *diff.moved), key=lambda c: c.now.key)],
            "new": [row_document(row) for row in diff.new],
            "gone": [row_document(row) for row in diff.gone],
            "outside": {"rows": len(diff.outside), "groups": len({row.group for row in diff.outside})},
        },
        indent=1,
    )


def _verdict(diff: PlanDiff) -> str:
    if diff.is_empty:
        return f"NOTHING CHANGED: {many(diff.same_rows, 'row')} the same"
    rows = len(diff.judged) + len(diff.moved) + len(diff.new) + len(diff.gone)
    if not rows:
        return f"CHANGED: no row; {many(diff.same_rows, 'row')} the same"
    counts = (
        (len(diff.judged), "decided otherwise"),
        (len(diff.moved), "only moved"),
        (len(diff.new), "new"),
        (len(diff.gone), "gone"),
        (diff.same_rows, "the same"),
    )
    return f"CHANGED: {', '.join(f'{n} {word}' for n, word in counts if n)}"


def _counted(plan: Plan) -> str:
    counted = totals(plan)
    return f"{many(counted.groups, 'group')}: {tally(counted.decisions, Decision) or 'no row'}"


def _settings(diff: PlanDiff) -> Iterator[Entry]:
    for setting in diff.settings:
        values = " -> ".join(safe(value) or "(none)" for value in (setting.before, setting.now))
        yield f"{safe(setting.name)}: {values}", False


def _checks(checks: Sequence[CheckResult]) -> Iterator[Entry]:
    for check in checks:
        is_grave = check.counts_as is Level.BLOCK
        word = "BLOCK" if is_grave else "ACCEPTED" if check.accepted else "WARN"
        yield f"{word}  {safe(check.check)}, {name(check.subject)}: {safe(check.seen)}", is_grave


def _judged(changes: Sequence[RowChange]) -> Iterator[Entry]:
    for change in changes:
        before, now = change.before, change.now
        parts = [f"{_decided(before)} -> {_decided(now)}"]
        if "grade" in change.judged:
            parts.append(f"{before.grade or 'no grade'} -> {now.grade or 'no grade'}")
        parts += [
            f"{field.replace('_', ' ')} {_value(before, field)} -> {_value(now, field)}"
            for field in ("reason", "method", "equality", "target_topic", "target_group", "why", "lower_kind")
            if field in change.judged
        ]
        if any(field.endswith("metadata") for field in change.judged):
            parts.append("other metadata")
        if "source_committed" in change.moved:
            parts.append(f"committed {_value(before, 'source_committed')} -> {_value(now, 'source_committed')}")
        is_grave = now.decision is Decision.BLOCK and before.decision is not Decision.BLOCK
        yield f"{_place(now)}  {'; '.join(parts)}", is_grave


def _outside(rows: Sequence[Row]) -> Iterator[Entry]:
    if rows:
        yield (
            f"{many(len(rows), 'row')} of {many(len({row.group for row in rows}), 'group')} of the earlier plan",
            False,
        )


def _rows(rows: Sequence[Row], other: Plan) -> Iterator[Entry]:
    """Yield rows that one plan alone has: of a group that the other lacks, how many."""
    groups = {row.group for row in other.rows}
    for group, listed in groupby(sorted(rows, key=lambda row: row.key), key=lambda row: row.group):
        if group not in groups:
            decided = Counter(row.decision for row in listed)
            yield f"{name(group)}  all {many(decided.total(), 'row')}: {tally(decided, Decision)}", False
            continue
        for row in listed:
            grade = f", {row.grade}" if row.grade else ""
            yield f"{_place(row)}  {_decided(row)}, {safe(row.reason)}{grade}", row.decision is Decision.BLOCK


def _moved(changes: Sequence[RowChange]) -> Iterator[Entry]:
    for group, listed in groupby(changes, key=lambda c: c.now.group):
        rows = list(listed)
        sums = [
            f"{word} {total:+}"
            for field, word in (
                ("source_committed", "committed"),
                ("source_log_end", "source log end"),
                ("target_offset", "planned"),
                ("target_log_end", "target log end"),
                ("target_prior", "on the target before"),
                ("live_source_offset", "committed by now"),
            )
            if (total := sum(moved_by(c, field) or 0 for c in rows))
        ]
        yield (
            f"{name(group)}  {many(len(rows), 'row')}: {', '.join(sums) or 're-reads, windows or starts of logs'}",
            False,
        )


def _place(row: Row) -> str:
    return f"{name(row.group)} {name(row.source_topic)}:{row.partition}"


def _decided(row: Row) -> str:
    return f"{row.decision} {number(row.target_offset)}"


def _value(row: Row, field: str) -> str:
    value = getattr(row, field)
    return "-" if value in (None, "") else safe(str(value))


def _change_document(change: RowChange) -> dict[str, Any]:
    before, now = row_document(change.before), row_document(change.now)
    fields = (*change.judged, *change.moved)
    return {
        **fields_of(change.now, "group", "source_topic", "partition"),
        "fields": {field: {"before": before[field], "now": now[field]} for field in fields},
    }
