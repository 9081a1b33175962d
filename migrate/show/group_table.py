"""Every group of a plan as text: one line per group, then its rows under the headings of kafka-consumer-groups.

Two layouts: on a wide page every row names its group and topic (so that `grep` finds them); on a narrow one,
or beside long names, the topic is above its rows, and what is not the usual below a row.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from migrate.clock import iso
from migrate.match.protocol import Why
from migrate.model import Decision, Grade, Row, lag, may_skip, rewinds
from migrate.plan.plan import Plan, PlannedActivity
from migrate.plan.totals import group_totals
from migrate.plan.translate import TRANSLATED
from migrate.row_table import GroupRows
from migrate.show.lines import headed, tally, wrapped
from migrate.show.table import INDENT, Column, Table, field
from migrate.survey.group_facts import pace_text
from migrate.text import Colour, both_names, duration_text, many, name, safe

_LEGEND = (
    "CURRENT-OFFSET, LOG-END-OFFSET and LAG are the source's. TARGET-OFFSET is this plan's{}. RE-READS: a bare number "
    "is proven, <= a proven bound, ~ an estimate."
)
LEGEND = _LEGEND.format(", MM2-OFFSET what MM2's newest checkpoint says")
LEGEND_WITHOUT_CHECKPOINTS = _LEGEND.format("")
LIVE_LEGEND = (
    "CURRENT-OFFSET is that of the time that the plan goes by, LIVE-OFFSET what was committed when it was made."
)


def group_lines(plan: Plan, rows: Sequence[Row], width: int, colour: bool) -> Iterator[str]:
    """Yield each group's line and rows. A group's line counts all its rows, `rows` are those to show."""
    if not rows:
        yield "No rows."
        return
    compared = plan.header.has_checkpoints
    yield from wrapped(LEGEND if compared else LEGEND_WITHOUT_CHECKPOINTS, width)
    columns = NUMBERS if compared else tuple(column for column in NUMBERS if column is not CHECKPOINT)
    if plan.header.as_of:
        yield from wrapped(LIVE_LEGEND, width)
        columns = (*columns[:2], LIVE, *columns[2:])
    is_renamed = any(row.source_topic != row.target_topic for row in rows)
    table = wide = Table(_wide_columns(is_renamed, columns), rows, width)
    if not wide.fits:
        table = Table((*columns, DECISION), rows, width, INDENT, gap=1)
    whole, states = plan.groups(), state_texts(plan)
    for group, listed in groupby(rows, key=lambda row: row.group):
        yield ""
        yield from _group_line(group, whole[group], states.get(group, ""), width, colour)
        if table is wide:
            yield from table.lines(colour, _shade, part=listed)
        else:
            yield from table.lines(colour, _shade, _topics, lambda row: _words(row, width), listed)


def _group_line(group: str, rows: GroupRows, states: str, width: int, colour: bool) -> Iterator[str]:
    word, shade = group_word(rows)
    t = group_totals(rows)
    parts = [
        tally(t.decisions),
        "lag unknown" if t.lag is None else f"lag {t.lag}",
        "re-reads unknown" if t.rereads is None else f"re-reads {t.sign}{t.rereads}",
        *[states] * bool(states),
    ]
    head = f"{both_names(group, rows.group_on_target)}  {word}"
    yield from headed(head, shade if colour else None, wrapped("; ".join(parts), width, f"{head}  ", "    "))


def group_word(rows: GroupRows) -> tuple[str, Colour]:
    """Return what becomes of a group with these rows, in one word, and its colour."""
    decisions = set(rows.column("decision"))
    if Decision.BLOCK in decisions:
        return "BLOCK", Colour.RED
    if decisions & {Decision.SET, Decision.REMOVE}:
        return "SET", Colour.GREEN
    return ("KEEP", Colour.BOLD) if Decision.KEEP in decisions else ("SKIP", Colour.RED)


def state_texts(plan: Plan) -> dict[str, str]:
    """Return "Empty on A, Absent on B" per group, as the coordinators said when the plan was made."""
    aliases = {"source": plan.header.source_alias, "target": plan.header.target_alias}
    states: dict[str, list[str]] = {}
    for s in plan.header.group_states:
        members = f" ({many(s.member_count, 'member')})" if s.member_count else ""
        states.setdefault(s.group, []).append(f"{safe(s.state)}{members} on {name(aliases.get(s.side, s.side))}")
    return {group: ", ".join(listed) for group, listed in states.items()}


def activity_texts(plan: Plan) -> dict[str, str]:
    """Return when each group committed last, and how often, as far as its records told when the plan was made."""
    return {a.group: "; ".join(filter(None, _activity(a, plan.header.created_at_ms))) for a in plan.header.activity}


def _activity(group: PlannedActivity, made_ms: int) -> Iterator[str]:
    idle = duration_text((made_ms - group.last_commit_ms) / 1000)
    yield f"last commit {iso(group.last_commit_ms)}, {idle} before the plan was made"
    between = group.ms_between_commits
    yield pace_text(None if between is None else between / 1000, group.records_between_commits)


def _rereads(row: Row) -> str | None:
    if row.rereads_at_most is not None:
        return f"{'' if row.grade is Grade.EXACT else '<='}{row.rereads_at_most}"
    return None if row.rereads_estimate is None else f"~{row.rereads_estimate}"


TARGET = field("target_offset", "TARGET-OFFSET", right=True)
CHECKPOINT = field("checkpoint_target_offset", "MM2-OFFSET", right=True)
DECISION = field("decision", "DECISION")
LIVE = field("live_source_offset", "LIVE-OFFSET", right=True)
NUMBERS: tuple[Column[Row], ...] = (
    field("partition", "PARTITION", right=True),
    field("source_committed", "CURRENT-OFFSET", right=True),
    field("source_log_end", "LOG-END-OFFSET", right=True),
    Column("LAG", lag, right=True),
    TARGET,
    CHECKPOINT,
    Column("RE-READS", _rereads, right=True),
)


def _wide_columns(is_renamed: bool, numbers: Sequence[Column[Row]]) -> tuple[Column[Row], ...]:
    ours = numbers.index(TARGET)
    return (
        field("group", "GROUP", name),
        field("source_topic", "TOPIC", name),
        *numbers[:ours],
        *[field("target_topic", "TARGET-TOPIC", name)] * is_renamed,
        field("target_prior", "PRIOR-OFFSET", right=True),
        *numbers[ours:],
        DECISION,
        *(field(key, key.upper()) for key in ("method", "grade", "reason")),
    )


def _topics(row: Row) -> str:
    return INDENT + both_names(row.source_topic, row.target_topic)


def _words(row: Row, width: int) -> Iterator[str]:
    """Yield what a narrow page has no column for, where it is not the usual."""
    # An estimate beside the row says as much as the words.
    is_usual = row.reason == Why.PROVEN or (row.reason == TRANSLATED and row.rereads_estimate is not None)
    words = [] if is_usual else [safe(row.reason), *([str(row.grade)] if row.grade else [])]
    words += [f"was {row.target_prior}"] * (row.target_prior is not None)
    if words:
        yield from wrapped(", ".join(words), width, " " * 12)


def _shade(row: Row) -> Colour | None:
    return Colour.RED if row.decision is Decision.BLOCK or may_skip(row) or rewinds(row) else None
