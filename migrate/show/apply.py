"""What `apply` and `rollback` say: results as lines of text, failures first. Pure."""

from collections import Counter
from collections.abc import Iterator

from migrate.apply.assess import Assessment, Fate
from migrate.apply.engine import ApplyResult
from migrate.apply.outcome import RowOutcome, RowStatus
from migrate.apply.undo import Elsewhere
from migrate.checks.clusters import topics_visible
from migrate.errors import EXIT_DONE, EXIT_PARTLY, EXIT_REFUSED
from migrate.model import Decision, Level, Row
from migrate.plan.attention import failback_text
from migrate.plan.plan import UNDO, Plan
from migrate.show.lines import at_most, names, number, tally, wrapped
from migrate.show.next_steps import Typed, only_anew
from migrate.show.table import Column, Table
from migrate.text import Colour, both_names, many, name, paint, safe

ROWS_SHOWN = 200
NAMED = 20

# A row of the plan, and what became of it.
COLUMNS: tuple[Column[tuple[Row, RowOutcome]], ...] = (
    Column("GROUP", lambda pair: both_names(pair[0].group, pair[0].group_on_target)),
    Column("TOPIC:PARTITION", lambda pair: f"{name(pair[0].target_topic)}:{pair[0].partition}"),
    Column("PRIOR-OFFSET", lambda pair: pair[0].target_prior, right=True),
    Column("NEW-OFFSET", lambda pair: pair[0].target_offset, right=True),
    Column("COMMITTED", lambda pair: pair[1].seen, right=True),
    Column("RESULT", lambda pair: pair[1].status),
)
_BAD = (RowStatus.FAILED, RowStatus.UNKNOWN)


def apply_lines(result: ApplyResult, typed: Typed, approval: str, width: int, colour: bool) -> Iterator[str]:
    """Yield the outcome of a run or dry run: verdict, what was refused, failed or unknown, then the rows."""
    header = result.assessment.plan.header
    if header.failback:
        yield from wrapped(f"FAILBACK: {failback_text(header)}", width, "", "  ")
    verdict, shade = _verdict(result)
    yield paint(verdict, shade, colour)
    label = "Undoes plan" if typed.command.endswith("rollback") else "Fingerprint"
    yield f"{label:<13}{paint(approval, Colour.BOLD, colour)}"
    yield f"Rows         {tally(result.counts(), sorted(RowStatus)) or 'none'}"
    yield f"Groups       {_fates(result.assessment)}"
    if result.trouble:
        yield from wrapped(paint(f"Ended early: {safe(result.trouble)}", Colour.RED, colour), width, "", "  ")
    if result.journal_gap:
        text = f"The journal beside the plan is incomplete. Missing: {safe(result.journal_gap)}"
        yield from wrapped(paint(text, Colour.RED, colour), width, "", "  ")
    if result.assessment.source_unseen:
        text = f"Source not seen: {safe(result.assessment.source_unseen)}"
        yield from wrapped(paint(text, Colour.YELLOW, colour), width, "", "  ")
        yield from wrapped("Whether its groups are stopped, and where they are, was not compared.", width, "  ", "  ")
    for note in result.assessment.notes:
        yield from wrapped(f"Note: {safe(note)}", width, "", "  ")
    yield ""
    yield from _refused(result.assessment, width, colour)
    yield from _moved(result, width, colour)
    yield from _rows(result, width, colour)
    yield from _next(result, typed, approval, width)


def _verdict(result: ApplyResult) -> tuple[str, Colour]:  # noqa: PLR0911 - one sentence for each outcome
    assessment, counts = result.assessment, result.counts()
    done, doing = ("RESTORED", "restored") if assessment.plan.header.kind == UNDO else ("APPLIED", "set")
    if result.exit_code == EXIT_DONE:
        moved = counts[RowStatus.MOVED_ON]
        written = counts[RowStatus.SET] + counts[RowStatus.REMOVED] + counts[RowStatus.ALREADY]
        if result.executed and (written or assessment.writable or assessment.source_unseen):
            since = f"; {moved} {'has' if moved == 1 else 'have'} moved on since an earlier run" if moved else ""
            text = f"{many(written, 'offset')} {_be(written)} as planned, read back{since}"
            if assessment.source_unseen:
                return f"{done}, SOURCE NOT SEEN: {text}", Colour.YELLOW
            return f"{done}: {text}", Colour.GREEN
        if not assessment.plan.rows:
            return "NOTHING TO DO: the plan has no row of any group", Colour.YELLOW
        if not assessment.writable:
            moved_on = many(counts[RowStatus.MOVED_ON], "offset")
            since = f"; {moved_on} moved on since: verify says whether consumers did that"
            return f"NOTHING LEFT TO DO{since if moved else ': every offset is as planned'}", Colour.GREEN
        pending = sum(len(g.pending) for g in assessment.writable)
        pending_of = f"{many(pending, 'offset')} of {many(len(assessment.writable), 'group')}"
        return f"DRY RUN: {pending_of} would be {doing}", Colour.GREEN
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
        parts = [f"{counts[status]} {word}" for status, word in words.items() if counts[status]]
        if assessment.open_blocks:
            parts.append(f"{many(len(assessment.open_blocks), 'block')} of the plan passed over")
        if result.journal_gap and not parts:
            return f"{done}, BUT THE JOURNAL IS INCOMPLETE: see below", Colour.YELLOW
        if not parts:
            return f"{done}, AND ENDED EARLY: all was set, see below", Colour.YELLOW
        return f"PARTLY {done}: {', '.join(parts)}", Colour.YELLOW
    return f"FAILED: no offset was {doing}", Colour.RED


