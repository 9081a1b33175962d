"""One line for each group: what it is, where it is, how far it lags, and what deserves attention. Pure.

Lag is the log end less the committed offset. A commit beyond its log's end is of another log than this one: its lag
is not known, and never a negative part of a sum.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from migrate.checks.group_kinds import VENDOR_GROUP
from migrate.clock import iso, minute
from migrate.commit_table import has_metadata
from migrate.described_group import GroupDescription, ListedGroup
from migrate.extras.inventory.read import ClusterGroups, assigned_to, not_shown
from migrate.model import Commits, Failure, GroupState, TopicPartition
from migrate.show.lines import aligned, at_most, tally, wrapped
from migrate.show.table import INDENT, UNSEEN, Column, Table, document_lines, field, fields_of, shown
from migrate.survey.cluster import BrokerSettings
from migrate.survey.connect_topics import SINK_PREFIX
from migrate.survey.expiry import OffsetClocks, expiry_of, span
from migrate.survey.group_facts import NOT_ASKED
from migrate.survey.groups import NO_ANSWER
from migrate.survey.offsets_topic import GroupKind
from migrate.survey.streams import ASSIGNORS, applications_of, is_metadata
from migrate.text import Colour, duration_text, many, name, paint, safe, some

DAY_MS = 86_400_000
# Below the week for which brokers keep offsets by default: what is idle for longer than that is gone.
IDLE_AFTER_MS = 3 * DAY_MS
UNTOLD = Failure("NOT_TOLD", "its records show neither a commit nor since when it is empty")


@dataclass(frozen=True, slots=True)
class GroupActivity:
    """What a group's records tell. Times are in ms since 1970.

    `last_commit_ms` is None where no commit of the group is there. `empty_since_ms` is None while it has members, and
    where that was not stored: only classic groups store it. `expires_ms` is when the first of its offsets goes if
    nobody comes back; None while the group has members, which keep the offsets of topics that they subscribe to, and
    where there are no offsets. The other two are medians of time and of offsets between successive commits on a
    partition, None where fewer than two commits are left.
    """

    last_commit_ms: int | None
    empty_since_ms: int | None
    expires_ms: int | None | Failure
    seconds_between_commits: float | None
    records_between_commits: int | None

    def unused_ms(self, now_ms: int) -> int | None:
        """Return how long ago a commit was made, or the last member left; None where neither is known."""
        known = [time for time in (self.last_commit_ms, self.empty_since_ms) if time is not None]
        # Clocks differ: what was committed a moment ago is not unused for a negative time.
        return max(0, now_ms - max(known)) if known else None


def activity_of(
    group: str, description: GroupDescription | Failure, commits: Commits | Failure, clocks: OffsetClocks
) -> GroupActivity | Failure:
    """Return what the records tell of a group; the `Failure` that says why they could not be read.

    They are the group's own in `__consumer_offsets`, which no Admin call shows; the times in them are the brokers'.
    Compaction takes earlier commits: how often a group commits is known by those that are left.
    """
    records = clocks.records
    if isinstance(records, Failure):
        return records
    record = records.get(group)
    if record is not None and record.kind is GroupKind.SHARE:
        return Failure("NO_CLIENT", "share groups commit nothing")
    if record is None:
        # A group that is listed has records, be they those of its commits alone, once it has formed.
        why = "an open transaction hides them, or none was written yet"
        return Failure("NOT_TOLD", f"its records were not to be seen: {why}")
    if not isinstance(commits, Failure) and (unseen := sorted(commits.keys() - record.committed_ms.keys())):
        # It may be the newest of all: the group would seem to have been idle since an older one.
        why = "that record cannot be decoded, or an open transaction hides it"
        return Failure("NOT_TOLD", f"when it committed on {some(map(str, unseen), 3)} was not to be seen: {why}")
    return GroupActivity(
        record.last_commit_ms,
        record.empty_since_ms,
        _expires_ms(group, description, commits, clocks),
        record.seconds_between_commits,
        record.records_between_commits,
    )


def _expires_ms(
    group: str, description: GroupDescription | Failure, commits: Commits | Failure, clocks: OffsetClocks
) -> int | None | Failure:
    if isinstance(description, Failure):
        return description
    if isinstance(commits, Failure):
        return commits
    # "Dead" with offsets is a group that another broker is taking over: its clock is not read off that.
    if description.state != "Empty" or not commits:
        return None
    # `kept` are all of its offsets: nothing is set.
    found = expiry_of(group, GroupState(description.state), tuple(commits), False, clocks)
    return Failure("NOT_TOLD", found.sentence) if found.back_by_ms is None else found.back_by_ms


CONNECT, STREAMS = "connect", "streams"
GROUP_FACTS = ("kind", "protocol_type", "state", "members", "assignor", "coordinator")


class GroupNotice(StrEnum):
    """What deserves attention about a group, in the order in which it is named."""

    ALIVE = "alive"
    IDLE = "idle"
    STALLED = "stalled"
    NEVER_COMMITTED = "never-committed-partitions"
    BEYOND_END = "commit-beyond-log-end"
    STREAMS = "streams"
    CONNECT_SINK = "connect-sink"
    VENDOR = "vendor-internal"
    NOT_VISIBLE = "not-visible"


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How many records a group has still to read.

    `records` adds up the partitions whose lag is known, and is None where there is none of them. `unknown` counts the
    committed partitions whose lag is not known, `beyond` those of them whose commit lies beyond the log's end.
    `unread` says once for each reason why log ends were not read.
    """

    records: int | None
    unknown: int
    beyond: int
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenGroup:
    """A group and how far it lags. What is not visible is the `Failure` that says why."""

    group: str
    listed: ListedGroup
    lag: GroupLag | Failure

    def fact(self, fact: str) -> Any:
        """Return a field of its listing, or of what its coordinator says, by its name; `members` is how many."""
        if fact in ("kind", "protocol_type"):
            return getattr(self.listed, fact)
        described = self.listed.description
        if isinstance(described, Failure):
            return described
        return len(described.members) if fact == "members" else getattr(described, fact)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary(SeenGroup):
    """A line of `groups list`.

    `topics` are those that it has committed on or is assigned. `partitions_committed` counts the partitions with a
    commit, `partitions_of_its_topics` all those of its topics that are there. `activity` is `NOT_ASKED`
    where the groups' own records were not asked for, and `stalled_partitions` (`stalled_on`) where one look was enough.
    """

    topics: tuple[str, ...] | Failure
    partitions_committed: int | Failure
    partitions_of_its_topics: int | Failure
    attention: tuple[GroupNotice, ...] = ()
    activity: GroupActivity | Failure = NOT_ASKED
    stalled_partitions: int | Failure = NOT_ASKED

    def not_visible(self) -> dict[str, str]:
        """Return why the fields are not known that are not, by the name of the field."""
        facts = {fact: self.fact(fact) for fact in GROUP_FACTS}
        facts |= fields_of(self, "topics", "partitions_committed", "partitions_of_its_topics", "lag")
        if isinstance(self.activity, GroupActivity):
            facts["expires_ms"] = self.activity.expires_ms
        else:
            facts["last_commit_ms"] = self.activity
        facts["stalled_partitions"] = self.stalled_partitions
        reasons = {fact: str(why) for fact, why in facts.items() if isinstance(why, Failure) and why is not NOT_ASKED}
        if not isinstance(self.lag, Failure) and self.lag.unread:
            reasons["lag"] = "; ".join(self.lag.unread)
        return reasons

    def is_idle(self, now_ms: int, limit_ms: int) -> bool | Failure:
        """Return whether nobody has used the group for so long; the `Failure` that says why nobody can tell.

        A group that somebody has used since is not idle, whatever else is not known of it.
        """
        activity, described = self.activity, self.listed.description
        unused_ms = None if isinstance(activity, Failure) else activity.unused_ms(now_ms)
        if unused_ms is not None and unused_ms < limit_ms:
            return False
        if isinstance(described, Failure):
            return described
        if not described.is_stopped:
            return False
        if isinstance(activity, Failure):
            return activity
        if described.state == "Dead":
            return Failure("NOT_TOLD", "its coordinator calls it Dead: another one may be taking it over")
        if self.listed.kind != "classic":
            return Failure("NOT_TOLD", "only classic groups store when their last member left")
        return True if unused_ms is not None else UNTOLD


