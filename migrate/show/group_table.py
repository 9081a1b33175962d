"""Every group of a plan as text: one line per group, then its rows under the headings of kafka-consumer-groups.

Two layouts: on a wide page every row names its group and topic (so that `grep` finds them); on a narrow one,
or beside long names, the topic is above its rows and the words behind the numbers wrap.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

from migrate.clock import iso
from migrate.match.protocol import Why
from migrate.model import Decision, Grade, Method, Row, between, may_skip, rewinds
from migrate.plan.plan import AS_OF_SETTING, Plan, PlannedActivity
from migrate.plan.totals import group_totals
from migrate.row_table import GroupRows, PlanRows
from migrate.show.layout import Column, Layout, layout
from migrate.show.lines import headed, number, tally, wrapped
from migrate.survey.group_facts import pace_text
from migrate.text import Colour, both_names, cells, duration_text, many, name, paint, safe

_LEGEND = (
    "CURRENT-OFFSET, LOG-END-OFFSET and LAG are the source's. TARGET-OFFSET is this plan's{}. RE-READS: a bare number "
    "is proven, <= a proven bound, ~ an estimate."
)
LEGEND = _LEGEND.format(", MM2-OFFSET what MM2's newest checkpoint says")
LEGEND_WITHOUT_CHECKPOINTS = _LEGEND.format("")
LIVE_LEGEND = (
    "CURRENT-OFFSET is that of the time that the plan goes by, LIVE-OFFSET what was committed when it was made."
)
NARROW_TEXT = 20
SAID_BY_GRADE = ("translated", str(Why.PROVEN))


def group_lines(plan: Plan, rows: Sequence[Row], width: int, colour: bool) -> Iterator[str]:
    """Yield each group's line and rows. A group's line counts all its rows, `rows` are those to show."""
    if not rows:
        yield "No rows."
        return
    compared = plan.header.has_checkpoints
    yield from wrapped(LEGEND if compared else LEGEND_WITHOUT_CHECKPOINTS, width)
    shown, numbers = PlanRows.of(rows), NUMBERS if compared else tuple(f for f in NUMBERS if f is not CHECKPOINT)
    if AS_OF_SETTING in plan.header.settings:
        yield from wrapped(LIVE_LEGEND, width)
        numbers = (*NUMBERS[:2], LIVE, *NUMBERS[2:])
    renamed = any(source != target for source, target in shown.values("source_topic", "target_topic"))
    fields = _wide_fields(renamed, numbers)
    wide = _laid_out(fields, shown, width)
    narrow = None if wide.width <= width else _laid_out(numbers, shown, width - NARROW_TEXT - 4, gap=1)
    whole, states = plan.groups(), states_told(plan)
    for group, listed in shown.groups().items():
        yield ""
        yield from _group_line(group, whole[group], states.get(group, ""), width, colour)
        if narrow is None:
            yield from _wide_rows(listed, wide, fields, colour)
        else:
            yield from _narrow_rows(listed, narrow, numbers, width, colour)


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


def states_told(plan: Plan) -> dict[str, str]:
    """Return "Empty on A, Absent on B" per group, as the coordinators said when the plan was made."""
    aliases = {"source": plan.header.source_alias, "target": plan.header.target_alias}
    states: dict[str, list[str]] = {}
    for s in plan.header.group_states:
        members = f" ({many(s.member_count, 'member')})" if s.member_count else ""
        states.setdefault(s.group, []).append(f"{safe(s.state)}{members} on {name(aliases.get(s.side, s.side))}")
    return {group: ", ".join(listed) for group, listed in states.items()}


def activity_told(plan: Plan) -> dict[str, str]:
    """Return when each group committed last, and how often, as far as its records told when the plan was made."""
    return {a.group: "; ".join(filter(None, _activity(a, plan.header.created_at_ms))) for a in plan.header.activity}


def _activity(group: PlannedActivity, made_ms: int) -> Iterator[str]:
    idle = duration_text((made_ms - group.last_commit_ms) / 1000)
    yield f"last commit {iso(group.last_commit_ms)}, {idle} before the plan was made"
    between = group.ms_between_commits
    yield pace_text(None if between is None else between / 1000, group.records_between_commits)


def _rereads(at_most: int | None, estimate: int | None, grade: Grade | None) -> str:
    if at_most is not None:
        return f"{'' if grade is Grade.EXACT else '<='}{at_most}"
    return "-" if estimate is None else f"~{estimate}"


@dataclass(frozen=True, slots=True)
class Field:
    """A column, the row's fields that it is made of, what is made of them, and how that is written."""

    column: Column
    of: tuple[str, ...]
    value: Callable[..., Any] | None = None
    text: Callable[[Any], str] = number

    def values(self, rows: GroupRows) -> Sequence[Any]:
        """Return what the column holds, row by row; a single item where all rows agree."""
        columns: list[Any] = [rows.column(field) for field in self.of]
        if any(len(column) > 1 for column in columns):
            columns = [rows.whole(field) for field in self.of]
        return columns[0] if self.value is None else list(map(self.value, *columns))

    def texts(self, rows: GroupRows) -> Sequence[str]:
        """Return the column's text for every row."""
        texts = list(map(self.text, self.values(rows)))
        return texts if len(texts) == len(rows) else texts * len(rows)

    def widest(self, rows: PlanRows) -> Iterator[str]:
        """Yield texts among which the widest of the column is: of numbers, only the two ends are written out."""
        values: set[Any] = set()
        for of_group in rows.groups().values():
            found = set(self.values(of_group))
            values |= _ends(found) if self.text is number else found
        return map(self.text, values)