def _fates(assessment: Assessment) -> str:
    counted = Counter(group.fate for group in assessment.groups)
    words = {
        Fate.WRITE: "to write", Fate.DONE: "done already", Fate.NOTHING: "with nothing to write",
        Fate.BLOCKED: "blocked in the plan", Fate.SPENT: "rolled back", Fate.UNREAD: "not compared",
        Fate.DRIFTED: "changed since the plan",
        Fate.NOT_UNDOABLE: "in need of Kafka's Java client, which is not available",
    }  # fmt: skip
    return ", ".join(f"{counted[fate]} {word}" for fate, word in words.items() if fate in counted) or "none"


def _refused(assessment: Assessment, width: int, colour: bool) -> Iterator[str]:
    if assessment.refusals:
        yield paint("Refused as a whole:", Colour.RED, colour)
        for reason in assessment.refusals:
            yield from wrapped(safe(reason), width, "  ", "    ")
        yield ""
        return
    if assessment.open_blocks:
        yield paint("Blocked in the plan, and shown by no row:", Colour.RED, colour)
        blocks = [f"{b.check}: {b.subject}: expected {b.expected}, seen {b.seen}" for b in assessment.open_blocks]
        yield from at_most([*map(safe, blocks)], NAMED, width)
        yield ""
    titles = {
        Fate.BLOCKED: "Blocked in the plan:",
        Fate.SPENT: "Rolled back, each alone:",
        Fate.UNREAD: "Could not be read:",
        Fate.DRIFTED: "Changed since the plan was made:",
        Fate.NOT_UNDOABLE: "Needs Kafka's Java client, there or on the way back:",
    }
    for fate, title in titles.items():
        groups = [g for g in assessment.refused if g.fate is fate]
        if not groups:
            continue
        yield paint(title, Colour.RED, colour)
        called = assessment.plan.rows.renamed()
        for group in groups:
            yield f"  {both_names(group.group, called.get(group.group, group.group))}"
            yield from at_most([*map(safe, group.reasons)], NAMED, width, "more reasons", "    ")
        yield ""


def _moved(result: ApplyResult, width: int, colour: bool) -> Iterator[str]:
    """Yield what `--moved restore` costs: offsets that are elsewhere now than they were set."""
    again, skipped, moves = 0, 0, []
    for group in result.assessment.writable if result.assessment.plan.header.kind == UNDO else ():
        commits = result.assessment.target_commits.get(group.group, {})
        for row in group.pending:
            commit = commits.get(row.target_partition)
            now = None if commit is None else commit.offset
            if now == row.target_prior or (row.needs_acknowledgement and now == row.target_offset):
                continue
            if now is not None and row.target_offset is not None:
                again += max(0, now - row.target_offset)
                skipped += max(0, row.target_offset - now)
            back = f"back to {row.target_offset}"
            if row.target_offset is None:
                back = "its offset is removed: auto.offset.reset decides"
            set_by = result.assessment.plan.header.set_by
            moves.append(f"{_place(row)}: {set_by} set {number(row.target_prior)}, now {number(now)}; {back}")
    if not moves:
        return
    sums = [f"{many(again, 'record')} {_be(again)} read again"] * bool(again)
    sums += [f"{skipped} {_be(skipped).upper()} SKIPPED"] * bool(skipped)
    title = f"Moved since, and restored all the same: {', '.join(sums) or 'see below'}"
    yield from wrapped(paint(title, Colour.RED if skipped else Colour.YELLOW, colour), width, "", "  ")
    yield from at_most(moves, NAMED, width)
    yield ""


