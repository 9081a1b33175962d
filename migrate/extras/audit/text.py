"""What an audit has found: one document, which is kept, and the page that people read, which is made of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from migrate.cli.console import Terminal
from migrate.clock import iso
from migrate.extras.audit.verdict import NAMED, Category, TopicAudit, Verdict, total, verdict_of
from migrate.match.equality import Equality, Part
from migrate.plan.plan import SHORT_DIGITS
from migrate.show.lines import wrapped
from migrate.show.table import Column, Table, document_lines
from migrate.text import Colour, many, name, paint, safe, some

# What one sees of each category beside what is copied: in the words of the table's last column.
_OTHERS = {
    Category.NOT_COPIED_YET: "not copied yet",
    Category.CHANGED: "changed",
    Category.MAYBE_COPIED: "not visible",
    Category.REMOVED: "removed since",
    Category.SUPERSEDED: "superseded",
    Category.COPIED_AGAIN: "copied again",
    Category.ABORTED_COPY: "copies of aborted",
    Category.FOREIGN: "foreign",
    Category.OUT_OF_ORDER: "out of order",
    Category.NO_ORIGINAL_VISIBLE: "without a visible original",
}
_SHADES = {Verdict.COMPLETE: Colour.GREEN, Verdict.INCOMPLETE: Colour.RED, Verdict.NOT_PROVEN: Colour.YELLOW}
Document = Mapping[str, Any]


def document_of(
    audits: Sequence[TopicAudit],
    left_out: Sequence[str],
    source: str,
    target: str,
    time_ms: int,
    looked_at: Document | None = None,
) -> dict[str, Any]:
    """Return the document of a run; `time_ms` is when its logs were pinned.

    `left_out` are topics that the replicator does not take, by its filter or its naming: they were not looked at.
    `looked_at` says what was otherwise: of a plan's groups what is told of them ("plan"), the time of which records are
    at least ("since_ms"), and whether it was the order of copies too ("order_looked_at").
    """
    counts = total(audits)
    return {
        "verdict": verdict_of(audits),
        "source": source,
        "target": target,
        "time_ms": time_ms,
        **(looked_at or {}),
        "topics_not_replicated": list(left_out),
        "counts": {category: counts[category] for category in Category if counts[category]},
        "topics": [
            {
                "topic": audit.topic,
                "target_topic": audit.target,
                "verdict": audit.verdict,
                "equality": audit.equality,
                "counts": {category: audit.counts[category] for category in Category if audit.counts.get(category)},
                "reasons": list(audit.reasons),
                "missing_times_ms": audit.times_ms,
                "first": [
                    {"category": n.category, "partition": n.partition, "offset": n.offset, "time_ms": n.time_ms}
                    for n in audit.named
                ],
            }
            for audit in audits
        ],
    }


def print_result(result: Document, form: str, terminal: Terminal) -> int:
    """Print the result of a run; returns the exit code of its verdict."""
    if form == "json":
        head = {key: value for key, value in result.items() if key != "topics"}
        terminal.show(document_lines(head, {"topics": result["topics"]}))
    else:
        terminal.show(result_lines(result, terminal.width, terminal.colour))
    return Verdict(result["verdict"]).exit_code


def result_lines(result: Document, width: int, colour: bool) -> Iterator[str]:
    """Yield the verdict, a table of the topics, and below each what it lacks."""
    verdict, topics = Verdict(result["verdict"]), result["topics"]
    for line in wrapped(headline(result), width):
        yield paint(line, _SHADES[verdict], colour)
    yield f"As of {iso(result['time_ms'])}: {result['source']} to {result['target']}"
    if since := since_line(result):
        yield since
    if order := order_line(result):
        yield order
    if plan := result.get("plan"):
        yield from wrapped(plan_line(plan), width)
    if left_out := result["topics_not_replicated"]:
        text = f"Not looked at: {many(len(left_out), 'topic')} that the replicator's filter or naming leaves out"
        yield from wrapped(f"{text} ({some(map(name, left_out), 5)})", width)
    if topics:
        yield ""
        table = Table(_COLUMNS, topics, width)
        yield from table.lines(
            colour, lambda row: _SHADES[Verdict(row["verdict"])], below=lambda row: _below(row, width)
        )
    for group in (plan or {"open": []})["open"]:
        yield ""
        yield paint(f"{name(group['group'])}: {group['verdict']}", _SHADES[Verdict(group["verdict"])], colour)
        for text in lacked(group):
            yield from wrapped(text, width, "    ")


def headline(result: Document) -> str:
    """Return the verdict on all topics, and what it rests on."""
    topics, verdict = result["topics"], Verdict(result["verdict"])
    by_verdict = {v: [t for t in topics if t["verdict"] == v] for v in Verdict}
    if not topics:
        return f"{verdict}: no topic is inside the filters and copied"
    if verdict is Verdict.COMPLETE:
        return f"{verdict}: {_records(result, Category.COPIED)} of {many(len(topics), 'topic')} have their copies"
    if verdict is Verdict.INCOMPLETE:
        of = by_verdict[verdict]
        lacking = [f"{_records(t, Category.MISSING)} of {name(t['topic'])}{_between(t)}" for t in of]
        return f"{verdict}: {some(lacking, between='; ')}"
    why = [f"{name(t['topic'])}: {safe(t['reasons'][0])}" for t in by_verdict[verdict]]
    return f"{verdict}: {some(why, 3, '; ')}"


def since_line(result: Document) -> str:
    """Return which records were not looked at, "" if all were."""
    since_ms = result.get("since_ms")
    return "" if since_ms is None else f"Records since {iso(since_ms)} alone: older ones were not looked at"


def order_line(result: Document) -> str:
    """Return whether copies stand in the order of their originals, "" where that was not looked at."""
    if not result.get("order_looked_at"):
        return ""
    late = result["counts"].get(Category.OUT_OF_ORDER)
    return f"Out of order: {_records(result, Category.OUT_OF_ORDER)}" if late else "No copy was seen out of order"


def plan_line(plan: Document) -> str:
    """Return how many groups of a plan have which verdict."""
    of, every = f"Plan {plan['fingerprint'][:SHORT_DIGITS]}", many(plan["groups"], "group")
    counts = Counter(group["verdict"] for group in plan["open"])
    if not counts:
        return f"{of}: all that its {every} are owed is there"
    counts[Verdict.COMPLETE] = plan["groups"] - counts.total()
    return f"{of}, {every}: {', '.join(f'{counts[v]:,} {v}' for v in Verdict if counts[v])}"


def lacked(group: Document) -> Iterator[str]:
    """Yield what a group of a plan lacks, or may lack, of each partition."""
    for lack in group["lacks"]:
        low, high = lack["first_offset"], lack["last_offset"]
        where = f"at offset {low}" if low == high else f"between offsets {low} and {high}"
        place = f"{name(lack['topic'])}-{lack['partition']}"
        yield f"{many(lack['records'], 'record')} of {place} {lack['category']} {where}"
    if topics := group["not_proven_topics"]:
        yield f"not proven: {some(map(name, topics))}"


def _records(of: Document, category: Category) -> str:
    return many(of["counts"].get(category, 0), "record")


def _between(topic: Document) -> str:
    times = topic["missing_times_ms"]
    return f", from {iso(times[0])} to {iso(times[1])}" if times else ""


def others_of(topic: Document) -> str:
    """Return what became of records that are neither copied nor missing."""
    return ", ".join(f"{topic['counts'][c]:,} {text}" for c, text in _OTHERS.items() if topic["counts"].get(c)) or "-"


def compared(topic: Document) -> str:
    """Return by which parts of records a topic was compared."""
    *parts, last = (part for part in Part if part in Equality(topic["equality"]).parts)
    return f"compared by {', '.join(parts)} and {last}"


def _below(topic: Document, width: int) -> Iterable[str]:
    if topic["equality"] is not None and (topic["verdict"] != Verdict.COMPLETE or topic["equality"] != "all"):
        yield from wrapped(compared(topic), width, "    ")
    for reason in topic["reasons"]:
        yield from wrapped(safe(reason), width, "    ")
    for category in NAMED:
        first = [each for each in topic["first"] if each["category"] == category]
        if first:
            places = [f"{each['partition']}:{each['offset']} ({iso(each['time_ms'])})" for each in first]
            more = topic["counts"][category] - len(first)
            text = f"{category}, by partition and offset: {', '.join(places)}{f' and {more:,} more' if more else ''}"
            yield from wrapped(text, width, "    ")


def _count(category: Category, heading: str) -> Column[Document]:
    return Column(heading, lambda row: row["counts"].get(category, 0), "{:,}".format, right=True)


_COLUMNS: Sequence[Column[Document]] = (
    Column("TOPIC", lambda row: row["topic"], name),
    Column("VERDICT", lambda row: row["verdict"]),
    _count(Category.COPIED, "COPIED"),
    _count(Category.MISSING, "MISSING"),
    Column("OTHERS", others_of),
)