def _ends(numbers: set[int | None]) -> set[int | None]:
    some = [n for n in numbers if n is not None]
    return (numbers & {None}) | ({min(some), max(some)} if some else set())


TARGET = Field(Column("TARGET-OFFSET"), ("target_offset",))
CHECKPOINT = Field(Column("MM2-OFFSET"), ("checkpoint_target_offset",))
NUMBERS: tuple[Field, ...] = (
    Field(Column("PARTITION"), ("partition",)),
    Field(Column("CURRENT-OFFSET"), ("source_committed",)),
    Field(Column("LOG-END-OFFSET"), ("source_log_end",)),
    Field(Column("LAG"), ("source_committed", "source_log_end"), between),
    TARGET,
    CHECKPOINT,
    Field(Column("RE-READS"), ("rereads_at_most", "rereads_estimate", "grade"), _rereads, str),
)


LIVE = Field(Column("LIVE-OFFSET"), ("live_source_offset",))


def _wide_fields(renamed: bool, numbers: Sequence[Field]) -> tuple[Field, ...]:
    ours = numbers.index(TARGET)
    target_topic = Field(Column("TARGET-TOPIC", right=False), ("target_topic",), text=name)
    return (
        Field(Column("GROUP", right=False), ("group",), text=name),
        Field(Column("TOPIC", right=False), ("source_topic",), text=name),
        *numbers[:ours],
        *[target_topic] * renamed,
        Field(Column("PRIOR-OFFSET"), ("target_prior",)),
        *numbers[ours:],
        Field(Column("DECISION", right=False), ("decision",), text=str),
        Field(Column("METHOD", len("checkpoint"), right=False), ("method",), text=_word),
        Field(Column("GRADE", len("estimated"), right=False), ("grade",), text=_word),
        Field(Column("REASON", right=False), ("reason",), text=safe),
    )


def _word(word: Method | Grade | None) -> str:
    return str(word or "-")


def _laid_out(fields: Sequence[Field], rows: PlanRows, width: int, gap: int = 2) -> Layout:
    texts = zip_longest(*(field.widest(rows) for field in fields), fillvalue="")
    return layout([field.column for field in fields], texts, width, gap)


def _lines(rows: GroupRows, laid_out: Layout, fields: Sequence[Field]) -> Iterator[str]:
    return map(laid_out.line, zip(*(field.texts(rows) for field in fields), strict=True))


def _wide_rows(rows: GroupRows, wide: Layout, fields: Sequence[Field], colour: bool) -> Iterator[str]:
    for heading in wide.headings:
        yield paint(heading, Colour.DIM, colour)
    lines = _lines(rows, wide, fields)
    yield from map(_painted, lines, rows) if colour else lines


def _narrow_rows(rows: GroupRows, narrow: Layout, numbers: Sequence[Field], width: int, colour: bool) -> Iterator[str]:
    room = width - 2 - narrow.width - 2
    for heading in narrow.headings:
        yield paint(f"  {heading}", Colour.DIM, colour)
    lines = _lines(rows, narrow, numbers)
    for (source, target), listed in groupby(rows, key=lambda r: (r.source_topic, r.target_topic)):
        yield f"  {name(source)}" + (f" -> {name(target)}" if target != source else "")
        for row, line in zip(listed, lines, strict=False):
            for text in _beside(f"  {line}  ", _words(row), room, width):
                yield _painted(text, row) if colour else text


def _beside(numbers: str, text: str, room: int, width: int) -> Iterator[str]:
    """Yield the words beside the numbers, on two lines at most; else the decision there and the rest below."""
    lines = list(wrapped(text, width, numbers, " " * cells(numbers)))
    if room >= NARROW_TEXT and len(lines) <= 2 and all(cells(line) <= width for line in lines):
        yield from lines
        return
    decision, _, rest = text.partition(" ")
    yield numbers + decision
    if rest:
        yield from wrapped(rest, width, " " * 12)


def _words(row: Row) -> str:
    words = [str(row.decision)]
    if row.reason not in SAID_BY_GRADE:
        words.append(safe(row.reason))
    words += [str(word) for word in (row.method, row.grade) if word is not None]
    text = " ".join(words)
    return text if row.target_prior is None else f"{text}, was {row.target_prior}"


def _painted(text: str, row: Row) -> str:
    return paint(text, Colour.RED, row.decision is Decision.BLOCK or may_skip(row) or rewinds(row))
