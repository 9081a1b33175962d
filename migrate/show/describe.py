"""`groups describe` as text, JSON and CSV: the columns of `kafka-consumer-groups --describe`. Pure.

"-" is what there is none of, "?" what is not visible. On a wide page every line names its group and its member; on a
narrow one a member stands above its partitions.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from migrate.clock import iso
from migrate.described_group import GroupMember
from migrate.inventory.describe import DescribedGroup, PartitionLine
from migrate.inventory.read import ClusterGroups
from migrate.model import Failure
from migrate.show.csv_cells import csv_line, harmless
from migrate.show.layout import Layout, columns, layout
from migrate.show.lines import headed, wrapped
from migrate.show.listing import INDENT, NOT_VISIBLE, SHOWN, UNSEEN, head_of, unread_lines
from migrate.show.streamed_json import document_lines
from migrate.text import Colour, many, name, paint, safe, some

FIELDS = (
    "group", "topic", "partition", "current_offset", "log_end_offset", "lag", "consumer_id", "host", "client_id",
)  # fmt: skip
ONE_LINE = 10**6  # columns: headings are not broken
_topic_name = lru_cache(maxsize=4096)(name)
NUMBERS = columns("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
NARROW = (*columns("TOPIC", right=False), *NUMBERS)
WIDE = (
    *columns("GROUP", "TOPIC", right=False), *NUMBERS, *columns("CONSUMER-ID", "HOST", "CLIENT-ID", right=False),
)  # fmt: skip


def description_lines(read: ClusterGroups, groups: Sequence[DescribedGroup], width: int, colour: bool) -> Iterator[str]:
    """Yield each group's line and its partitions, then what could not be read."""
    yield paint(f"Groups on {name(read.alias)} ({read.side}), read {iso(read.time_ms)}", Colour.BOLD, colour)
    # One form for all of them: what stands where must not change from one group to the next.
    wide = [layout(WIDE, _wide(group), ONE_LINE) for group in groups]
    is_wide = all(each.width <= width for each in wide)
    for group, of_group in zip(groups, wide, strict=True):
        yield ""
        yield from _group_line(group, width, colour)
        if group.lines:
            yield from _wide_lines(group, of_group, colour) if is_wide else _narrow_lines(group, width, colour)
    if not groups and not read.missing:
        yield "No groups."
    yield from unread_lines(read, {group.group: not_visible(group) for group in groups}, width, colour)


def description_csv(groups: Sequence[DescribedGroup]) -> Iterator[str]:
    """Yield a heading and a line for each partition; what there is none of is an empty cell."""
    yield csv_line(FIELDS)
    for group in groups:
        for line in group.lines:
            values: tuple[str | int, ...] = (
                group.group, line.partition.topic, line.partition.partition, *_numbers(group, line, "", NOT_VISIBLE),
                *_member(group, line.member, "", NOT_VISIBLE),
            )  # fmt: skip
            yield csv_line(harmless(value) for value in values)


def lines_beside_csv(groups: Sequence[DescribedGroup]) -> Iterator[str]:
    """Yield what CSV has no place for: the groups that have no partition, and so no line in it.

    Those of which something is not visible are told by `unread_lines`: they may have partitions.
    """
    found = [group.group for group in groups if not group.lines and not not_visible(group)]
    if found:
        verb = "has" if len(found) == 1 else "have"
        named = some(map(name, found), SHOWN)
        yield f"{many(len(found), 'group')} {verb} no line: nothing committed or assigned. {named}"


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
        parts = [many(len(described.members), "member"), *assignor, f"coordinator {safe(str(described.coordinator))}"]
    if isinstance(group.lag, Failure):
        lag = "lag not visible"
    elif group.lag.records is None:
        is_unseen = group.lag.unknown or any(_may_be_committed(line) for line in group.lines)
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


def _wide_lines(group: DescribedGroup, wide: Layout, colour: bool) -> Iterator[str]:
    for heading in wide.headings:
        yield paint(heading, Colour.DIM, colour)
    for line, values in zip(group.lines, _wide(group), strict=True):
        yield paint(wide.line(values), Colour.YELLOW, colour and isinstance(line.log_end, Failure))


def _narrow_lines(group: DescribedGroup, width: int, colour: bool) -> Iterator[str]:
    narrow = layout(NARROW, (_narrow(group, line) for line in group.lines), width - len(INDENT))
    for heading in narrow.headings:
        yield paint(INDENT + heading, Colour.DIM, colour)
    for member, lines in groupby(group.lines, key=lambda line: line.member):
        yield from wrapped(_member_text(group, member), width, INDENT, INDENT + INDENT)
        for line in lines:
            text = INDENT + narrow.line(_narrow(group, line))
            yield paint(text, Colour.YELLOW, colour and isinstance(line.log_end, Failure))


def _member_text(group: DescribedGroup, member: GroupMember | None) -> str:
    if member is None:
        return "members not visible:" if isinstance(group.listed.description, Failure) else "no member:"
    return f"{name(member.consumer_id)} at {name(member.host)}, client {name(member.client_id)}:"


def _wide(group: DescribedGroup) -> Iterator[list[str]]:
    group_name = name(group.group)
    for member, lines in groupby(group.lines, key=lambda line: line.member):
        words = list(map(safe, _member(group, member, "-", UNSEEN)))
        for line in lines:
            yield [group_name, *_narrow(group, line), *words]


def _narrow(group: DescribedGroup, line: PartitionLine) -> list[str]:
    return [
        _topic_name(line.partition.topic),
        str(line.partition.partition),
        *map(str, _numbers(group, line, "-", UNSEEN)),
    ]


def _numbers(group: DescribedGroup, line: PartitionLine, none: str, unseen: str) -> list[str | int]:
    """Return commit, log end and lag, or the words for none and for what is not visible."""
    committed: str | int = none if line.committed is None else line.committed
    if group.commits_unread is not None or _may_be_committed(line):
        committed = unseen
    end: str | int = unseen if isinstance(line.log_end, Failure) else line.log_end
    if line.lag is not None:
        return [committed, end, line.lag]
    return [committed, end, none if committed == none else unseen]


def _may_be_committed(line: PartitionLine) -> bool:
    """True where the cluster does not show the topic: of such a one brokers tell no commits, without a word."""
    return line.committed is None and isinstance(line.log_end, Failure)


def _member(group: DescribedGroup, member: GroupMember | None, none: str, unseen: str) -> list[str]:
    if member is not None:
        return [member.consumer_id, member.host, member.client_id]
    return [unseen if isinstance(group.listed.description, Failure) else none] * 3


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
        "commits_without_offset": group.without_offset,
        "partitions": [
            {
                "topic": line.partition.topic,
                "partition": line.partition.partition,
                "current_offset": line.committed,
                "log_end_offset": None if isinstance(line.log_end, Failure) else line.log_end,
                "lag": line.lag,
                "consumer_id": line.member.consumer_id if line.member else None,
                "host": line.member.host if line.member else None,
                "client_id": line.member.client_id if line.member else None,
            }
            for line in group.lines
        ],
        "not_visible": not_visible(group),
    }
