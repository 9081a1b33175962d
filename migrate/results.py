"""What `apply`, `rollback` and `verify` say: results as lines of text, failures first. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.application import ApplyResult, RowResult, RowStatus
from migrate.assessment import Assessment, Fate
from migrate.attention import failback_text
from migrate.drift import UNDO
from migrate.errors import EXIT_DONE, EXIT_PARTLY
from migrate.model import Row
from migrate.plan import Plan
from migrate.table import Column, layout, wrapped
from migrate.terminal import Colour, many, name, paint, safe, shell_word
from migrate.verification import GOOD, Finding, Standing, Verification

ROWS_SHOWN = 200
NAMED = 20

_BAD = (RowStatus.FAILED, RowStatus.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Typed:
    """The command as it was typed, for the next one to copy: command, plan path, and its cluster options."""

    command: str
    path: str
    options: tuple[str, ...]

    def line(self, *more: str) -> str:
        """Return a command line to copy."""
        words = ("mm2-migrate", self.command, self.path, *self.options, *more)
        return " ".join(shell_word(word) for word in words)


def apply_lines(result: ApplyResult, typed: Typed, approval: str, width: int, colour: bool) -> Iterator[str]:
    """Yield the outcome of a run or dry run: verdict, what was refused, failed or unknown, then the rows."""
    header = result.assessment.plan.header
    if header.failback:
        yield from wrapped(f"FAILBACK: {failback_text(header)}", width, "", "  ")
    verdict, shade = _verdict(result)
    yield paint(verdict, shade, colour)
    label = "Undoes plan" if typed.command == "rollback" else "Fingerprint"
    yield f"{label:<13}{paint(approval[:12], Colour.BOLD, colour)}{approval[12:]}"
    counts = ", ".join(f"{count} {status}" for status, count in sorted(result.counts().items()))
    fates = _fates(result.assessment)
    yield f"Rows         {counts or 'none'}"
    yield f"Groups       {fates}"
    if result.trouble:
        yield from wrapped(paint(f"Ended early: {safe(result.trouble)}", Colour.RED, colour), width, "", "  ")
    for note in result.assessment.notes:
        yield from wrapped(f"Note: {safe(note)}", width, "", "  ")
    yield ""
    yield from _refused(result.assessment, width, colour)
    yield from _moved(result, width, colour)
    yield from _rows(result, width, colour)
    yield from _next(result, typed, approval, width)


def verify_lines(found: Verification, plan: Plan, width: int, colour: bool) -> Iterator[str]:
    """Yield a verification: verdict, what is behind or missing, what moved on."""
    bad = [f for f in found.findings if f.standing not in GOOD]
    counts = ", ".join(f"{count} {standing}" for standing, count in sorted(found.counts().items()))
    total = len(found.findings)
    if bad:
        yield paint(f"NOT AS PLANNED: {len(bad)} of {total} offsets", Colour.RED, colour)
    elif total:
        yield paint(f"VERIFIED: {total} offsets of {len({f.group for f in found.findings})} groups", Colour.GREEN,
                    colour)  # fmt: skip
    else:
        yield paint("NOTHING TO VERIFY: the plan sets no offset", Colour.YELLOW, colour)
    yield f"Plan {plan.short_fingerprint} on {safe(plan.header.target_alias)}: {counts or 'no rows'}"
    if found.moving:
        yield from wrapped(f"Moving now: {_names(sorted(found.moving))}", width, "", "  ")
    moved = [f for f in found.findings if f.standing in GOOD and f.standing is not Standing.EQUAL]
    for title, findings in (("Not as planned:", bad), ("Moved on, because consumers run:", moved)):
        if findings:
            yield ""
            yield title
            yield from _findings(findings, width)


def _verdict(result: ApplyResult) -> tuple[str, Colour]:
    assessment, counts = result.assessment, result.counts()
    undo = assessment.plan.header.kind == UNDO
    done, doing = ("RESTORED", "restored") if undo else ("APPLIED", "set")
    if result.exit_code == EXIT_DONE:
        if result.executed:
            written = counts[RowStatus.SET] + counts[RowStatus.REMOVED] + counts[RowStatus.ALREADY]
            return f"{done}: {written} offsets stand as planned, read back", Colour.GREEN
        if not assessment.writable:
            return "NOTHING LEFT TO DO: every offset stands as planned", Colour.GREEN
        pending = sum(len(g.pending) for g in assessment.writable)
        return f"DRY RUN: {pending} offsets of {len(assessment.writable)} groups would be {doing}", Colour.GREEN
    if not result.executed and not assessment.is_clean:
        if result.exit_code == EXIT_PARTLY:
            if assessment.writable:
                return "DRY RUN: some groups would be left out, see below", Colour.YELLOW
            return "NOTHING LEFT TO DO for the groups that may be written; others are left out", Colour.YELLOW
        return "REFUSED: nothing was written", Colour.RED
    if result.exit_code == EXIT_PARTLY:
        words = {
            RowStatus.LEFT_OUT: "left out", RowStatus.FAILED: "failed", RowStatus.UNKNOWN: "unknown",
            RowStatus.PLANNED: "not reached",
        }  # fmt: skip
        told = [f"{counts[status]} {word}" for status, word in words.items() if counts[status]]
        return f"PARTLY {done}: {', '.join(told)}", Colour.YELLOW
    return f"FAILED: no offset was {doing}", Colour.RED


def _fates(assessment: Assessment) -> str:
    counted: dict[Fate, int] = {}
    for group in assessment.groups:
        counted[group.fate] = counted.get(group.fate, 0) + 1
    words = {
        Fate.WRITE: "to write", Fate.DONE: "done already", Fate.NOTHING: "with nothing to write",
        Fate.BLOCKED: "blocked in the plan", Fate.DRIFTED: "changed since the plan",
        Fate.NOT_UNDOABLE: "in need of a client that is not there",
    }  # fmt: skip
    return ", ".join(f"{counted[fate]} {word}" for fate, word in words.items() if fate in counted) or "none"


def _refused(assessment: Assessment, width: int, colour: bool) -> Iterator[str]:
    if assessment.refusals:
        yield paint("Refused as a whole:", Colour.RED, colour)
        for reason in assessment.refusals:
            yield from wrapped(safe(reason), width, "  ", "    ")
        yield ""
        return
    titles = {
        Fate.BLOCKED: "Blocked in the plan:",
        Fate.DRIFTED: "Changed since the plan was made:",
        Fate.NOT_UNDOABLE: "Needs Kafka's Java client, there or on the way back:",
    }
    for fate, title in titles.items():
        groups = [g for g in assessment.refused if g.fate is fate]
        if not groups:
            continue
        yield paint(title, Colour.RED, colour)
        for group in groups:
            yield f"  {name(group.group)}"
            for reason in group.reasons[:NAMED]:
                yield from wrapped(safe(reason), width, "    ", "      ")
            if len(group.reasons) > NAMED:
                yield f"    and {len(group.reasons) - NAMED} more reasons"
        yield ""


def _moved(result: ApplyResult, width: int, colour: bool) -> Iterator[str]:
    """Yield what `--moved restore` costs: consumers ran since the apply, and stand elsewhere than it set them."""
    again, skipped, told = 0, 0, []
    for group in result.assessment.writable if result.assessment.plan.header.kind == UNDO else ():
        commits = result.assessment.target_commits.get(group.group, {})
        for row in group.pending:
            commit = commits.get(row.target_partition)
            now = None if commit is None else commit.offset
            if now == row.target_prior:
                continue
            if now is not None and row.target_offset is not None:
                again += max(0, now - row.target_offset)
                skipped += max(0, row.target_offset - now)
            told.append(f"{name(row.group)} {name(row.target_topic)}:{row.partition}: {_way_back(row, now)}")
    if not told:
        return
    sums = [f"{again} records are read again"] * bool(again) + [f"{skipped} ARE SKIPPED"] * bool(skipped)
    title = f"Moved since the apply, and restored all the same: {', '.join(sums) or 'see below'}"
    yield from wrapped(paint(title, Colour.RED if skipped else Colour.YELLOW, colour), width, "", "  ")
    for line in told[:NAMED]:
        yield from wrapped(line, width, "  ", "    ")
    if len(told) > NAMED:
        yield f"  and {len(told) - NAMED} more"
    yield ""


def _way_back(row: Row, now: int | None) -> str:
    """Say what restoring a row that has moved means to its consumers. Counts are of offsets."""
    stood = f"apply set {_offset(row.target_prior)}, now {_offset(now)}"
    back = row.target_offset
    if back is None:
        return f"{stood}; its offset is removed: auto.offset.reset decides what is read again or skipped"
    if now is None:
        return f"{stood}; back to {back}"
    if back > now:
        return f"{stood}; back to {back}: {many(back - now, 'record')} skipped"
    return f"{stood}; back to {back}: {many(now - back, 'record')} read again"


def _rows(result: ApplyResult, width: int, colour: bool) -> Iterator[str]:
    """Yield the rows: all of a small plan; of a large one those that went wrong, and where the others are."""
    rows = result.rows
    planned = {row.key: row for row in result.assessment.plan.rows}
    shown = sorted(rows, key=lambda r: r.status not in _BAD) if len(rows) <= ROWS_SHOWN else []
    if len(rows) > ROWS_SHOWN:
        shown = [r for r in rows if r.status in _BAD]
        yield (
            f"{len(rows)} rows: only those that failed or are unknown are listed ({len(shown)}); "
            "the journal beside the plan has all."
        )
    if shown:
        yield from _table(shown, planned, colour)
        yield ""
    for row in shown:
        if row.error and row.status in _BAD:
            yield from wrapped(f"{safe(planned[row.key].subject)}: {safe(row.error)}", width, "  ", "    ")


def _table(shown: Sequence[RowResult], planned: dict[tuple[str, str, int], Row], colour: bool) -> Iterator[str]:
    def cells_of(result: RowResult) -> list[str]:
        row = planned[result.key]
        return [
            name(row.group), f"{name(row.target_topic)}:{row.partition}", _offset(row.target_prior),
            _offset(row.target_offset), _offset(result.seen_offset), str(result.status),
        ]  # fmt: skip

    headings = ("GROUP", "TOPIC:PARTITION", "PRIOR-OFFSET", "NEW-OFFSET", "COMMITTED", "RESULT")
    values = [cells_of(result) for result in shown]
    wide = [max(len(v[i]) for v in values) for i in range(len(headings))]
    columns = [Column(h, w, 2 <= i <= 4) for i, (h, w) in enumerate(zip(headings, wide, strict=True))]
    page = layout(columns, 10_000)
    yield from page.headings
    for result, value in zip(shown, values, strict=True):
        line = page.line(value)
        yield paint(line, Colour.RED, colour) if result.status in _BAD else line


def _next(result: ApplyResult, typed: Typed, approval: str, width: int) -> Iterator[str]:
    plan, assessment = result.assessment.plan, result.assessment
    if result.executed:
        if result.exit_code == EXIT_DONE and plan.header.kind != UNDO:
            yield "Next: " + Typed("verify", typed.path, typed.options).line()
        elif result.exit_code != EXIT_DONE:
            yield from wrapped("The same command again takes up what is left; the journal says what is set.", width)
        return
    if result.exit_code == EXIT_DONE and assessment.writable:
        yield "Nothing was written. To do it:"
        yield "  " + typed.line("--approve", approval[:12], "--execute")
    elif assessment.writable and not assessment.refusals:
        yield "Nothing was written. Mend the above and plan again, or leave those groups out:"
        yield "  " + typed.line("--approve", approval[:12], "--execute", "--allow-partial")
    elif not assessment.is_clean:
        yield "Nothing was written. Mend the above and plan again."


def _findings(findings: Sequence[Finding], width: int) -> Iterator[str]:
    for finding in findings[:ROWS_SHOWN]:
        where = f"{name(finding.group)} {name(finding.target_partition.topic)}:{finding.target_partition.partition}"
        yield from wrapped(f"{where}: {safe(finding.sentence)}", width, "  ", "    ")
    if len(findings) > ROWS_SHOWN:
        yield f"  and {len(findings) - ROWS_SHOWN} more"


def _names(names: Sequence[str]) -> str:
    tail = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(name(n) for n in names[:NAMED]) + tail


def _offset(offset: int | None) -> str:
    return "-" if offset is None else str(offset)
