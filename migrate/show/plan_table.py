"""A plan as text for a person at 3 a.m.: verdict, totals, what needs attention, every group, what to type next.

Nothing is ever cut: what does not fit the width goes on the next line. ASCII but for the names themselves.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from migrate.checks.groups import offsets_expiry
from migrate.model import CheckResult, Decision, Grade, Level, Row, Scope
from migrate.plan.attention import Attention, AttentionKind, failback_text, findings, listed, not_ruled_out, passed
from migrate.plan.plan import UNDO, Header, Plan, signatures_required, signed_so_far
from migrate.plan.totals import Mm2Comparison, Totals, forecast, totals
from migrate.show.aftermath import Beside, Headline
from migrate.show.group_table import group_lines
from migrate.show.lines import aligned, headed, tally, wrapped
from migrate.show.next_steps import next_steps
from migrate.text import Colour, bytes_text, many, name, paint, safe, shell_word

# A finding on 300 groups must not push the next one off the screen: so many lines of it are shown, and so many names.
EVIDENCE_SHOWN = 20
SUBJECTS_NAMED = 40
LABELS = 11  # columns of the labels at the left edge
KINDS = {Colour.GREEN: "good", Colour.YELLOW: "warn", Colour.RED: "bad"}
_COLOURS = {kind: colour for colour, kind in KINDS.items()}
_WHY_ESTIMATED = "what is read twice is a guess and bounds nothing."


@dataclass(frozen=True, slots=True)
class Page:
    """How to print: the plan's file name as it is typed, columns to fill, colour or not.

    `beside` is what the files beside the plan say, None where nobody looked: the plan was made just now.
    `cluster_options` are those of the command that made the plan, none where the only flow of flows.yaml stands for
    them; None where they are not known: a plan holds none.
    """

    path: str
    width: int = 80
    colour: bool = False
    cluster_options: tuple[str, ...] | None = None
    beside: Beside | None = None


def table(plan: Plan, rows: Sequence[Row] | None, page: Page) -> Iterator[str]:
    """Yield the whole table; `rows` are those selected, while verdict and totals are always the whole plan's.

    None leaves the groups out: what `plan` prints when it is done.
    """
    counted = totals(plan)
    if not plan.header.is_of_rows:
        yield from _head(plan, counted, page)
        yield from aligned(made_with(plan), page.width, LABELS)
        yield ""
        yield f"What they mean, and what they led to: mm2-migrate {plan.header.kind} status {shell_word(page.path)}"
        return
    yield from _top(plan, counted, page)
    if rows is not None:
        yield paint("GROUPS", Colour.BOLD, page.colour)
        if len(rows) != len(plan.rows):
            yield f"{len(rows)} of {many(len(plan.rows), 'row')} are shown, as --group and --only say."
        yield from group_lines(plan, rows, page.width, page.colour)
        yield ""
    if names := list(passed_lines(plan.header.checks, page)):
        yield from (*names, "")
    yield from _next(plan, counted, page)


def verdict(plan: Plan, counted: Totals) -> tuple[str, Colour]:
    """Return the plan's one-line verdict and its colour."""
    if not plan.header.is_of_rows:
        return f"RULES for `{safe(plan.header.kind)}`: no rows", Colour.GREEN
    undo = "FAILBACK: " if plan.header.failback else ""
    undo += "UNDO: " if plan.header.kind == UNDO else ""
    writes = counted.decisions.get(Decision.SET, 0) + counted.decisions.get(Decision.REMOVE, 0)
    if plan.cluster_blocks():
        checks = ", ".join(dict.fromkeys(c.check for c in plan.blocks() if c.scope is Scope.CLUSTER))
        return f"{undo}BLOCKED: everything, by {safe(checks)}", Colour.RED
    if not plan.is_clean_to_apply():
        what, noun = f"{many(len(plan.blocks()), 'check')}, see below", "group"
        if counted.groups_blocked:
            what, noun = f"{counted.groups_blocked} of {many(counted.groups, 'group')}", "other"
        rest = many(counted.groups_to_write, noun)
        tail = f"; {rest} can be applied with --allow-partial" if counted.groups_to_write else ""
        return f"{undo}BLOCKED: {what}{tail}", Colour.RED
    if not plan.rows:
        return f"{undo}NOTHING TO DO: no commit is inside the filters", Colour.RED if plan.is_empty else Colour.YELLOW
    if not writes:
        return f"{undo}NOTHING TO DO: no row changes an offset", Colour.GREEN
    text = f"{undo}READY TO APPLY: {many(writes, 'offset')} of {many(counted.groups_to_write, 'group')}"
    risks = []
    if counted.skipping_rows:
        risks.append(f"{many(counted.skipping_rows, 'row')} may skip records")
    if counted.rewinding_rows:
        risks.append(f"{many(counted.rewinding_rows, 'row')} {'rewinds' if counted.rewinding_rows == 1 else 'rewind'}")
    return (f"{text}; but {' and '.join(risks)}, see below", Colour.YELLOW) if risks else (text, Colour.GREEN)


