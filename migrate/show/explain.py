"""Why a plan's row is what it is, in sentences with numbers, what became of it, and MM2's own commands. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from migrate.errors import UsageError
from migrate.match.equality import Equality
from migrate.match.protocol import Why
from migrate.mm2.commands import COMMAND, Mm2Site, resetting, stopping
from migrate.mm2.flow import RuntimeWord
from migrate.model import (
    GROUP_BLOCKED,
    LOG_START,
    PROVEN_SYNC,
    CheckResult,
    Decision,
    Grade,
    Level,
    Method,
    Row,
    Scope,
    TopicPartition,
    lag,
    may_skip,
)
from migrate.plan.plan import UNDO, Header, Plan
from migrate.plan.totals import is_of_later_commit, is_proven_best
from migrate.plan.translate import why_text
from migrate.show.aftermath import Aftermath
from migrate.show.group_table import activity_texts, state_texts
from migrate.show.lines import aligned, headed, wrapped
from migrate.survey.policies import AS_OF_GONE, AS_OF_NONE, UNTRANSLATABLE_REASONS
from migrate.text import Colour, both_names, capital, many, name, paint, safe, some

Labelled = tuple[str, str]
_COMPARED_BY = {
    Equality.ALL: "timestamp, key, value and headers",
    Equality.WITHOUT_HEADERS: "timestamp, key and value (headers are changed on the way)",
    Equality.WITHOUT_TIMESTAMP: "key, value and headers (timestamps are the target's own)",
    Equality.KEY_AND_VALUE: "key and value (headers and timestamps are changed on the way)",
    Equality.TIME_AND_KEY: "timestamp and key (values are changed on the way)",
}
_SHOWN = (Level.BLOCK, Level.WARN)
INDENT = "  "
_PROBLEM = {"Block": Colour.RED, "Blocked": Colour.RED, "Warning": Colour.YELLOW, "Accepted": Colour.YELLOW}


def explanation(
    plan: Plan,
    group: str,
    place: str | None = None,
    *,
    after: Aftermath | None = None,
    mm2_commands: bool = False,
    width: int = 80,
    colour: bool = False,
) -> Iterator[str]:
    """Yield the lines that explain a group, or its one row at `place` ("topic:partition", either side's name).

    `after` is what became of the plan, None where nobody looked. `mm2_commands` adds those that stop and reset MM2:
    owners of groups read this, and are not to copy them.
    Raises `UsageError` before the first line where the plan has no such group or row; it names some.
    """
    rows, header = _chosen_rows(plan, group, place), plan.header
    title = both_names(rows[0].group, rows[0].group_on_target)
    yield paint(f"{title}, in plan {plan.short_fingerprint}", Colour.BOLD, colour)
    yield from _paragraph(_group_lines(plan, rows), width, colour)
    if after:
        yield from _paragraph([("Since", _since(rows, after))], width, colour)
    for row in rows:
        yield ""
        shade = Colour.RED if row.decision is Decision.BLOCK or may_skip(row) else Colour.GREEN
        yield from wrapped(_row_title(row, header), width, colour=shade if colour else None)
        yield from _paragraph(_row_lines(row, header), width, colour)
    if not (header.by_mm2 and mm2_commands):
        return
    yield ""
    yield paint("MM2 ITSELF, which this tool never touches", Colour.BOLD, colour)
    yield from _commands("To stop it", stopping(site_of(header)), width)
    if place is None:
        yield from wrapped("How to make it copy a partition again: name TOPIC:PARTITION.", width, INDENT)
        return
    # on a failback, MM2 reads the plan's target
    partition = TopicPartition(rows[0].target_topic if header.failback else rows[0].source_topic, rows[0].partition)
    what = (
        f"To make it copy {name(partition.topic)}:{partition.partition} again from its start (its copies are then "
        "on the target twice, and a new plan is needed)"
    )
    yield from _commands(what, resetting(site_of(header), partition), width)


def _commands(what: str, lines: Iterable[str], width: int) -> Iterator[str]:
    """Yield sentences wrapped, and commands whole: they are copied."""
    yield from wrapped(f"{what}:", width, INDENT)
    for line in lines:
        if line.startswith(COMMAND):
            yield INDENT + line
        else:
            yield from wrapped(line, width, INDENT * 2)


def _paragraph(sentences: Iterable[Labelled], width: int, colour: bool) -> Iterator[str]:
    for label, text in sentences:
        shade = _PROBLEM.get(label) if colour else None
        yield from headed(label, shade, aligned([(INDENT + label, text)], width, len(INDENT) + 10))


def _chosen_rows(plan: Plan, group: str, place: str | None) -> Sequence[Row]:
    groups = plan.groups()
    rows = groups.get(group) or groups.get(plan.group_called(group))
    if not rows:
        near = [g for g in groups if group.lower() in g.lower()] or list(groups)
        raise UsageError(f"The plan has no group {name(group)}.", f"Groups: {some(map(name, near), 5) or 'none'}.")
    if place is None:
        return rows
    topic, colon, partition = place.rpartition(":")
    if not colon:
        topic, colon, partition = place.rpartition("-")
    chosen = [r for r in rows if str(r.partition) == partition and topic in (r.source_topic, r.target_topic)]
    if not chosen:
        have = some((f"{name(r.source_topic)}:{r.partition}" for r in rows), 10)
        raise UsageError(f"Group {name(group)} has no row {name(place)} in this plan.", f"TOPIC:PARTITION: {have}.")
    return chosen


def _group_lines(plan: Plan, chosen: Sequence[Row]) -> Iterator[Labelled]:
    """Yield what holds for more than one row of a group: its state on both sides, what blocks it, the checks.

    `chosen` are the rows to be explained, at least one; checks on topics are those of their topics.
    """
    group, header = chosen[0].group, plan.header
    topics = {topic for row in chosen for topic in (row.source_topic, row.target_topic)}
    subjects = {Scope.GROUP: {group}, Scope.TOPIC: topics}
    if states := state_texts(plan).get(group):
        yield "Group", f"{states} when the plan was made."
    if active := activity_texts(plan).get(group):
        yield "Activity", f"{capital(active)}."
    if chosen[0].target_group:
        target = name(header.target_alias)
        yield "Name", f"On {target} it is called {name(chosen[0].target_group)}, by --group-map."
    blocked = [r for r in plan.groups()[group] if r.decision is Decision.BLOCK]
    if blocked:
        blocking = [r for r in blocked if r.reason != GROUP_BLOCKED]
        which = some((f"{name(r.source_topic)}:{r.partition} ({safe(r.reason)})" for r in blocking), 5)
        yield "Blocked", f"By {which or 'its checks'}; a group is set whole or not at all."
    for text in kept_elsewhere(group, chosen):
        yield "Elsewhere", text
    yield from _checks(c for c in header.checks if c.scope is Scope.CLUSTER or c.subject in subjects.get(c.scope, ()))


def _since(rows: Sequence[Row], after: Aftermath) -> str:
    """Return what became of these rows of a group; of a spent plan, or one whose journal cannot be read, only that."""
    if not after.rows or after.spent:
        return safe(after.verdicts[0].text)
    statuses = Counter(after.rows[row.key].status for row in rows)
    text = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    group = rows[0].group
    if group in after.half_undone:
        return f"{text}; a rollback of this group alone has begun, and is not finished: run it again."
    return f"{text}; rolled back alone: this plan never sets it again." if group in after.spent_groups else f"{text}."


def _row_title(row: Row, header: Header) -> str:
    where = f"{name(row.group)}, {name(row.source_topic)}:{row.partition}"
    if row.target_topic != row.source_topic:
        where += f" -> {name(row.target_topic)}:{row.partition}"
    offset = "" if row.target_offset is None else f" {row.target_offset}"
    words = [str(row.decision).upper() + offset, *(str(w) for w in (row.method, row.grade) if w is not None)]
    return f"{where} ({name(header.source_alias)} -> {name(header.target_alias)}): {', '.join(words)}"


def _row_lines(row: Row, header: Header) -> Iterator[Labelled]:
    yield "Stood", _stood(row, header)
    if as_of := header.as_of:
        now = "nothing" if row.live_source_offset is None else str(row.live_source_offset)
        yield "Now", f"That is as of {safe(as_of)}; when the plan was made, {now} was committed."
    is_translated = header.kind != UNDO  # for an undo no sync, record or checkpoint was looked for
    of_mm2 = is_translated and header.by_mm2
    if is_translated:
        if of_mm2 and (syncs := _syncs(row, header)):
            yield "Syncs", syncs
        if compared := _compared(row, header):
            yield "Compared", compared
    yield "Decided", f"{safe(row.reason)}: {safe(row.sentence)}"
    if of_mm2:
        yield "MM2", _beside_mm2(row, header)
    yield "Applying", _applying(row, header)
    if is_translated and (others := "; ".join(_considered(row))):
        yield "Considered", f"{others}."
    yield from _checks(c for c in header.checks if c.scope is Scope.ROW and c.subject == row.subject)


def _stood(row: Row, header: Header) -> str:
    source = name(header.source_alias)
    if row.source_committed is None:
        if row.reason in (AS_OF_GONE, AS_OF_NONE):
            return safe(row.sentence)
        if header.source_down:
            return f"{source} was down: where the group stood there is not known."
        return f"The group never committed this partition on {source}."
    if row.source_log_start is None or row.source_log_end is None:
        known = "as MM2's checkpoint has it" if header.source_down else "and the log there was not known"
        return f"At {row.source_committed} on {source}, {known}."
    text = f"At {row.source_committed} on {source}, whose log was [{row.source_log_start}, {row.source_log_end})"
    behind = lag(row) or 0
    before = f"{many(behind, 'offset')} before its end" if behind else "at its end"
    text += f": {-behind} beyond its end." if behind < 0 else f": {before}."
    if row.source_committed < row.source_log_start:
        text += f" Retention had removed {many(row.source_log_start - row.source_committed, 'offset')} from there on."
    if row.source_metadata:
        text += f" The commit carries {many(len(row.source_metadata), 'character')} of metadata."
    return text


def _syncs(row: Row, header: Header) -> str:
    lower = _pair(row.lower_source_offset, row.lower_target_offset)
    upper = _pair(row.upper_source_offset, row.upper_target_offset)
    if not lower and not upper:
        asked = row.target_offset is not None and row.method is not Method.EXPLICIT
        return "No offset sync consistent with both logs surrounds this offset." if asked else ""
    proven = ", proven by their records" if row.lower_kind == PROVEN_SYNC else ""
    ends = [f"{lower} at or below it" if lower else "none at or below it", f"{upper} above" if upper else "none above"]
    text = f"MM2's nearest{proven}, {name(header.source_alias)} -> {name(header.target_alias)}: {', '.join(ends)}."
    if row.lower_kind == LOG_START and lower and row.target_log_start is not None:
        text += f" The target's log starts at {row.target_log_start}, behind the lower one."
    return text


def _pair(source_offset: int | None, target_offset: int | None) -> str:
    return "" if source_offset is None or target_offset is None else f"{source_offset} -> {target_offset}"


def _compared(row: Row, header: Header) -> str:
    if not row.why:
        if header.source_down:
            return f"Nothing: {name(header.source_alias)} was down."
        return "Nothing: this row was not placed by records."
    # A row that records placed says why where it says what was decided.
    said = why_text(row.why)
    parts = [] if said.removesuffix(".") in row.sentence else [said]
    if row.equality in list(Equality) and row.why != Why.LEAST_TIMESTAMP:
        parts.insert(0, f"Records had to agree in {_COMPARED_BY[Equality(row.equality)]}.")
    if row.missing_on_target:
        parts.append(f"{many(row.missing_on_target, 'owed record')} found no copy on {name(header.target_alias)}.")
    changes = [header.flow.get(word, "") for word in (RuntimeWord.CONVERTERS, RuntimeWord.TRANSFORMS)]
    if row.equality not in ("", Equality.ALL) and any(changes):
        parts.append(f"MM2's connector has {safe('; '.join(filter(None, changes)))}.")
    return " ".join(parts)


def _beside_mm2(row: Row, header: Header) -> str:
    if header.failback:
        return "It makes no checkpoints for the way back."
    if row.checkpoint_target_offset is None:
        return "It has no checkpoint here: consumers that follow it would start where auto.offset.reset says."
    checkpoint = f"Its newest checkpoint says {row.checkpoint_target_offset}"
    if row.checkpoint_source_offset is not None:
        checkpoint += f", made when the group stood at {row.checkpoint_source_offset}"
    if row.target_offset is None:
        return checkpoint + "."
    if is_of_later_commit(row.source_committed, row.checkpoint_source_offset):
        return (
            f"{checkpoint}, beyond the commit of this row: it is not compared, for the group went on since its commit "
            "was read, or was set back."
        )
    difference = row.checkpoint_target_offset - row.target_offset
    if difference == 0:
        return f"{checkpoint}: the same offset."
    if difference < 0:
        less = many(-difference, "offset")
        return f"{checkpoint}: {less} before this one, so following it would read as many more twice."
    proven = "and this one is proven: following MM2 would skip records"
    risk = proven if is_proven_best(row) else "which may skip records"
    return f"{checkpoint}: {many(difference, 'offset')} beyond this one, {risk}."


def _applying(row: Row, header: Header) -> str:
    target = name(header.target_alias)
    offset_now = "has no offset" if row.target_prior is None else f"is at {row.target_prior}"
    nothing = f"Writes nothing: the group {offset_now} on {target}"
    match row.decision:
        case Decision.SET:
            text = f"Commits {row.target_offset} on {target}, where the group {offset_now}"
            if row.target_log_start is not None and row.target_log_end is not None:
                text += f" and the log was [{row.target_log_start}, {row.target_log_end})"
            return f"{text}. {_rereads(row, header.replicator.name)}"
        case Decision.REMOVE:
            return f"Deletes the offset on {target}: the group had none there before."
        case Decision.KEEP:
            return f"{nothing}.{' Records between the two may be skipped.' if may_skip(row) else ''}"
        case Decision.SKIP:
            return f"{nothing}{', so auto.offset.reset decides there' if row.target_prior is None else ''}."
        case _:
            return f"Writes nothing for any partition of this group: it {offset_now} on {target}, and stays so."


def _rereads(row: Row, replicator: str) -> str:
    if row.rereads_at_most == 0:
        return "Nothing is read twice."
    if row.rereads_at_most is not None:
        twice = _read_twice(row.rereads_at_most)
        if row.grade is not Grade.EXACT:
            return f"At most {twice}."
        them = "it" if row.rereads_at_most == 1 else "them"
        return (
            f"{twice}, most often because {replicator} was restarted and copied {them} twice: a second copy lies among "
            "what the group is owed, and every later offset would skip some of that."
        )
    if row.rereads_estimate is not None:
        return f"About {_read_twice(row.rereads_estimate)}: an estimate, and no bound."
    return "What is read twice is not known."


def _read_twice(records: int) -> str:
    return f"{many(records, 'record')} {'is' if records == 1 else 'are'} read twice"


def _considered(row: Row) -> Iterator[str]:
    """Yield the other places, and what each would have meant; for a row without a place, the reviewer's choices."""
    if row.target_offset is None:
        if row.decision is Decision.BLOCK and row.reason in UNTRANSLATABLE_REASONS:
            yield f"a reviewer may choose --untranslatable {row.reason}=skip, or earliest or latest where it exists"
        return
    if row.decision is Decision.BLOCK and row.reason == "rewind":
        yield f"--rewind set goes back to {row.target_offset}, --rewind keep stays and may skip records"
    if row.target_log_start is None or row.target_log_end is None:
        return
    at, start, end = row.target_offset, row.target_log_start, row.target_log_end
    if start < at:
        yield f"the log's start {start} misses nothing and reads up to {many(at - start, 'offset')} more"
    if end > at:
        yield f"the log's end {end} would skip up to {many(end - at, 'offset')}"


def _checks(checks: Iterable[CheckResult]) -> Iterator[Labelled]:
    for check in checks:
        if check.counts_as in _SHOWN:
            word = "Accepted" if check.accepted else "Block" if check.counts_as is Level.BLOCK else "Warning"
            todo = f" {safe(check.todo)}" if check.todo else ""
            yield word, f"{safe(check.check)}: expected {safe(check.expected)}; seen: {safe(check.seen)}.{todo}"


def site_of(header: Header) -> Mm2Site:
    """Return MM2 of a plan: on a failback its source is what the plan writes."""
    aliases, bootstrap = (header.source_alias, header.target_alias), header.flow.get("target_bootstrap", "")
    if header.failback:
        aliases, bootstrap = aliases[::-1], header.flow.get("source_bootstrap", "")
    return Mm2Site(*aliases, bootstrap or "HOST:PORT", header.flow)


# Names that Apache Iceberg's Kafka Connect sink gives to its control group and topic unless it is told others.
_ICEBERG_GROUP, _ICEBERG_TOPIC = re.compile(r"cg-control-.*", re.DOTALL), re.compile(r".*control-iceberg.*", re.DOTALL)
_SNOWFLAKE = re.compile(r"connect-.*snowflake.*", re.DOTALL | re.IGNORECASE)


def kept_elsewhere(group: str, rows: Iterable[Row]) -> Iterator[str]:
    """Yield what a group's connector keeps outside Kafka, by the names that it usually has, and what to do."""
    topics = {row.source_topic for row in rows}
    if _ICEBERG_GROUP.fullmatch(group) or any(map(_ICEBERG_TOPIC.fullmatch, topics)):
        yield (
            f"{name(group)} looks like Apache Iceberg's sink. Its tables keep offsets of its control topic in their "
            "snapshots (kafka.connect.offsets.*), and no plan translates these: a control topic on the target begins "
            "at 0, and all below the number in the snapshot is dropped in silence (apache/iceberg#16360). Give the "
            "sink on the target a new control topic and a new control group; apply moves the group that reads the data."
        )
    if _SNOWFLAKE.fullmatch(group):
        yield (
            f"{name(group)} looks like Snowflake's sink. Snowflake keeps an offset token for each channel, named after "
            "topic and partition, and no plan translates these. Where topics have other names on the target, channels "
            "are new, and the group's commit counts; where names stay, the token wins: use another connector name."
        )
