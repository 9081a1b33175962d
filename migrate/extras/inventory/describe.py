"""The partitions of groups, line by line, as `kafka-consumer-groups --describe` has them. Pure.

First the partitions that members are assigned, committed or not, the members with most partitions first; then those
that are committed and that no member has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from migrate.clock import iso
from migrate.commit_table import without_offset
from migrate.described_group import GroupMember, ListedGroup
from migrate.extras.inventory.listing import (
    BESIDE,
    GROUP,
    KIND,
    LAGS,
    MEMBERS,
    PROTOCOL,
    SHOWN,
    STATE,
    SeenGroup,
    document_of,
    head_of,
    lag_of,
    unread_lines,
)
from migrate.extras.inventory.read import ClusterGroups, not_shown
from migrate.model import Commits, Failure, TopicPartition
from migrate.show.lines import at_most, headed, wrapped
from migrate.show.table import INDENT, Column, Table, document_lines, field, fields_of, shown
from migrate.text import Colour, many, name, paint, safe, some


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """One partition of a group. The side is that of the cluster that was asked.

    `committed` is None where nothing is committed, `member` where no member has the partition.
    """

    group: str
    partition: TopicPartition
    committed: int | Failure | None
    log_end: int | Failure
    member: GroupMember | Failure | None

    @property
    def lag(self) -> int | Failure | None:
        """Log end less commit, negative where the commit lies beyond the end; None where nothing is committed."""
        if not isinstance(self.committed, int):
            return self.committed
        return self.log_end if isinstance(self.log_end, Failure) else self.log_end - self.committed


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup(SeenGroup):
    """A group and its partitions. `commits_unread` says why its commits could not be read, None where they were.

    `idle_members` have no partition assigned: the group has more members than partitions; None where that is not shown,
    as it is not of a group that is rebalancing, or whose members are no consumers. `without_offset` counts commits of
    -1, which brokers take, and which are read as nothing committed.
    """

    commits_unread: Failure | None
    lines: tuple[PartitionLine, ...]
    idle_members: tuple[GroupMember, ...] | None
    without_offset: int = 0

    @property
    def is_whole(self) -> bool:
        """True if everything about the group was read."""
        facts = (self.listed.kind, self.listed.protocol_type, self.listed.description, self.lag)
        ends = (line.log_end for line in self.lines)
        return not any(isinstance(fact, Failure) for fact in (*facts, *ends))


def describe_groups(read: ClusterGroups) -> tuple[DescribedGroup, ...]:
    """Return all groups that were read, in order of their names."""
    return tuple(_described(read, group) for group in read.groups)


def _described(read: ClusterGroups, group: str) -> DescribedGroup:
    listed, answer = read.groups[group], read.commits[group]
    unread = answer if isinstance(answer, Failure) else None
    commits: Commits = {} if isinstance(answer, Failure) else answer
    return DescribedGroup(
        group=group,
        listed=listed,
        # Part of a lag would be taken for the whole.
        lag=unread or not_shown(read, group) or lag_of(commits, read.log_ends),
        commits_unread=unread,
        lines=tuple(_lines(read, group)),
        idle_members=_idle_members(listed),
        without_offset=len(without_offset(commits)),
    )


def _idle_members(group: ListedGroup) -> tuple[GroupMember, ...] | None:
    described = group.description
    if isinstance(described, Failure):
        return None
    # While it rebalances a member may be about to be assigned some; of a Connect worker brokers show no partitions.
    if described.members and (described.state != "Stable" or group.protocol_type != "consumer"):
        return None
    return tuple(member for member in described.members if not member.assigned)


def _lines(read: ClusterGroups, group: str) -> Iterator[PartitionLine]:
    described, answer = read.groups[group].description, read.commits[group]
    commits: Commits = {} if isinstance(answer, Failure) else answer
    no_end = Failure("NO_ANSWER", "the log's end is missing from the answer")

    def line(place: TopicPartition, member: GroupMember | Failure | None) -> PartitionLine:
        end, commit = read.log_ends.get(place, no_end), commits.get(place)
        # Of a topic that the cluster does not show brokers tell no commits, without a word.
        committed = commit.offset if commit else end if isinstance(end, Failure) else None
        return PartitionLine(group, place, answer if isinstance(answer, Failure) else committed, end, member)

    taken = set()
    members = () if isinstance(described, Failure) else described.members
    places = {member: sorted(member.partitions()) for member in members}
    for member in sorted(members, key=lambda m: (-len(places[m]), m.consumer_id)):
        taken.update(places[member])
        yield from (line(place, member) for place in places[member])
    # A partition that a member has is shown there; without this, all commits of a stopped group would be missing.
    for place in sorted({*commits, *without_offset(commits)}):
        if place not in taken:
            yield line(place, described if isinstance(described, Failure) else None)


def _of_member(key: str) -> Column[PartitionLine]:
    def value(line: PartitionLine) -> str | Failure | None:
        return str(getattr(line.member, key)) if isinstance(line.member, GroupMember) else line.member

    return Column(key.replace("_", "-").upper(), value, key=key)


PARTITION: tuple[Column[PartitionLine], ...] = (
    Column("TOPIC", lambda line: line.partition.topic, name, key="topic"),
    Column("PARTITION", lambda line: line.partition.partition, right=True, key="partition"),
    Column("CURRENT-OFFSET", lambda line: line.committed, right=True, key="current_offset"),
    Column("LOG-END-OFFSET", lambda line: line.log_end, right=True, key="log_end_offset"),
    field("lag", "LAG", right=True),
)
WIDE: tuple[Column[PartitionLine], ...] = (
    GROUP, *PARTITION, *map(_of_member, ("consumer_id", "host", "client_id")),
)  # fmt: skip
OF_GROUP = (GROUP, KIND, PROTOCOL, STATE, MEMBERS, *BESIDE, *LAGS)


def description_lines(read: ClusterGroups, groups: Sequence[DescribedGroup], width: int, colour: bool) -> Iterator[str]:
    """Yield each group's line and its partitions, then what could not be read."""
    yield paint(f"Groups on {name(read.alias)} ({read.side}), read {iso(read.time_ms)}", Colour.BOLD, colour)
    # One form for all of them: what stands where must not change from one group to the next.
    wide = [Table(WIDE, group.lines, width) for group in groups]
    is_wide = all(table.fits for table in wide)
    for group, table in zip(groups, wide, strict=True):
        yield ""
        yield from _group_line(group, width, colour)
        if group.lines and is_wide:
            yield from table.lines(colour, _shade)
        elif group.lines:
            yield from Table(PARTITION, table.rows, width, INDENT).lines(colour, _shade, above=_member_text)
        if group.idle_members:
            yield f"{INDENT}Idle, with no partition assigned:"
            named = at_most(list(map(_named, group.idle_members)), SHOWN, width - len(INDENT))
            yield from (INDENT + line for line in named)
    if not groups and not read.missing:
        yield "No groups."
    yield from unread_lines(read, {group.group: not_visible(group) for group in groups}, width, colour)


