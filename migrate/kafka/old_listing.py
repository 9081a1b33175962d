"""What librdkafka's older listing says of groups: with one request to each broker it lists and describes all of them.

Ten thousand groups take it a fifth of a second, where describing them one by one, each after its coordinator was
looked up, takes many. It describes classic groups alone: one of another protocol shows as "Dead", as one that does
not exist.
"""

import struct
from typing import Any

from migrate.described_group import AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup

CONSUMER = "consumer"
_STATES = frozenset({"Empty", "Stable", "PreparingRebalance", "CompletingRebalance"})
_COUNT, _PARTITION, _SIZE, _VERSION = (struct.Struct(form) for form in (">i", ">i", ">h", ">h"))


def classic_group(group: Any) -> ListedGroup | None:
    """Return a group as this listing describes it; None where it does not say enough, and another has to be asked."""
    protocol_type, state = str(group.protocol_type or ""), str(group.state)
    if group.error is not None or state not in _STATES:
        return None
    try:
        members = tuple(_member(member, protocol_type) for member in group.members)
    except ValueError:  # an assignor of somebody's own may assign in words of its own
        return None
    node = group.broker
    coordinator = Coordinator(int(node.id), str(node.host), int(node.port))
    return ListedGroup(
        "classic", protocol_type, GroupDescription(state, members, str(group.protocol or ""), coordinator)
    )


def assignment_of(raw: bytes) -> tuple[AssignedTopic, ...]:
    """Return the partitions in a member's assignment (`ConsumerProtocolAssignment`, all versions); none while
    rebalancing.

    Raises `ValueError` where the bytes are no such thing.
    """
    if not raw:
        return ()
    topics = []
    try:
        (count,) = _COUNT.unpack_from(raw, _VERSION.size)
        at = _VERSION.size + _COUNT.size
        for _ in range(count):
            (size,) = _SIZE.unpack_from(raw, at)
            at += _SIZE.size
            if size < 0 or at + size > len(raw):
                raise ValueError("a topic's name goes beyond the assignment")
            topic = raw[at : at + size].decode()
            at += size
            (partitions,) = _COUNT.unpack_from(raw, at)
            at += _COUNT.size
            numbers = struct.unpack_from(f">{max(0, partitions)}i", raw, at)
            at += _PARTITION.size * len(numbers)
            topics.append(AssignedTopic(topic, numbers))
    except struct.error as error:
        raise ValueError(str(error)) from None
    return tuple(topics)


def _member(member: Any, protocol_type: str) -> GroupMember:
    assigned = assignment_of(bytes(member.assignment or b"")) if protocol_type == CONSUMER else ()
    return GroupMember(str(member.id), str(member.client_id), str(member.client_host), assigned)