@dataclass(frozen=True)
class Inventory:
    """All groups of a cluster that were asked for, and what they add up to.

    `not_idle` counts groups that are left out because somebody has used them since. `looks_apart_ms` is None where
    there was one look alone.
    """

    read: ClusterGroups
    groups: tuple[GroupSummary, ...]
    not_idle: int = 0
    looks_apart_ms: int | None = None

    @property
    def by_kind_and_state(self) -> Mapping[tuple[str, str], int]:
        """Return how many groups there are of each kind in each state; "not-visible" where one of them is not known."""
        return Counter(sorted((_word(g.fact("kind")), _word(g.fact("state"))) for g in self.groups))

    @property
    def lag(self) -> tuple[int | None, int, int]:
        """The lag of all groups together, the committed partitions whose lag is not known, groups without any.

        The lag is None where no partition's is known and that of some is not.
        """
        known = [group.lag for group in self.groups if not isinstance(group.lag, Failure)]
        unread, unknown = len(self.groups) - len(known), sum(lag.unknown for lag in known)
        records = [lag.records for lag in known if lag.records is not None]
        return None if (unread or unknown) and not records else sum(records), unknown, unread

    @property
    def is_whole(self) -> bool:
        """True if all that was asked for was read."""
        lacking = any(GroupNotice.NOT_VISIBLE in group.attention for group in self.groups)
        return not (lacking or self.read.unseen or self.read.missing)