def description_csv(groups: Sequence[DescribedGroup]) -> Iterator[str]:
    """Return a heading and a line for each partition; what there is none of is an empty cell."""
    return Table(WIDE, [line for group in groups for line in group.lines]).csv()


def lines_beside_csv(groups: Sequence[DescribedGroup]) -> Iterator[str]:
    """Yield what CSV has no place for: idle members, and the groups that have no partition, and so no line in it.

    Those of which something is not visible are named by `unread_lines`: they may have partitions.
    """
    found = [group.group for group in groups if not group.lines and not not_visible(group)]
    if found:
        verb = "has" if len(found) == 1 else "have"
        named = some(map(name, found), SHOWN)
        yield f"{many(len(found), 'group')} {verb} no line: nothing committed or assigned. {named}"
    for group in groups:
        if group.idle_members and not isinstance(described := group.listed.description, Failure):
            idle = some((name(member.consumer_id) for member in group.idle_members), SHOWN)
            of_all = f"{len(group.idle_members)} of {many(len(described.members), 'member')}"
            verb = "is" if len(group.idle_members) == 1 else "are"
            yield f"{name(group.group)}: {of_all} {verb} idle, with no partition assigned: {idle}"


def description_document(read: ClusterGroups, groups: Sequence[DescribedGroup]) -> Iterator[str]:
    """Yield one JSON document, a line to a group, with its partitions; null is what there is none of."""
    yield from document_lines(head_of(read), {"groups": map(_group_document, groups)})


