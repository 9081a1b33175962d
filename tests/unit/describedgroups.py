"""Groups as coordinators describe them."""

from migrate.described_group import AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup

COORDINATOR = Coordinator(1, "kafka-1", 9092)


def member(consumer: str = "c-1", **assigned: tuple[int, ...]) -> GroupMember:
    return GroupMember(
        consumer, f"client-of-{consumer}", "/10.0.0.7", tuple(AssignedTopic(*a) for a in assigned.items())
    )


def group(
    *members: GroupMember, state: str = "", kind: str = "classic", protocol_type: str = "consumer", assignor: str = ""
) -> ListedGroup:
    described = GroupDescription(state or ("Stable" if members else "Empty"), members, assignor, COORDINATOR)
    return ListedGroup(kind, protocol_type, described)
