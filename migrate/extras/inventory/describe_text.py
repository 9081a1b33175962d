"""`groups describe` as text, JSON and CSV: the columns of `kafka-consumer-groups --describe`. Pure.

"-" is what there is none of, "?" what is not visible. On a wide page every line names its group and its member; on a
narrow one a member stands above its partitions.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from migrate.clock import iso
from migrate.described_group import GroupMember
from migrate.extras.inventory.describe import DescribedGroup, PartitionLine
from migrate.extras.inventory.listing_text import SHOWN, head_of, unread_lines
from migrate.extras.inventory.read import ClusterGroups
from migrate.model import Failure
from migrate.show.lines import at_most, headed, wrapped
from migrate.show.table import INDENT, UNSEEN, Column, Table, document_lines, fields_of
from migrate.text import Colour, many, name, paint, safe, some

# A partition of a group.
Line = tuple[DescribedGroup, PartitionLine]


def _committed(at: Line) -> int | Failure | None:
    group, line = at
    # Of a topic that the cluster does not show brokers tell no commits, without a word.
    is_hidden = line.committed is None and isinstance(line.log_end, Failure)
    return group.commits_unread or (line.log_end if is_hidden else line.committed)


def _lag(at: Line) -> int | Failure | None:
    committed, line = _committed(at), at[1]
    if isinstance(committed, Failure) or committed is None:
        return committed
    return line.log_end if isinstance(line.log_end, Failure) else line.lag


def _of_member(key: str) -> Column[Line]:
    def value(at: Line) -> str | Failure | None:
        group, line = at
        if line.member is None:
            described = group.listed.description
            return described if isinstance(described, Failure) else None
        return str(getattr(line.member, key))

    return Column(key.replace("_", "-").upper(), value, key=key)


GROUP: Column[Line] = Column("GROUP", lambda at: at[0].group, name, key="group")
PARTITION: tuple[Column[Line], ...] = (
    Column("TOPIC", lambda at: at[1].partition.topic, name, key="topic"),
    Column("PARTITION", lambda at: at[1].partition.partition, right=True, key="partition"),
    Column("CURRENT-OFFSET", _committed, right=True, key="current_offset"),
    Column("LOG-END-OFFSET", lambda at: at[1].log_end, right=True, key="log_end_offset"),
    Column("LAG", _lag, right=True, key="lag"),
)
MEMBER = tuple(map(_of_member, ("consumer_id", "host", "client_id")))


def description_lines(read: ClusterGroups, groups: Sequence[DescribedGroup], width: int, colour: bool) -> Iterator[str]:
    """Yield each group's line and its partitions, then what could not be read."""
    yield paint(f"Groups on {name(read.alias)} ({read.side}), read {iso(read.time_ms)}", Colour.BOLD, colour)
    # One form for all of them: what stands where must not change from one group to the next.
    wide = [Table((GROUP, *PARTITION, *MEMBER), _lines(group), width) for group in groups]
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
    return Table((GROUP, *PARTITION, *MEMBER), [line for group in groups for line in _lines(group)]).csv()


def lines_beside_csv(groups: Sequence[DescribedGroup]) -> Iterator[str]:
    """Yield what CSV has no place for: idle members, and the groups that have no partition, and so no line in it.

    Those of which something is not visible are told by `unread_lines`: they may have partitions.
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
    listed, described = group.listed, group.listed.description
    kind = UNSEEN if isinstance(listed.kind, Failure) else safe(listed.kind)
    if isinstance(described, Failure):
        state, shade, parts = UNSEEN, Colour.YELLOW, ["not visible"]
    else:
        state, shade = safe(described.state), Colour.BOLD
        assignor = [f"assignor {safe(described.assignor)}"] if described.assignor else []
        idle = f", {len(group.idle_members)} of them idle" if group.idle_members else ""
        parts = [
            many(len(described.members), "member") + idle,
            *assignor,
            f"coordinator {safe(str(described.coordinator))}",
        ]
    if isinstance(group.lag, Failure):
        lag = "lag not visible"
    elif group.lag.records is None:
        is_unseen = group.lag.unknown or any(isinstance(_committed(line), Failure) for line in _lines(group))
        lag = "lag not known" if is_unseen or group.without_offset else "nothing committed"
    else:
        lag = f"lag {group.lag.records}"
        lag += f" (not known of {many(group.lag.unknown, 'partition')})" * bool(group.lag.unknown)
    beyond = 0 if isinstance(group.lag, Failure) else group.lag.beyond
    ahead = [f"{many(beyond, 'commit')} beyond the log's end"] if beyond else []
    without = [f"{many(group.without_offset, 'commit')} without an offset (-1)"] if group.without_offset else []
    head = f"{name(group.group)}  {state}"
    text = "; ".join([kind, *parts, lag, *ahead, *without])
    yield from headed(head, shade if colour else None, wrapped(text, width, f"{head}  ", "    "))


def _lines(group: DescribedGroup) -> list[Line]:
    return [(group, line) for line in group.lines]


def _shade(at: Line) -> Colour | None:
    return Colour.YELLOW if isinstance(at[1].log_end, Failure) else None


def _member_text(at: Line) -> str:
    group, line = at
    if line.member is None:
        found = "members not visible:" if isinstance(group.listed.description, Failure) else "no member:"
    else:
        found = f"{_named(line.member)}:"
    return INDENT + found


def _named(member: GroupMember) -> str:
    return f"{name(member.consumer_id)} at {name(member.host)}, client {name(member.client_id)}"


def _group_document(group: DescribedGroup) -> dict[str, Any]:
    listed, described, lag = group.listed, group.listed.description, group.lag
    seen = None if isinstance(described, Failure) else described
    node = seen.coordinator if seen else None
    return {
        "group": group.group,
        "kind": None if isinstance(listed.kind, Failure) else listed.kind,
        "protocol_type": None if isinstance(listed.protocol_type, Failure) else listed.protocol_type,
        "state": seen.state if seen else None,
        "members": len(seen.members) if seen else None,
        "assignor": seen.assignor if seen else None,
        "coordinator": {"id": node.broker, "host": node.host, "port": node.port} if node else None,
        "lag": None if isinstance(lag, Failure) else lag.records,
        "lag_partitions_unknown": None if isinstance(lag, Failure) else lag.unknown,
        "idle_members": None
        if group.idle_members is None
        else [fields_of(member, "consumer_id", "host", "client_id") for member in group.idle_members],
        "commits_without_offset": group.without_offset,
        "partitions": list(Table((*PARTITION, *MEMBER), _lines(group)).documents()),
        "not_visible": not_visible(group),
    }