def not_visible(group: DescribedGroup) -> dict[str, str]:
    """Return why facts about a group are not known, by what they are."""
    facts = {
        "kind": group.listed.kind, "protocol_type": group.listed.protocol_type, "members": group.listed.description,
        "commits": group.commits_unread,
    }  # fmt: skip
    reasons = {fact: str(value) for fact, value in facts.items() if isinstance(value, Failure)}
    ends = {
        f"{line.partition.topic}: {line.log_end}": None for line in group.lines if isinstance(line.log_end, Failure)
    }
    return reasons | ({"log_end_offset": "; ".join(ends)} if ends else {})


def _group_line(group: DescribedGroup, width: int, colour: bool) -> Iterator[str]:
    described, lag = group.listed.description, group.lag
    parts, shade = [shown(group.listed.kind)], Colour.YELLOW
    if isinstance(described, Failure):
        parts.append("not visible")
    else:
        shade = Colour.BOLD
        idle = f", {len(group.idle_members)} of them idle" if group.idle_members else ""
        parts.append(many(len(described.members), "member") + idle)
        parts += [f"assignor {safe(described.assignor)}"] * bool(described.assignor)
        parts.append(f"coordinator {safe(str(described.coordinator))}")
    if isinstance(lag, Failure):
        parts.append("lag not visible")
    elif lag.records is None:
        is_unseen = lag.unknown or any(isinstance(line.committed, Failure) for line in group.lines)
        parts.append("lag not known" if is_unseen or group.without_offset else "nothing committed")
    else:
        lacking = f" (not known of {many(lag.unknown, 'partition')})" * bool(lag.unknown)
        parts.append(f"lag {lag.records}{lacking}")
    if not isinstance(lag, Failure) and lag.beyond:
        parts.append(f"{many(lag.beyond, 'commit')} beyond the log's end")
    if group.without_offset:
        parts.append(f"{many(group.without_offset, 'commit')} without an offset (-1)")
    head = f"{name(group.group)}  {shown(group.fact('state'))}"
    yield from headed(head, shade if colour else None, wrapped("; ".join(parts), width, f"{head}  ", "    "))


def _shade(line: PartitionLine) -> Colour | None:
    return Colour.YELLOW if isinstance(line.log_end, Failure) else None


def _member_text(line: PartitionLine) -> str:
    if isinstance(line.member, GroupMember):
        return f"{INDENT}{_named(line.member)}:"
    return INDENT + ("no member:" if line.member is None else "members not visible:")


def _named(member: GroupMember) -> str:
    return f"{name(member.consumer_id)} at {name(member.host)}, client {name(member.client_id)}"


def _group_document(group: DescribedGroup) -> dict[str, Any]:
    idle = group.idle_members
    (document,) = Table(OF_GROUP, [group]).documents()
    return document_of(
        group,
        document,
        idle_members=None if idle is None else [fields_of(each, "consumer_id", "host", "client_id") for each in idle],
        commits_without_offset=group.without_offset,
        partitions=list(Table(WIDE[1:], group.lines).documents()),
        not_visible=not_visible(group),
    )