def verdicts(plan: Plan, counted: Totals, beside: Beside | None) -> list[Headline]:
    """Return what is said first of a plan: what has happened to it, else its own verdict."""
    text, colour = verdict(plan, counted)
    kind = KINDS[colour]
    if beside is not None and beside.after:
        # What was true before the apply is not today's verdict any more: it comes last, without a colour.
        return [*beside.after.verdicts, Headline(f"The plan was: {text}", "past")]
    required, signed = signatures_required(plan.header.settings), () if beside is None else beside.signed
    if required:
        text, kind = f"{text}; SIGNED {len(signed)} OF {required}", kind if len(signed) >= required else "warn"
    return [Headline(text if beside is None else f"{text}; no journal beside this file", kind)]


def _head(plan: Plan, counted: Totals, page: Page) -> Iterator[str]:
    for said in verdicts(plan, counted, page.beside):
        yield from wrapped(said.text, page.width, colour=_COLOURS.get(said.kind) if page.colour else None)
    yield ""
    # painted before it is wrapped: the digits are one word, so the colour never crosses a line's end
    yield f"Fingerprint  {paint(plan.fingerprint, Colour.BOLD, page.colour)}"
    yield from aligned(identity(plan, page.path), page.width, LABELS)
    if page.beside is not None and (page.beside.signed or signatures_required(plan.header.settings)):
        so_far = signed_so_far(plan.header.settings, page.beside.signed)
        yield from aligned([("Signatures", so_far)], page.width, LABELS)
    if page.beside is not None and page.beside.after.spent_groups and not page.beside.after.spent:
        alone = f"alone, and never set again by this plan: {listed(sorted(page.beside.after.spent_groups))}"
        yield from aligned([("Rolled back", alone)], page.width, LABELS)
    yield ""


def _top(plan: Plan, counted: Totals, page: Page) -> Iterator[str]:
    yield from _head(plan, counted, page)
    # Numbers first: what the plan was made with is read by whoever doubts them.
    for label, line in (*totals_lines(plan, counted), *made_with(plan)):
        for text in aligned([(label, line)], page.width, LABELS):
            yield paint(text, Colour.RED, page.colour and label == "MISSING")
    yield ""
    attention, everything = findings(plan), f"mm2-migrate show {shell_word(page.path)} --format json"
    yield paint("NEEDS ATTENTION" if attention else "NOTHING NEEDS ATTENTION", Colour.BOLD, page.colour)
    yield from attention_lines(attention, plan.header.checks, page, everything)
    yield ""


