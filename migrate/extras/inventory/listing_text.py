"""`groups list` as text, JSON and CSV. Pure.

What is not visible is "?" in the table, "not-visible" in CSV and null in JSON, and its reason is beside it: it is
never 0.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from migrate.clock import iso, minute
from migrate.extras.inventory.listing import DAY_MS, GroupNotice, GroupSummary, Inventory
from migrate.extras.inventory.read import ClusterGroups
from migrate.model import Failure
from migrate.show.lines import aligned, at_most, tally, wrapped
from migrate.show.table import INDENT, UNSEEN, Column, Table, document_lines, field, shown
from migrate.survey.cluster import BrokerSettings
from migrate.survey.expiry import span
from migrate.text import Colour, duration_text, many, name, paint, safe, some

LABELS = 11
SHOWN = 20
ACTIVITY_LEGEND = (
    "LAST-COMMIT is how long ago, EVERY the median between commits on a partition, EXPIRES when the first offset goes "
    "if nobody comes back."
)
IDLE_DAYS = (365, 90, 30, 7, 1)
LEGEND = (
    "COMMITTED counts the partitions with a commit, of all partitions of the group's topics. LAG is the log end less "
    "the committed offset, added up; + marks a sum that lacks partitions whose lag is not known. ? is not known."
)


def _committed(group: GroupSummary) -> str:
    committed, of_all = group.partitions_committed, group.partitions_of_its_topics
    return shown(committed) if isinstance(of_all, Failure) else f"{shown(committed)}/{of_all}"


def _lag(group: GroupSummary) -> int | Failure | None:
    lag = group.lag
    if isinstance(lag, Failure):
        return lag
    return Failure("NOT_VISIBLE", "; ".join(lag.unread)) if lag.records is None and lag.unread else lag.records


def _lag_text(group: GroupSummary) -> str:
    """Return the lag; + marks one that lacks partitions. Nothing committed has no lag, which is not 0."""
    lag = group.lag
    if isinstance(lag, Failure) or (lag.records is None and lag.unknown):
        return UNSEEN
    return shown(lag.records) + "+" * bool(lag.unknown)


GROUP, PROTOCOL = field("group", "GROUP", name), field("protocol_type", "PROTOCOL")
FACTS: tuple[Column[GroupSummary], ...] = (
    GROUP,
    field("kind", "KIND"),
    PROTOCOL,
    field("state", "STATE"),
    field("members", "MEMBERS", right=True),
    field("assignor"),
    field("coordinator"),
    field("topics", "TOPICS", lambda topics: shown(topics if isinstance(topics, Failure) else len(topics)), right=True),
    Column("COMMITTED", _committed, right=True),
    field("partitions_committed"),
    field("partitions_of_its_topics"),
    Column("LAG", _lag_text, right=True),
    Column(None, _lag, key="lag"),
    Column(None, lambda g: g.lag if isinstance(g.lag, Failure) else g.lag.unknown, key="lag_partitions_unknown"),
)
# In text these are further to the right than in CSV and JSON.
BROKER: tuple[Column[GroupSummary], ...] = (
    Column("ASSIGNOR", lambda group: group.assignor),
    Column("COORDINATOR", lambda group: group.coordinator),
)
ATTENTION = field("attention", "ATTENTION", " ".join)


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
    """Return a heading and a line for each group; topics and attention are words with a blank between."""
    return Table((*FACTS, ATTENTION, *_activity(inventory)), inventory.groups).csv()


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
    table = Table((*FACTS, *_activity(inventory), ATTENTION), inventory.groups)
    groups = map(_group_document, table.documents(), inventory.groups)
    yield from document_lines(head, {"groups": groups})


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
    groups, activity = inventory.groups, _activity(inventory)
    wide = Table((*FACTS, *activity, *BROKER, ATTENTION), groups, width)
    if wide.fits:
        return wide.lines(colour, _shade)
    narrow = Table([column for column in FACTS if column not in (GROUP, PROTOCOL)], groups, width, INDENT)
    return narrow.lines(
        colour, _shade, GROUP.cell, lambda group: wrapped(_words(group, activity), width, INDENT * 2, INDENT * 2)
    )


def _activity(inventory: Inventory) -> tuple[Column[GroupSummary], ...]:
    """Return the columns of what the groups' own records say, and a second look; none where these were not asked."""
    stalled: tuple[Column[GroupSummary], ...] = (field("stalled_partitions"),)
    if inventory.looks_apart_ms is None:
        stalled = ()
    if inventory.read.clocks is None:
        return stalled
    now_ms = inventory.read.clocks.now_ms

    def column(key: str, heading: str | None = None, text: Callable[[Any], str] = str) -> Column[GroupSummary]:
        def value(group: GroupSummary) -> Any:
            return group.activity if isinstance(group.activity, Failure) else getattr(group.activity, key)

        def cell(found: Any) -> str:
            return text(found) if isinstance(found, int) else shown(found)

        return Column(heading, value, cell, heading == "LAST-COMMIT", key)

    return (
        column("last_commit_ms", "LAST-COMMIT", lambda ms: duration_text((now_ms - ms) / 1000)),
        Column("EVERY", _every, right=True),
        column("empty_since_ms"),
        column("expires_ms", "EXPIRES", minute),
        column("seconds_between_commits"),
        column("records_between_commits"),
        *stalled,
    )


def _every(group: GroupSummary) -> str | Failure | None:
    found = group.activity
    if isinstance(found, Failure):
        return found
    seconds = found.seconds_between_commits
    if seconds is None:
        return None
    length = f"{seconds:g} s" if seconds < 100 else duration_text(seconds)
    return f"{length}, {many(found.records_between_commits or 0, 'record')}"


def _words(group: GroupSummary, activity: Sequence[Column[GroupSummary]]) -> str:
    """Return what has no column on a narrow page, and is known."""
    parts = [", ".join(group.attention)]
    for column in (*activity, PROTOCOL, *BROKER):
        cell = column.cell(group)
        if column.heading and cell not in ("-", "consumer", group.kind):
            parts.append(f"{column.heading.lower()} {cell}")
    return "; ".join(filter(None, parts))


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
    if inventory.looks_apart_ms is not None:
        places = sum(n for g in inventory.groups if isinstance(n := g.stalled_partitions, int))
        where = f"on {many(places, 'partition')} with lag " if places else ""
        apart = duration_text(inventory.looks_apart_ms / 1000)
        yield "Stalled", f"{many(attention[GroupNotice.STALLED], 'group')} committed nothing further {where}in {apart}"
    yield from _idle_times(inventory)
    if inventory.read.filtered:
        yield "Left out", f"{tally(inventory.read.filtered)} (by filter)"


def _group_document(document: dict[str, Any], group: GroupSummary) -> dict[str, Any]:
    node = group.coordinator
    at = None if isinstance(node, Failure) else {"id": node.broker, "host": node.host, "port": node.port}
    return document | {"coordinator": at, "not_visible": group.not_visible()}


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
        gone = f"{span(clocks.settings.retention_ms)}: what was not used for longer is gone, and in no list"
        yield "", f"{name(clocks.alias)} keeps unused offsets {gone}"
    if inventory.not_idle:
        yield "Left out", f"{many(inventory.not_idle, 'group')} in use, or used since (--idle)"


def _shade(group: GroupSummary) -> Colour | None:
    return Colour.YELLOW if GroupNotice.NOT_VISIBLE in group.attention else None