def inventory_of(read: ClusterGroups, idle_ms: int | None = None, earlier: ClusterGroups | None = None) -> Inventory:
    """Return one line for each group, in order of their names.

    With `idle_ms` only groups that nobody has used for so long, and those of which that is not visible. `earlier` is a
    look at the same groups that says which of them have stalled since.
    """
    streams = applications_of(read.topics, read.groups).keys()
    limit_ms = IDLE_AFTER_MS if idle_ms is None else idle_ms
    groups = tuple(_summary(read, group, group in streams, limit_ms, earlier) for group in read.groups)
    apart_ms = None if earlier is None else read.time_ms - earlier.time_ms
    if idle_ms is None:
        return Inventory(read, groups, looks_apart_ms=apart_ms)
    assert read.clocks is not None, "only the groups' own records tell who is idle"
    now_ms = read.clocks.now_ms
    # Not by their attention: of whom nobody can tell must not be taken for used.
    shown = tuple(group for group in groups if group.is_idle(now_ms, limit_ms) is not False)
    return Inventory(read, shown, len(groups) - len(shown), apart_ms)


def stalled_on(group: str, earlier: ClusterGroups, read: ClusterGroups) -> int | Failure:
    """Return on how many partitions a group with members has stalled from an earlier look to this one.

    There it had records to read at the earlier look, and its commit is the same by now. What came after the earlier
    look a group may not have met yet. A `Failure` says why nobody can tell.
    """
    for look in (earlier, read):
        listed, commits = look.groups.get(group), look.commits.get(group)
        if listed is None or commits is None:
            return 0
        for answer in (listed.description, commits):
            if isinstance(answer, Failure):
                return answer
        if not isinstance(listed.description, Failure) and listed.description.is_stopped:
            return 0
    before, now = earlier.commits[group], read.commits[group]
    assert not isinstance(before, Failure) and not isinstance(now, Failure)
    same = [place for place in before.keys() & now.keys() if before[place].offset == now[place].offset]
    ends = {place: earlier.log_ends.get(place, NO_ANSWER) for place in same}
    unknown = next((end for end in ends.values() if isinstance(end, Failure)), 0)
    return sum(isinstance(end, int) and end > before[place].offset for place, end in ends.items()) or unknown


def lag_of(commits: Commits, ends: Mapping[TopicPartition, int | Failure]) -> GroupLag:
    """Return the lag of a group's commits."""
    records, known, beyond = 0, 0, 0
    unread: dict[str, None] = {}
    for partition, commit in commits.items():
        end = ends.get(partition)
        if not isinstance(end, int):
            unread[f"{partition.topic}: {end or 'no answer'}"] = None
        elif commit.offset > end:
            beyond += 1
        else:
            records += end - commit.offset
            known += 1
    return GroupLag(records if known else None, len(commits) - known, beyond, tuple(unread))


def _summary(
    read: ClusterGroups, group: str, is_streams: bool, idle_after_ms: int, earlier: ClusterGroups | None
) -> GroupSummary:
    listed, commits = read.groups[group], read.commits[group]
    is_streams = is_streams or _looks_like_streams(listed, commits)
    commits = not_shown(read, group) or commits
    lacks = False
    seen: dict[str, Any] = dict.fromkeys(("topics", "partitions_committed", "partitions_of_its_topics", "lag"), commits)
    if not isinstance(commits, Failure):
        by_topic = Counter(place.topic for place in commits)
        sizes = {t: read.topics.get(t, 0) for t in (*by_topic, *(place.topic for place in assigned_to(listed)))}
        lacks = any(by_topic[t] < sizes[t] for t in sizes)
        seen = {
            "topics": tuple(sorted(sizes)),
            "partitions_committed": len(commits),
            "partitions_of_its_topics": sum(sizes.values()),
            "lag": lag_of(commits, read.log_ends),
        }
    described = listed.description
    summary = GroupSummary(
        group=group,
        listed=listed,
        **seen,
        activity=NOT_ASKED if read.clocks is None else activity_of(group, described, commits, read.clocks),
        stalled_partitions=NOT_ASKED if earlier is None else stalled_on(group, earlier, read),
    )
    notices = {
        GroupNotice.IDLE: read.clocks is not None and summary.is_idle(read.clocks.now_ms, idle_after_ms) is True,
        GroupNotice.STALLED: isinstance(summary.stalled_partitions, int) and summary.stalled_partitions > 0,
        GroupNotice.ALIVE: not isinstance(described, Failure) and not described.is_stopped,
        GroupNotice.NEVER_COMMITTED: lacks,
        GroupNotice.BEYOND_END: not isinstance(summary.lag, Failure) and summary.lag.beyond > 0,
        GroupNotice.STREAMS: is_streams,
        GroupNotice.CONNECT_SINK: group.startswith(SINK_PREFIX) and listed.protocol_type != CONNECT,
        GroupNotice.VENDOR: VENDOR_GROUP.fullmatch(group) is not None,
        GroupNotice.NOT_VISIBLE: bool(summary.not_visible()),
    }
    return replace(summary, attention=tuple(notice for notice, holds in notices.items() if holds))