def identity(plan: Plan, path: str) -> Iterator[tuple[str, str]]:
    """Yield what the plan in a file is of, as labels and texts: time, clusters, how long its steps may take."""
    h = plan.header
    made = datetime.fromtimestamp(h.created_at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    seconds = sum(h.timings.values())
    yield "Plan", f"{name(path)}, made {made} by mm2-migrate {safe(h.tool_version)} in {seconds:.0f} s"
    if h.undoes:
        yield "Undoes", f"the plan {safe(h.undoes)}"
    if h.failback:
        yield "Failback", failback_text(h)
    if as_of := h.as_of:
        yield "As of", f"commits as they stood at {safe(as_of)}: records that were read since then are read again"
    source = "down, not read" if h.source_down else f"cluster id {safe(h.source_cluster_id) or 'not read'}"
    yield "Source", f"{name(h.source_alias)}, {source}"
    yield "Target", f"{name(h.target_alias)}, cluster id {safe(h.target_cluster_id) or 'not read'}"
    if (expected := forecast(plan)) is not None:
        yield "Forecast", f"{expected.text}: by the timings of this plan"


def made_with(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield what a plan was made with, as labels and texts: MM2's names, settings, waivers."""
    h = plan.header
    if h.flow:
        label = "MM2" if h.by_mm2 else "Replicator"
        yield label, "; ".join(f"{safe(k)}={safe(v)}" for k, v in sorted(h.flow.items()) if v)
    if h.settings:
        yield "Settings", "; ".join(f"{safe(k)}={safe(v)}" for k, v in sorted(h.settings.items()))
    yield "Waivers", ", ".join(safe(w) for w in h.waivers) or "none"


def totals_lines(plan: Plan, t: Totals) -> Iterator[tuple[str, str]]:
    """Yield the plan in numbers, as labels and sentences; "MISSING" only where commits do not add up."""
    filtered = sum(t.filtered.values())
    by_filter = ", ".join(f"{name(k)} {n}" for k, n in t.filtered.items())
    added = f" + {t.added} with no commit, added" if t.added else ""
    sums = f"{t.commits_read} read{added} = {many(t.rows, 'row')} + {filtered} filtered"
    yield "Commits", f"{sums} ({by_filter})" if by_filter else sums
    if not t.add_up:
        yield "MISSING", "These do not add up: commits are missing from this plan. Do not apply it; report this."
    yield "Rows", tally(t.decisions, Decision) or "none"
    left = t.groups - t.groups_to_write - t.groups_blocked
    yield "Groups", f"{t.groups_to_write} to write, {t.groups_blocked} blocked, {left} left as they are"
    if renamed := len(plan.rows.renamed()):
        yield "Names", f"{many(renamed, 'group')} with another name on {name(plan.header.target_alias)}, see below"
    if not t.rows:
        return
    untranslated = t.grades.get(None, 0)
    graded = [f"{t.grades[g]} {g}" for g in Grade if t.grades.get(g)]
    yield "Grades", ", ".join(graded + [f"{untranslated} without one"] * bool(untranslated))
    yield "Records", "; ".join(_compared(plan.header))
    yield "Re-reads", "; ".join(_rereads(t)) or "none: nothing is translated"
    if plan.header.has_checkpoints:
        yield "MM2 itself", "; ".join(_beside_mm2(t.mm2))
    for check in plan.header.checks:
        if check.check == offsets_expiry.name and check.level is Level.PASS:
            yield "Expiry", f"{safe(check.subject)}: {safe(check.seen)}"
    if t.grades.get(Grade.ESTIMATED):
        yield "Estimated", why_estimated(plan.header)


def why_estimated(header: Header) -> str:
    """Return what offsets of grade `estimated` rest on in this plan."""
    premise = header.replicator.premise
    return f"These rows' records were not compared. Their offsets skip nothing as long as {premise}; {_WHY_ESTIMATED}"


def _compared(header: Header) -> Iterator[str]:
    cost = header.comparison
    if not cost:
        yield "none were compared"
        return
    done = "read for their timestamps" if header.settings.get("by") == "timestamp" else "compared"
    yield (
        f"{cost['source_records_read']:,} of {name(header.source_alias)} and {cost['target_records_read']:,} of "
        f"{name(header.target_alias)} {done} on {many(cost['partitions'], 'partition')}"
    )
    if cost["left_out"]:
        yield f"{many(cost['left_out'], 'partition')} left out by --max-fetch"
    expected = f"{bytes_text(cost['source_bytes_estimated'])} and {bytes_text(cost['target_bytes_estimated'])}"
    fetched = cost["source_bytes_fetched"], cost["target_bytes_fetched"]
    if any(fetched):  # not every client tells
        yield f"{bytes_text(fetched[0])} and {bytes_text(fetched[1])} fetched, {expected} expected"
    else:
        yield f"about {expected} fetched"


def _rereads(t: Totals) -> Iterator[str]:
    if t.bounded_rows:
        yield f"at most {many(t.rereads_bounded, 'record')} on {many(t.bounded_rows, 'row')}"
    if t.estimated_rows:
        yield f"about {many(t.rereads_estimated, 'record')} on {many(t.estimated_rows, 'row')} (estimate)"
    if t.unknown_rows:
        yield f"unknown on {many(t.unknown_rows, 'row')}"


def _beside_mm2(mm2: Mm2Comparison) -> list[str]:
    """Say what following MM2's newest checkpoints would cost, against this plan."""
    behind, skipping, beyond = (many(n, "row") for n in (mm2.behind_rows, mm2.skipping_rows, mm2.beyond_rows))
    parts = (
        (mm2.behind_rows, f"its checkpoints would re-read {mm2.behind_records:,} records more on {behind}"),
        (mm2.skipping_rows, f"on {skipping} they would skip records that the group has not read"),
        (mm2.beyond_rows, f"on {beyond} they lie {mm2.beyond_records:,} records beyond this plan "
                          "(they may skip, or the plan is more careful)"),
        (mm2.equal_rows, f"the same offset on {many(mm2.equal_rows, 'row')}"),
        (mm2.other_commit_rows, f"not compared on {many(mm2.other_commit_rows, 'row')}: of a later commit"),
        (mm2.absent_rows, f"no checkpoint for {many(mm2.absent_rows, 'row')}"),
    )  # fmt: skip
    return [text for rows, text in parts if rows] or ["nothing to compare"]


def attention_lines(
    attention: Iterable[Attention],
    checks: Sequence[CheckResult],
    page: Page,
    command: str,
    most_names: int = SUBJECTS_NAMED,
) -> Iterator[str]:
    """Yield findings, then the checks that say nothing; `command` prints what is left out."""
    for finding in attention:
        yield from _finding_lines(finding, page, command, most_names)
    for unsure in not_ruled_out(checks):
        yield from wrapped(f"Not ruled out: {unsure}", page.width, "", "  ")


def passed_lines(checks: Sequence[CheckResult], page: Page) -> Iterator[str]:
    """Yield the names of the checks that passed; nothing where none did."""
    if names := passed(checks):
        yield from wrapped(f"Passed: {', '.join(names)}", page.width, "", "  ")


def _finding_lines(finding: Attention, page: Page, command: str, most_names: int) -> Iterator[str]:
    colour = Colour.RED if finding.kind.is_grave else Colour.YELLOW
    head = f"{finding.kind}  {safe(finding.name)}, {finding.what}"
    expected = f": expected {safe(finding.expected)}" if finding.expected else ""
    yield from headed(head, colour if page.colour else None, wrapped(head + expected, page.width, "", "  "))
    # a block stops by itself; a row that skips or rewinds will be applied, so each one is red
    red = finding.kind in (AttentionKind.MAY_SKIP, AttentionKind.REWIND)
    for line in _evidence(finding, page.width, command, most_names):
        yield paint(line, Colour.RED, page.colour and red)
    if finding.todo:
        yield from wrapped(safe(finding.todo), page.width, "  > ")


def _evidence(finding: Attention, width: int, command: str, room: int) -> Iterator[str]:
    evidence = finding.evidence
    for one in evidence[:EVIDENCE_SHOWN]:
        if len(one.subjects) == 1:
            yield from wrapped(f"{name(one.subjects[0])}: {safe(one.seen)}", width, "    ", "      ")
            continue
        who = "all" if len(evidence) == 1 else many(len(one.subjects), finding.noun)
        yield from wrapped(f"{who}: {safe(one.seen)}", width, "    ", "      ")
        named = min(len(one.subjects), max(room, 1))
        room -= named
        rest = len(one.subjects) - named
        more = f", and {rest} more: {command}" if rest else ""
        yield from wrapped(one.listed(named) + more, width, "      ")
    if left := sum(len(one.subjects) for one in evidence[EVIDENCE_SHOWN:]):
        yield from wrapped(f"and {left} more: {command}", width, "    ", "      ")


def _next(plan: Plan, t: Totals, page: Page) -> Iterator[str]:
    """Yield the commands to type next, whole on one line each: they are copied."""
    yield paint("NEXT", Colour.BOLD, page.colour)
    sentences, commands = next_steps(plan, t, page.path, page.cluster_options, page.beside)
    for sentence in sentences:
        yield from wrapped(sentence, page.width)
    for purpose, command in commands:
        yield f"  {command}"
        yield from wrapped(purpose, page.width, "      ")
