"""A member of a classic group whose assignor has any name: as Kafka Streams joins, without Kafka Streams.

Hundreds of members of one group, without hundreds of consumers. And commits that no client library sends any more: with
a retention time, as those from before Kafka 2.1 did, and of -1.

Speaks Kafka's protocol by hand (FindCoordinator 0, JoinGroup 5, SyncGroup 3, LeaveGroup 1, OffsetCommit 2).
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from tests.integration.clusters import CALL_SECONDS
from tests.lab.protocol import NULL, Connection, data, string
from tests.lab.waiting import wait_until

FIND, JOIN, SYNC, LEAVE, COMMIT = (10, 0), (11, 5), (14, 3), (13, 1), (8, 2)
MEMBER_ID_REQUIRED = 79
SESSION_MS = 1_500_000
CROWD_SECONDS = 180.0


def text_at(answer: bytes, at: int) -> tuple[str, int]:
    """A string of an answer, and where it ends."""
    size = max(0, struct.unpack_from(">h", answer, at)[0])
    return answer[at + 2 : at + 2 + size].decode(), at + 2 + size


NO_USER_DATA = struct.pack(">i", -1)


def coordinator(bootstrap: str, group: str) -> str | None:
    """The address of the broker that coordinates a group; None while there is none."""
    with closing(Connection(bootstrap, "raw-member")) as connection:
        answer = connection.ask(FIND, string(group))
    host, at = text_at(answer, 6)
    return None if struct.unpack_from(">h", answer)[0] else f"{host}:{struct.unpack_from('>i', answer, at)[0]}"


class RawMember:
    """One connection to the broker that coordinates the group."""

    def __init__(self, bootstrap: str, group: str, client: str = "raw-member", protocol_type: str = "consumer") -> None:
        found = wait_until(lambda: coordinator(bootstrap, group), CALL_SECONDS, f"a coordinator of {group}")
        self._connection = Connection(found, client)
        self._group = group
        self._protocol_type = protocol_type
        self._member = ""
        self._generation: int | None = None
        self._leads = False

    def join(self, topic: str, assignor: str) -> bool:
        """Join as the only member, and take nothing; False while the coordinator is not ready."""
        for _ in range(2):  # the first answer gives the member its id
            self.ask_to_join(topic, assignor)
            if not self.take_joined():
                return False
            if self._generation is not None:
                break
        self.ask_to_sync()
        return self.take_synced()

    def ask_to_join(self, topic: str, assignor: str) -> None:
        subscription = struct.pack(">hi", 0, 1) + string(topic) + NO_USER_DATA
        protocols = struct.pack(">i", 1) + string(assignor) + data(subscription)
        times, kind = struct.pack(">ii", SESSION_MS, SESSION_MS), string(self._protocol_type)
        self._connection.send(JOIN, string(self._group) + times + string(self._member) + NULL + kind + protocols)

    def take_joined(self) -> bool:
        """Take the answer to joining: the member's id, and then its generation; False where it was refused."""
        answer = self._connection.take()
        error, generation = struct.unpack_from(">hi", answer, 4)
        _, at = text_at(answer, 10)  # the protocol
        leader, at = text_at(answer, at)
        self._member, _ = text_at(answer, at)
        self._leads = leader == self._member
        self._generation = generation if error == 0 else None
        return error in (0, MEMBER_ID_REQUIRED)

    def ask_to_sync(self) -> None:
        """Ask for an assignment; the leader gives itself nothing, and the others none."""
        nothing = struct.pack(">hi", 0, 0) + NO_USER_DATA
        assignment = struct.pack(">i", 1) + string(self._member) + data(nothing)
        given = assignment if self._leads else struct.pack(">i", 0)
        generation = struct.pack(">i", self._generation or 0)
        self._connection.send(SYNC, string(self._group) + generation + string(self._member) + NULL + given)

    def take_synced(self) -> bool:
        return bool(struct.unpack_from(">h", self._connection.take(), 4)[0] == 0)

    def commit(self, topic: str, partition: int, offset: int, retention_ms: int) -> bool:
        """Commit from outside the group, for so long; False while the coordinator is not ready."""
        nobody = struct.pack(">i", -1) + string("")
        place = struct.pack(">i", 1) + string(topic) + struct.pack(">iiq", 1, partition, offset) + string("")
        answer = self._connection.ask(COMMIT, string(self._group) + nobody + struct.pack(">q", retention_ms) + place)
        return bool(struct.unpack_from(">h", answer, len(answer) - 2)[0] == 0)

    def leave(self) -> None:
        self._connection.ask(LEAVE, string(self._group) + string(self._member))
        self.close()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def member_with_assignor(bootstrap: str, group: str, topic: str, assignor: str) -> Iterator[None]:
    """A group that is alive, by the assignor of that name."""
    member = RawMember(bootstrap, group)
    wait_until(lambda: member.join(topic, assignor), CALL_SECONDS, f"{group} to be joined by {assignor}")
    try:
        yield
    finally:
        member.leave()


@contextmanager
def crowd(bootstrap: str, group: str, topic: str, members: int) -> Iterator[None]:
    """A group with so many members, "worker-000" and on, once it is stable; they leave in the end.

    They all join one rebalance: the broker's `group.initial.rebalance.delay.ms` must be some seconds.
    """
    coordinated = RawMember(bootstrap, group, "herald")
    wait_until(lambda: coordinated.join(topic, "range"), CALL_SECONDS, f"a coordinator of {group}")
    coordinated.leave()
    joined: list[RawMember] = []

    def is_stable() -> bool:
        joined[:] = [RawMember(bootstrap, group, f"worker-{number:03}") for number in range(members)]
        if _join_together(joined, topic):
            return True
        disband(joined)
        return False

    try:
        # A busy coordinator refuses one of hundreds in passing.
        wait_until(is_stable, CROWD_SECONDS, f"{members} members in {group}")
        yield
    finally:
        disband(joined)


def _join_together(joining: Sequence[RawMember], topic: str) -> bool:
    """True once all have joined one generation; False where one was refused."""
    for member in joining:
        member.ask_to_join(topic, "range")
        if not member.take_joined():
            return False
    for member in joining:
        member.ask_to_join(topic, "range")
    # Every answer is taken: who leaves reads the next one as its own.
    taken_in = [member.take_joined() for member in joining]
    if not all(taken_in):
        return False
    for member in joining:
        member.ask_to_sync()
    let_in = [member.take_synced() for member in joining]
    return all(let_in)


def disband(members: list[RawMember]) -> None:
    while members:
        members.pop().leave()


def commit_for(bootstrap: str, group: str, topic: str, offset: int, retention_ms: int) -> None:
    """Commit an offset on a topic's first partition that goes after so long, whatever the broker is set to."""
    client = RawMember(bootstrap, group)
    try:
        wait_until(
            lambda: client.commit(topic, 0, offset, retention_ms), CALL_SECONDS, f"{group} to have a commit on {topic}"
        )
    finally:
        client.close()


def commit_without_offset(bootstrap: str, group: str, topic: str) -> None:
    """Commit -1 on a topic's first partition: brokers take it, and consumers read it as nothing committed."""
    commit_for(bootstrap, group, topic, -1, retention_ms=-1)
