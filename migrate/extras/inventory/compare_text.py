"""`groups compare` as text, JSON and CSV. Pure.

The text says first whether all is equal, and what would be lost, then names every row that is not equal, the worst
first; JSON and CSV have all rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from migrate.checks.topics import missing_on_target
from migrate.clock import iso
from migrate.extras.inventory.compare import NOT_ALL_COMPARED, ComparedRow, CompareVerdict, GroupComparison, Loss
from migrate.show.lines import aligned, at_most, names, wrapped
from migrate.show.table import INDENT, Column, Table, document_lines, field, fields_of
from migrate.text import Colour, both_names, many, name, paint, safe

MISSING_ON_TARGET = missing_on_target.name
LOSING_THOUGH_EQUAL = (MISSING_ON_TARGET, NOT_ALL_COMPARED)
ROWS_SHOWN = 200
NAMED = 20


def _difference(row: ComparedRow) -> str | None:
    if row.difference is None:
        return None
    return f"{row.difference:+d} {'records' if row.difference_is_records else 'offsets'}"


PLACE: tuple[Column[ComparedRow], ...] = (
    Column("GROUP", lambda row: both_names(row.group, row.group_on_target)),
    field("group"),
    field("source_topic", "TOPIC", name),
    field("target_topic"),
    field("partition", "PARTITION", right=True),
)
FINDING: tuple[Column[ComparedRow], ...] = (
    field("source_committed", "SOURCE-COMMITTED", right=True),
    Column("TRANSLATED", lambda row: row.translated, right=True),
    field("target_committed", "TARGET-COMMITTED", right=True),
    field("translated"),
    Column("DIFFERENCE", _difference, right=True),
    *map(field, ("difference", "difference_is_records")),
    field("verdict", "VERDICT"),
    field("grade", "GRADE"),
    *map(field, ("loss", "rereads_at_most", "source_moved_to", "reason", "sentence", "target_group")),
)
COLUMNS = (*PLACE, *FINDING)
MEANINGS = {
    CompareVerdict.AHEAD: "the target commit is past records that the group is owed",
    CompareVerdict.UNDECIDED: "whether the target commit passes over records is not known",
    CompareVerdict.MISSING: "the target has no commit: auto.offset.reset decides",
    CompareVerdict.UNTRANSLATED: "no law says where the source commit belongs, or one of the two is of another log",
    CompareVerdict.ONLY_ON_TARGET: "the source has no such commit",
    CompareVerdict.BEHIND: "the target commit is below the translated offset: records are read twice",
    CompareVerdict.EQUAL: "the group reads on where the translated offset is",
}
SHADES = {CompareVerdict.AHEAD: Colour.RED, CompareVerdict.BEHIND: None, CompareVerdict.EQUAL: None}


@dataclass(frozen=True, slots=True)
class CompareView:
    """How a comparison was asked for, which its text says: `within` records, records compared or not.

    `unread_syncs` counts the offset syncs at the beginning of a long topic that were not read.
    """

    within: int
    no_match: bool
    unread_syncs: int = 0


def comparison_lines(comparison: GroupComparison, view: CompareView, width: int, colour: bool) -> Iterator[str]:
    """Yield the verdict, the counts, what the look rests on, and every row that is not equal."""
    source, target = name(comparison.source_alias), name(comparison.target_alias)
    title = f"What groups have committed on {target}, beside their commits on {source}, read {iso(comparison.time_ms)}"
    yield from wrapped(title, width, colour=Colour.BOLD if colour else None)
    text, shade = verdict_text(comparison, view.within)
    yield from wrapped(text, width, "", INDENT, shade if colour else None)
    counts = comparison.counts()
    pairs = [(str(v), f"{counts[v]}  ({meaning})") for v, meaning in MEANINGS.items() if counts.get(v)]
    if pairs:
        yield ""
        yield from aligned(pairs, width)
    yield from _notes(comparison, view, width, colour)
    yield from _rows(comparison, width, colour)


def verdict_text(comparison: GroupComparison, within: int) -> tuple[str, Colour]:
    """Return the first line, and its colour: green only where everything is as it should be, was seen, and proven."""
    total, beyond = len(comparison.rows), comparison.beyond(within)
    if not total:
        return "NOTHING TO COMPARE: no commit is inside the filters", Colour.RED
    of_all = f"{many(total, 'commit')} of {many(len({row.group for row in comparison.rows}), 'group')}"
    if beyond:
        lost = sum(row.loss is Loss.LIKELY for row in beyond)
        may = sum(row.verdict in (CompareVerdict.AHEAD, CompareVerdict.UNDECIDED) for row in beyond) - lost
        missing = sum(row.reason == MISSING_ON_TARGET for row in beyond)
        ends = [f"{lost} LOSE RECORDS, unless consumers have run there"] * bool(lost)
        ends += [f"{may} may lose records"] * bool(may)
        ends += [f"{missing} whose records MM2 has not all brought over"] * bool(missing)
        unread = sum(row.reason == NOT_ALL_COMPARED for row in beyond)
        ends += [f"{unread} whose records were not all compared"] * bool(unread)
        first = f"NOT EQUAL: {len(beyond)} of {of_all}"
        if all(row.verdict is CompareVerdict.EQUAL for row in beyond):
            first = f"NOT PROVEN: {len(beyond)} of {of_all} equal, and may lose records all the same"
        return "; ".join([first, *ends]), Colour.RED
    behind = comparison.counts().get(CompareVerdict.BEHIND, 0)
    text = f"EQUAL: {of_all}"
    if behind:
        text = f"WITHIN {many(within, 'record')}: {of_all}, {behind} of them behind, none ahead"
    bounded = [row for row in comparison.rows if row.verdict is CompareVerdict.EQUAL and row.rereads_at_most != 0]
    if bounded:
        text += f"; {len(bounded)} at a lower bound of their place, from which records may be read twice"
    if comparison.blocks or comparison.unstable:
        return f"NOT ALL WAS SEEN: {text}", Colour.RED
    return text, Colour.YELLOW if bounded else Colour.GREEN


def comparison_csv(comparison: GroupComparison) -> Iterator[str]:
    """Return a heading and a line for each row; what there is none of is an empty cell."""
    return Table(COLUMNS, comparison.rows).csv()


def comparison_document(comparison: GroupComparison, view: CompareView) -> Iterator[str]:
    """Yield one JSON document, a line to a row; null is what there is none of."""
    head = {
        "source": comparison.source_alias,
        "target": comparison.target_alias,
        "time_ms": comparison.time_ms,
        "within": view.within,
        "records_compared": not view.no_match,
        "offset_syncs_unread": view.unread_syncs,
        "counts": {str(verdict): count for verdict in CompareVerdict if (count := comparison.counts().get(verdict, 0))},
        "beyond": len(comparison.beyond(view.within)),
        "pending_transactions": sorted(comparison.unstable),
        "premises": [
            fields_of(c, "check", "level", "counts_as", "subject", "expected", "seen", "todo")
            for c in comparison.premises
        ],
    }
    beyond: Column[ComparedRow] = Column(None, lambda row: not row.is_within(view.within), key="beyond")
    yield from document_lines(head, {"rows": Table((*COLUMNS, beyond), comparison.rows).documents()})


def premise_texts(comparison: GroupComparison) -> list[str]:
    """Return what the look rests on and does not have, a text for each finding."""
    return [f"{safe(c.check)} {name(c.subject)}: {safe(c.seen)}. {safe(c.todo)}".rstrip() for c in comparison.premises]


def _notes(comparison: GroupComparison, view: CompareView, width: int, colour: bool) -> Iterator[str]:
    """Yield what keeps the verdict from being the whole truth."""
    notes = premise_texts(comparison)
    if notes:
        yield ""
        yield paint("NOT SEEN, OR NOT AS EXPECTED", Colour.YELLOW, colour)
        yield from at_most(notes, NAMED, width)
    for text in doubts(comparison, view):
        yield ""
        yield from wrapped(text, width)


def doubts(comparison: GroupComparison, view: CompareView) -> list[str]:
    """Return what else keeps the verdict from being the whole truth, whatever the form in which it is printed."""
    texts = []
    if comparison.unstable:
        texts.append(
            f"Transactions are pending on offsets of {names(sorted(comparison.unstable), NAMED)}: what was committed "
            "before them is compared."
        )
    if view.no_match:
        texts.append(
            "Records were not compared: translations rest on MM2's offset syncs alone, and are lower bounds only while "
            "these tell the truth; and topics that a cluster hides from this principal were not looked for."
        )
    if view.unread_syncs:
        texts.append(
            f"Of the offset-syncs topic {many(view.unread_syncs, 'record')} at its beginning "
            f"{'was' if view.unread_syncs == 1 else 'were'} not read: what would be placed by them is placed at the "
            "target's log start."
        )
    return texts


def _rows(comparison: GroupComparison, width: int, colour: bool) -> Iterator[str]:
    order = {verdict: place for place, verdict in enumerate(CompareVerdict)}
    unequal = [r for r in comparison.rows if r.verdict is not CompareVerdict.EQUAL or r.reason in LOSING_THOUGH_EQUAL]
    unequal.sort(key=lambda row: (row.loss is not Loss.LIKELY, order[row.verdict]))  # stable: names stay in order
    shown = unequal[:ROWS_SHOWN]
    if not shown:
        return
    yield ""

    def sentence(row: ComparedRow) -> Iterator[str]:
        if row.verdict is not CompareVerdict.BEHIND or row.reason not in ("", "not-proven"):
            lost = "LOST? " if row.loss is Loss.LIKELY else ""
            yield from wrapped(lost + safe(row.sentence), width, INDENT * 2, INDENT * 3)

    yield from Table(COLUMNS, shown, width, narrow=FINDING).lines(colour, _shade, _place, sentence)
    if len(unequal) > len(shown):
        yield f"and {len(unequal) - len(shown)} more; --format json and csv have every row"


def _place(row: ComparedRow) -> str:
    return f"{both_names(row.group, row.group_on_target)}  {name(row.source_topic)}:{row.partition}"


def _shade(row: ComparedRow) -> Colour | None:
    return SHADES.get(row.verdict, Colour.YELLOW)
