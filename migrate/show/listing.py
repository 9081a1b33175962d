"""`groups list` as text, JSON and CSV. Pure.

What is not visible is "?" in the table, "not-visible" in CSV and null in JSON, and its reason is beside it: it is
never 0.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from migrate.clock import iso, minute
from migrate.described_group import Coordinator
from migrate.inventory.activity import DAY_MS, GroupActivity
from migrate.inventory.listing import GroupNotice, GroupSummary, Inventory
from migrate.inventory.read import ClusterGroups
from migrate.model import Failure
from migrate.show.csv_cells import csv_line, harmless
from migrate.show.layout import Layout, columns, layout
from migrate.show.lines import aligned, at_most, number, tally, wrapped
from migrate.show.streamed_json import document_lines
from migrate.survey.expiry import span
from migrate.survey.group_facts import BrokerSettings
from migrate.text import Colour, duration_text, many, name, paint, safe, some

UNSEEN, NOT_VISIBLE = "?", "not-visible"
LABELS = 11
INDENT = "  "
SHOWN = 20
FIELDS = (
    "group", "kind", "protocol_type", "state", "members", "assignor", "coordinator", "topics", "partitions_committed",
    "partitions_of_its_topics", "lag", "lag_partitions_unknown", "attention",
)  # fmt: skip
ACTIVITY_FIELDS = (
    "last_commit_ms", "empty_since_ms", "expires_ms", "seconds_between_commits", "records_between_commits",
)  # fmt: skip
WIDE = (
    *columns("GROUP", "KIND", "PROTOCOL", "STATE", right=False),
    *columns("MEMBERS", "TOPICS", "COMMITTED", "LAG"),
    *columns("ASSIGNOR", "COORDINATOR", "ATTENTION", right=False),
)
ACTIVITY = (*columns("LAST-COMMIT", "EVERY", right=True), *columns("EXPIRES", right=False))
NARROW = (
    *columns("GROUP", "KIND", "STATE", right=False),
    *columns("MEMBERS", "TOPICS", "COMMITTED", "LAG"),
)
ACTIVITY_LEGEND = (
    "LAST-COMMIT is how long ago, EVERY the median between commits on a partition, EXPIRES when the first offset goes "
    "if nobody comes back."
)
IDLE_DAYS = (365, 90, 30, 7, 1)
LEGEND = (
    "COMMITTED counts the partitions with a commit, of all partitions of the group's topics. LAG is the log end less "
    "the committed offset, added up; + marks a sum that lacks partitions whose lag is not known. ? is not known."
)


def listing_lines(inventory: Inventory, width: int, colour: bool) -> Iterator[str]:
    """Yield the table: a line for each group, then what they add up to, then what could not be read."""
    read = inventory.read
    yield paint(f"Groups on {name(read.alias)} ({read.side}), read {iso(read.time_ms)}", Colour.BOLD, colour)
    yield from wrapped(LEGEND if read.clocks is None else f"{LEGEND} {ACTIVITY_LEGEND}", width)
    if inventory.groups:
        yield ""
        yield from _table(inventory, width, colour)
    yield ""
    yield from aligned(_totals(inventory), width, LABELS)
    yield from unread_lines(read, {g.group: g.not_visible() for g in inventory.groups}, width, colour)


def listing_csv(inventory: Inventory) -> Iterator[str]:
    """Yield a heading and a line for each group; topics and attention are words with a blank between."""
    with_records = inventory.read.clocks is not None
    yield csv_line(FIELDS + ACTIVITY_FIELDS * with_records)
    for group in inventory.groups:
        lag = group.lag
        records, unknown = (lag, lag) if isinstance(lag, Failure) else (_sum(group, ""), lag.unknown)
        topics = group.topics if isinstance(group.topics, Failure) else " ".join(group.topics)
        values = (
            group.group, group.kind, group.protocol_type, group.state, group.members, group.assignor, group.coordinator,
            topics, group.partitions_committed, group.partitions_of_its_topics, records, unknown,
            " ".join(group.attention), *(_activity_values(group) if with_records else ()),
        )  # fmt: skip
        yield csv_line(harmless(_cell(value)) for value in values)


def listing_document(inventory: Inventory) -> Iterator[str]:
    """Yield one JSON document, a line to a group; `not_visible` says why a field is null that should not be."""
    records, unknown, unread = inventory.lag
    kinds = [{"kind": k, "state": s, "groups": n} for (k, s), n in inventory.by_kind_and_state.items()]
    totals = {
        "groups": len(inventory.groups),
        "lag": records,
        "lag_partitions_unknown": unknown,
        "lag_groups_unknown": unread,
        "by_kind_and_state": kinds,
    }
    if inventory.read.clocks is not None:
        totals["not_idle"] = inventory.not_idle
    head = head_of(inventory.read) | {"totals": totals}
    yield from document_lines(head, {"groups": (_group_document(inventory, group) for group in inventory.groups)})


def head_of(read: ClusterGroups) -> dict[str, Any]:
    """Return what the documents of all `groups` commands begin with."""
    return {
        "side": str(read.side),
        "cluster": read.alias,
        "time_ms": read.time_ms,
        "filtered": dict(sorted(read.filtered.items())),
        "missing": list(read.missing),
        "not_visible": list(read.unseen),
    }


def facts_document(group: GroupSummary) -> dict[str, Any]:
    """Return what a group is and where, without its topics and offsets."""
    facts = ("kind", "protocol_type", "state", "members", "assignor")
    document: dict[str, Any] = {"group": group.group} | {fact: _value(getattr(group, fact)) for fact in facts}
    node = group.coordinator
    document["coordinator"] = (
        {"id": node.broker, "host": node.host, "port": node.port} if isinstance(node, Coordinator) else None
    )
    return document


def unread_lines(
    read: ClusterGroups, reasons: Mapping[str, Mapping[str, str]], width: int, colour: bool
) -> Iterator[str]:
    """Yield what the list may lack, names that no group has, and why facts about groups are not known."""
    by_reason: dict[str, list[str]] = {}
    for group, of_group in reasons.items():
        for reason in dict.fromkeys(of_group.values()):
            by_reason.setdefault(reason, []).append(group)
    texts = [f"{safe(text)}" for text in read.unseen]
    texts += [f"{some(map(name, groups), SHOWN)}: {safe(reason)}" for reason, groups in by_reason.items()]
    if texts:
        yield ""
        yield paint("NOT VISIBLE", Colour.YELLOW, colour)
        yield from at_most(texts, SHOWN, width, "more reasons: --format json has all")
    if read.missing:
        yield ""
        where = f"no group on {name(read.alias)} has this name" + (", as far as can be seen" if read.unseen else "")
        yield paint("NOT THERE", Colour.RED, colour)
        yield from at_most([f"{name(text)}: {where}" for text in read.missing], SHOWN, width)


def _table(inventory: Inventory, width: int, colour: bool) -> Iterator[str]:
    time_ms = inventory.read.clocks.now_ms if inventory.read.clocks is not None else None
    headings = WIDE if time_ms is None else (*WIDE[:-3], *ACTIVITY, *WIDE[-3:])
    wide = layout(headings, (_wide(group, time_ms) for group in inventory.groups), width)
    if wide.width <= width:
        for heading in wide.headings:
            yield paint(heading, Colour.DIM, colour)
        for group in inventory.groups:
            yield paint(wide.line(_wide(group, time_ms)), Colour.YELLOW, colour and _is_unseen(group))
        return
    yield from _narrow_lines(inventory, layout(NARROW, map(_narrow, inventory.groups), width), width, colour)


def _narrow_lines(inventory: Inventory, narrow: Layout, width: int, colour: bool) -> Iterator[str]:
    """Yield two lines for a group: numbers, then words; a name that leaves no room has a line of its own."""
    fits = narrow.width <= width
    if not fits:
        narrow = layout(NARROW, (["", *_narrow(group)[1:]] for group in inventory.groups), width)
    for heading in narrow.headings:
        yield paint(heading, Colour.DIM, colour)
    for group in inventory.groups:
        shade = colour and _is_unseen(group)
        values = _narrow(group)
        if not fits:
            yield paint(values[0], Colour.YELLOW, shade)
            values[0] = ""
        yield paint(narrow.line(values), Colour.YELLOW, shade)
        yield from wrapped(_words(group, inventory), width, INDENT, INDENT)


def _narrow(group: GroupSummary) -> list[str]:
    committed = _text(group.partitions_committed)
    if not isinstance(group.partitions_of_its_topics, Failure):
        committed += f"/{group.partitions_of_its_topics}"
    topics = group.topics if isinstance(group.topics, Failure) else len(group.topics)
    return [
        name(group.group), _text(group.kind), _text(group.state), _text(group.members), _text(topics), committed,
        _sum(group, "+"),
    ]  # fmt: skip


def _wide(group: GroupSummary, time_ms: int | None) -> list[str]:
    values = _narrow(group)
    words = [_text(group.assignor) or "-", _text(group.coordinator), " ".join(group.attention)]
    activity = [] if time_ms is None else _activity(group, time_ms)
    return [*values[:2], _text(group.protocol_type) or "-", *values[2:], *activity, *words]


def _activity(group: GroupSummary, time_ms: int) -> list[str]:
    """Return the words below `ACTIVITY`: how long ago, how often, until when."""
    found = group.activity
    if isinstance(found, Failure):
        return [UNSEEN] * len(ACTIVITY)
    ago = "-" if found.last_commit_ms is None else duration_text((time_ms - found.last_commit_ms) / 1000)
    every = "-" if found.seconds_between_commits is None else _every(found)
    expires = "-" if found.expires_ms is None else UNSEEN
    if isinstance(found.expires_ms, int):
        expires = minute(found.expires_ms)
    return [ago, every, expires]


def _every(activity: GroupActivity) -> str:
    seconds = activity.seconds_between_commits or 0
    length = f"{seconds:g} s" if seconds < 100 else duration_text(seconds)
    return f"{length}, {many(activity.records_between_commits or 0, 'record')}"


def _words(group: GroupSummary, inventory: Inventory) -> str:
    """Return what has no column on a narrow page."""
    parts = [", ".join(group.attention)]
    if inventory.read.clocks is not None:
        ago, every, expires = _activity(group, inventory.read.clocks.now_ms)
        parts.append("no commit there" if ago == "-" else f"last commit {ago}" + " ago" * (ago != UNSEEN))
        parts += [f"every {every}"] * (every not in ("-", UNSEEN)) + [f"expires {expires}"] * (expires != "-")
    if not isinstance(group.protocol_type, Failure) and group.protocol_type not in ("consumer", group.kind):
        parts.append(f"protocol type {safe(group.protocol_type)}" if group.protocol_type else "never joined")
    if not isinstance(group.assignor, Failure) and group.assignor:
        parts.append(f"assignor {safe(group.assignor)}")
    parts.append(f"coordinator {_text(group.coordinator)}")
    return "; ".join(part for part in parts if part)


def _sum(group: GroupSummary, more: str) -> str:
    """Return the lag; `more` marks one that lacks partitions. Nothing committed has no lag, which is not 0."""
    lag = group.lag
    if isinstance(lag, Failure) or (lag.records is None and lag.unknown):
        unread = isinstance(lag, Failure) or lag.unread
        return UNSEEN if more else NOT_VISIBLE if unread else ""
    return number(lag.records, "-" if more else "") + more * bool(lag.unknown)


def _totals(inventory: Inventory) -> Iterator[tuple[str, str]]:
    kinds: dict[str, Counter[str]] = {}
    for (kind, state), count in inventory.by_kind_and_state.items():
        kinds.setdefault(kind, Counter())[state] += count
    yield "Groups", many(len(inventory.groups), "group")
    for kind, states in kinds.items():
        yield "", f"{states.total()} {safe(kind)}: {safe(tally(states))}"
    records, unknown, unread = inventory.lag
    lacking = [many(unknown, "partition")] * bool(unknown) + [many(unread, "group")] * bool(unread)
    total = "not known" if records is None else many(records, "record")
    yield "Lag", total + (f"; not known of {' and '.join(lacking)}" if lacking else "")
    attention = Counter(notice for group in inventory.groups for notice in group.attention)
    if attention:
        yield "Attention", tally(attention, GroupNotice)
    yield from _idle_times(inventory)
    if inventory.read.filtered:
        yield "Left out", f"{tally(inventory.read.filtered)} (by filter)"


def _group_document(inventory: Inventory, group: GroupSummary) -> dict[str, Any]:
    lag = group.lag
    activity = {}
    if inventory.read.clocks is not None:
        activity = dict(zip(ACTIVITY_FIELDS, map(_value, _activity_values(group)), strict=True))
    return facts_document(group) | {
        "topics": None if isinstance(group.topics, Failure) else list(group.topics),
        "partitions_committed": _value(group.partitions_committed),
        "partitions_of_its_topics": _value(group.partitions_of_its_topics),
        "lag": None if isinstance(lag, Failure) else lag.records,
        "lag_partitions_unknown": None if isinstance(lag, Failure) else lag.unknown,
        **activity,
        "attention": [str(notice) for notice in group.attention],
        "not_visible": group.not_visible(),
    }


def _activity_values(group: GroupSummary) -> list[Any]:
    """Return the values of `ACTIVITY_FIELDS`."""
    return [
        group.activity if isinstance(group.activity, Failure) else getattr(group.activity, field)
        for field in ACTIVITY_FIELDS
    ]


def _idle_times(inventory: Inventory) -> Iterator[tuple[str, str]]:
    """Yield how many groups nobody has used for how long: the first to leave behind are those of the longest time."""
    if inventory.read.clocks is None:
        return
    clocks = inventory.read.clocks
    idle = {days: [g.is_idle(clocks.now_ms, days * DAY_MS) for g in inventory.groups] for days in IDLE_DAYS}
    told = [f"{n} for {many(days, 'day')} or more" for days, found in idle.items() if (n := found.count(True))]
    if unseen := sum(isinstance(found, Failure) for found in idle[min(IDLE_DAYS)]):
        told.append(f"{unseen} not known")
    yield "Idle", "; ".join(told) or "no group for a day or more"
    if isinstance(clocks.settings, BrokerSettings):
        gone = f"{span(clocks.settings.retention_ms)}: what nobody has used for longer is gone, and in no list"
        yield "", f"{name(clocks.alias)} keeps offsets that nobody uses {gone}"
    if inventory.not_idle:
        yield "Left out", f"{many(inventory.not_idle, 'group')} in use, or used since (--idle)"


def _is_unseen(group: GroupSummary) -> bool:
    return GroupNotice.NOT_VISIBLE in group.attention


def _value(value: Any) -> Any:
    return None if isinstance(value, Failure) else value


def _cell(value: Any) -> str | int:
    if isinstance(value, Failure):
        return NOT_VISIBLE
    if value is None:
        return ""
    return value if isinstance(value, int) else str(value)


def _text(value: Any) -> str:
    return UNSEEN if isinstance(value, Failure) else safe(str(value))