def _place(row: Row) -> str:
    return f"{both_names(row.group, row.group_on_target)} {name(row.target_topic)}:{row.partition}"


def _rows(result: ApplyResult, width: int, colour: bool) -> Iterator[str]:
    """Yield the rows: all of a small plan; of a large one those that went wrong, and where the others are."""
    rows = result.rows
    shown = sorted(rows, key=lambda r: r.status not in _BAD)
    if len(rows) > ROWS_SHOWN:
        shown = [r for r in rows if r.status in _BAD]
        where = "the journal beside the plan has all" if result.executed else "mm2-migrate show PLAN has all"
        yield from wrapped(
            f"{many(len(rows), 'row')}: only those that failed or are unknown are listed ({len(shown)}); {where}.",
            width,
        )
    keys = {row.key for row in shown}
    planned = {row.key: row for row in result.assessment.plan.rows if row.key in keys} if keys else {}
    if shown:
        table = Table(COLUMNS, [(planned[row.key], row) for row in shown], width, narrow=COLUMNS[1:])
        yield from table.lines(colour, _shade, above=COLUMNS[0].cell)
        yield ""
    causes: dict[str, list[Row]] = {}
    for row in shown:
        if row.detail and row.status in _BAD:
            causes.setdefault(row.detail, []).append(planned[row.key])
    for detail, concerned in causes.items():
        more = f" and {many(len(concerned) - 1, 'more row')}" if concerned[1:] else ""
        yield from wrapped(f"{safe(concerned[0].subject)}{more}: {safe(detail)}", width, "  ", "    ")


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _shade(pair: tuple[Row, RowOutcome]) -> Colour | None:
    return Colour.RED if pair[1].status in _BAD else None


def _next(result: ApplyResult, typed: Typed, approval: str, width: int) -> Iterator[str]:
    plan, assessment = result.assessment.plan, result.assessment
    if result.executed:
        if result.exit_code == EXIT_DONE and plan.header.kind != UNDO:
            yield "Next: " + Typed("verify", typed.path, typed.options).line()
        elif any(row.status in (*_BAD, RowStatus.PLANNED) for row in result.rows) or result.journal_gap:
            yield from wrapped("The same command again takes up what is left; the journal says what is set.", width)
        elif result.exit_code == EXIT_DONE:
            yield from _restored(plan, typed, width)
        elif not assessment.is_whole:
            yield from _ways_on("", result, typed, width)
        return
    if typed.to_sign and assessment.writable and not assessment.refusals and result.exit_code != EXIT_REFUSED:
        yield f"Nothing was written. {typed.to_sign}"
    elif result.exit_code == EXIT_DONE and assessment.writable:
        yield "Nothing was written. To do it:"
        yield "  " + typed.line("--approve", approval, "--execute")
    elif assessment.writable and not assessment.refusals:
        yield from _ways_on("Nothing was written. ", result, typed, width)
        if plan.is_rehearsal:
            yield from wrapped(
                "Groups were alive when this plan was made, so the command that writes is not offered: stop them, then "
                "make a new plan.", width,
            )  # fmt: skip
        elif result.exit_code == EXIT_REFUSED:
            yield "  " + typed.line("--allow-partial")
        else:
            yield "  " + typed.line("--approve", approval, "--execute", "--allow-partial")
    elif not assessment.is_clean:
        yield from _ways_on("Nothing was written. ", result, typed, width)


def _restored(plan: Plan, typed: Typed, width: int) -> Iterator[str]:
    """Yield what comes after a rollback: the plan that was typed is spent, an undo that was saved can be verified."""
    source = name(plan.header.source_alias)
    yield from wrapped(f"Nothing was changed on {source}: these groups can go on there, from where they were.", width)
    after = Typed("verify", typed.path, typed.options) if typed.command == "apply" else Typed("show", typed.path, ())
    yield f"Next: {after.line()}"


_LASTING = (Fate.BLOCKED, Fate.SPENT, Fate.DRIFTED)


def _ways_on(begin: str, result: ApplyResult, typed: Typed, width: int) -> Iterator[str]:
    """Yield what helps with what is refused: the same command again, a new plan, or for an undo neither.

    A new plan would carry forward once more what an undo was to take back.
    """
    assessment, plan = result.assessment, result.assessment.plan
    if plan.header.kind == UNDO:
        yield from wrapped(begin + _ways_of_undo(assessment), width)
        return
    leave = (
        "--allow-partial leaves out what is refused."
        if assessment.writable and result.exit_code == EXIT_REFUSED
        else ""
    )
    lasting = [group.group for group in assessment.refused if group.fate in _LASTING and not group.may_pass]
    # Another cluster, or a source that does not answer, is no group's fault; a block of everything is.
    is_whole = bool(plan.cluster_blocks() or assessment.open_blocks)
    if not (lasting or is_whole):
        yield from wrapped(f"{begin}Fix the above, then run the same command again. {leave}".rstrip(), width)
        return
    why, command = only_anew(plan, typed.path, typed.options, () if is_whole else lasting)
    yield from wrapped(f"{begin}{why}:", width)
    yield f"  {command}"
    if leave:
        yield leave