def _looks_like_streams(listed: ListedGroup, commits: Commits | Failure) -> bool:
    """True for a group of the streams protocol, of the assignor of Kafka Streams, or with metadata that it commits."""
    described = listed.description
    if listed.kind == STREAMS or (not isinstance(described, Failure) and described.assignor in ASSIGNORS):
        return True
    if isinstance(commits, Failure) or not has_metadata(commits):
        return False
    return any(is_metadata(commit.metadata) for commit in commits.values() if commit.metadata)


def _word(value: str | Failure) -> str:
    return "not-visible" if isinstance(value, Failure) else value


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


def _lag(group: SeenGroup) -> int | Failure | None:
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


def fact_column(fact: str, heading: str | None = None, right: bool = False) -> Column[Any]:
    """Return the column of what `SeenGroup.fact` returns."""
    return Column(heading, lambda group: group.fact(fact), right=right, key=fact)


GROUP = field("group", "GROUP", name)
KIND, PROTOCOL, STATE = (
    fact_column("kind", "KIND"),
    fact_column("protocol_type", "PROTOCOL"),
    fact_column("state", "STATE"),
)
MEMBERS = fact_column("members", "MEMBERS", right=True)
# Without a heading: in text these are further to the right than in CSV and JSON.
BESIDE = (fact_column("assignor"), fact_column("coordinator"))
LAGS: tuple[Column[Any], ...] = (
    Column(None, _lag, key="lag"),
    Column(None, lambda g: g.lag if isinstance(g.lag, Failure) else g.lag.unknown, key="lag_partitions_unknown"),
)
FACTS: tuple[Column[GroupSummary], ...] = (
    GROUP,
    KIND,
    PROTOCOL,
    STATE,
    MEMBERS,
    *BESIDE,
    field("topics", "TOPICS", lambda topics: shown(topics if isinstance(topics, Failure) else len(topics)), right=True),
    Column("COMMITTED", _committed, right=True),
    field("partitions_committed"),
    field("partitions_of_its_topics"),
    Column("LAG", _lag_text, right=True),
    *LAGS,
)
BROKER = (fact_column("assignor", "ASSIGNOR"), fact_column("coordinator", "COORDINATOR"))
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
    groups = (
        document_of(group, document, not_visible=group.not_visible())
        for group, document in zip(inventory.groups, table.documents(), strict=True)
    )
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
        if column.heading and cell not in ("-", "consumer", group.listed.kind):
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


def document_of(group: SeenGroup, document: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the values of a group's columns as JSON has them, with what else is said of it."""
    node = group.fact("coordinator")
    at = None if isinstance(node, Failure) else fields_of(node, "host", "port") | {"id": node.broker}
    return {**document, "coordinator": at, **more}


def _idle_times(inventory: Inventory) -> Iterator[tuple[str, str]]:
    """Yield how many groups nobody has used for how long: the first to leave behind are those of the longest time."""
    if inventory.read.clocks is None:
        return
    clocks = inventory.read.clocks
    idle = {days: [g.is_idle(clocks.now_ms, days * DAY_MS) for g in inventory.groups] for days in IDLE_DAYS}
    counts = [f"{n} for {many(days, 'day')} or more" for days, found in idle.items() if (n := found.count(True))]
    if unseen := sum(isinstance(found, Failure) for found in idle[min(IDLE_DAYS)]):
        counts.append(f"{unseen} not known")
    yield "Idle", "; ".join(counts) or "no group for a day or more"
    if isinstance(clocks.settings, BrokerSettings):
        gone = f"{span(clocks.settings.retention_ms)}: what was not used for longer is gone, and in no list"
        yield "", f"{name(clocks.alias)} keeps unused offsets {gone}"
    if inventory.not_idle:
        yield "Left out", f"{many(inventory.not_idle, 'group')} in use, or used since (--idle)"


def _shade(group: GroupSummary) -> Colour | None:
    return Colour.YELLOW if GroupNotice.NOT_VISIBLE in group.attention else None