def _ways_of_undo(assessment: Assessment) -> str:
    if not any(group.has_moved_on for group in assessment.groups):
        return "Fix the above, then run the same command again; --allow-partial leaves these groups as they are."
    others = any(group.fate in (Fate.DRIFTED, Fate.UNREAD) and not group.has_moved_on for group in assessment.groups)
    return ("Fix what else is named above. " * others) + (
        f"Offsets have moved since {assessment.plan.header.set_by} set them: consumers or other clients have "
        "committed there. Stop them, then either give up their progress (`rollback PLAN --moved restore`) or take it "
        "back to the source with them (`plan --failback`); --allow-partial leaves their groups as they are."
    )


def elsewhere_lines(elsewhere: Elsewhere, width: int, colour: bool) -> Iterator[str]:
    """Yield what a rollback cannot take back, to be said before its outcome; nothing where there is none."""
    if elsewhere.rows:
        groups = len({row.group for row in elsewhere.rows})
        verdict = (
            f"NOT ALL OF IT: {many(len(elsewhere.rows), 'offset')} of {many(groups, 'group')} "
            f"{_be(len(elsewhere.rows))} as planned, and this journal did not write "
            f"{'it' if len(elsewhere.rows) == 1 else 'them'}"
        )
        yield from wrapped(paint(verdict, Colour.YELLOW, colour), width, "", "  ")
        places = [f"{_place(row)}: at {row.target_offset}" for row in elsewhere.rows]
        yield from at_most(places, NAMED, width)
        yield from wrapped(
            "Was the plan applied from a copy in another folder? Roll back there too: that journal has what was there "
            "before. Another plan, or MM2, may have written them as well.", width, "  > ",
        )  # fmt: skip
    if elsewhere.unread:
        verdict = f"NOT LOOKED AT: {many(len(elsewhere.unread), 'group')} that this journal did not write"
        yield from wrapped(paint(verdict, Colour.YELLOW, colour), width, "", "  ")
        yield from wrapped(f"{names(elsewhere.unread, NAMED)}: {safe(elsewhere.why)}", width, "  ", "    ")
        yield from wrapped("Run the same command again to know whether they are as planned.", width, "  > ")
    if elsewhere:
        yield ""


def deleted_whole_lines(
    plan: Plan | None, undo: Plan, width: int, colour: bool, result: ApplyResult | None = None
) -> Iterator[str]:
    """Yield that a rollback may delete offsets that nobody sees; nothing where the target showed all of its topics.

    `plan` is the one that is undone, None where it is not there any more; `result` that of the undo, None where it is
    only saved. A group that was new to the target is deleted there, with what it has committed on hidden topics.
    """
    concerned = None if result is None else {group.group for group in result.assessment.writable}
    whole = [
        group for group, rows in undo.groups().items()
        if {*rows.column("decision")} == {Decision.REMOVE} and (concerned is None or group in concerned)
    ]  # fmt: skip
    alias, checks = undo.header.target_alias, plan.header.checks if plan is not None else ()
    found = [c for c in checks if c.check == topics_visible.name and c.subject == alias]
    if not whole or any(check.level is Level.PASS for check in found):
        return
    is_done, is_one = result is not None and result.executed, len(whole) == 1
    verb = ("was" if is_one else "were") if is_done else ("is" if is_one else "are")
    verdict = f"{many(len(whole), 'group')} that had no offset on {name(alias)} before {verb}"
    yield ""
    yield from wrapped(paint(f"MAY DELETE MORE: {verdict} deleted there", Colour.YELLOW, colour), width, "", "  ")
    why = safe(found[0].seen) if found else "whether it shows us all of its topics is not known"
    yield from wrapped(
        f"As of the plan, {why}. What these groups have committed since on a topic that this principal may not "
        "DESCRIBE is deleted with them, unseen.", width, "  ", "    ",
    )  # fmt: skip
    if not is_done:
        yield from wrapped(
            "`doctor` names the topics that are hidden: have DESCRIBE granted on them first.", width, "  > "
        )
