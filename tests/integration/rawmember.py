"""A member of a classic group whose assignor has any name: as Kafka Streams joins, without Kafka Streams.

And a commit with a retention time, as clients from before Kafka 2.1 ask for it.

Speaks Kafka's protocol by hand (JoinGroup 5, SyncGroup 3, LeaveGroup 1, OffsetCommit 2), with the one broker that a
cluster has.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.clusters import CALL_SECONDS
from tests.lab.waiting import wait_until

JOIN, SYNC, LEAVE, COMMIT = (11, 5), (14, 3), (13, 1), (8, 2)
MEMBER_ID_REQUIRED = 79
SESSION_MS = 300_000


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def data(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw


NULL = struct.pack(">h", -1)
NO_USER_DATA = struct.pack(">i", -1)


class RawMember:
    """One connection to one broker, which coordinates the group."""

    def __init__(self, bootstrap: str, group: str) -> None:
        host, _, port = bootstrap.partition(":")
        self._socket = socket.create_connection((host, int(port)), CALL_SECONDS)
        self._group = group
        self._member = ""

    def join(self, topic: str, assignor: str) -> bool:
        """Join as the only member, and take nothing; False while the coordinator is not ready."""
        subscription = struct.pack(">hi", 0, 1) + string(topic) + NO_USER_DATA
        protocols = struct.pack(">i", 1) + string(assignor) + data(subscription)
        times = struct.pack(">ii", SESSION_MS, SESSION_MS)
        for _ in range(2):  # the first answer gives the member its id
            body = string(self._group) + times + string(self._member) + NULL + string("consumer") + protocols
            answer = self._ask(JOIN, body)
            error, generation = struct.unpack_from(">hi", answer, 4)
            at = 10
            for _ in range(2):  # protocol and leader
                at += 2 + struct.unpack_from(">h", answer, at)[0]
            size = struct.unpack_from(">h", answer, at)[0]
            self._member = answer[at + 2 : at + 2 + size].decode()
            if error == 0:
                break
            if error != MEMBER_ID_REQUIRED:
                return False
        nothing = struct.pack(">hi", 0, 0) + NO_USER_DATA
        assignment = struct.pack(">i", 1) + string(self._member) + data(nothing)
        body = string(self._group) + struct.pack(">i", generation) + string(self._member) + NULL + assignment
        return bool(struct.unpack_from(">h", self._ask(SYNC, body), 4)[0] == 0)

    def commit(self, topic: str, partition: int, offset: int, retention_ms: int) -> bool:
        """Commit from outside the group, for so long; False while the coordinator is not ready."""
        nobody = struct.pack(">i", -1) + string("")
        place = struct.pack(">i", 1) + string(topic) + struct.pack(">iiq", 1, partition, offset) + string("")
        answer = self._ask(COMMIT, string(self._group) + nobody + struct.pack(">q", retention_ms) + place)
        return bool(struct.unpack_from(">h", answer, len(answer) - 2)[0] == 0)

    def leave(self) -> None:
        self._ask(LEAVE, string(self._group) + string(self._member))
        self.close()

    def close(self) -> None:
        self._socket.close()

    def _ask(self, api: tuple[int, int], body: bytes) -> bytes:
        request = struct.pack(">hhi", *api, 1) + string("raw-member") + body
        self._socket.sendall(data(request))
        size = struct.unpack(">i", self._read(4))[0]
        return self._read(size)[4:]

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self._socket.recv(size - len(found))
            assert part, "the broker closed the connection"
            found += part
        return found


@contextmanager
def member_with_assignor(bootstrap: str, group: str, topic: str, assignor: str) -> Iterator[None]:
    """A group that is alive, by the assignor of that name."""
    member = RawMember(bootstrap, group)
    wait_until(lambda: member.join(topic, assignor), CALL_SECONDS, f"{group} to be joined by {assignor}")
    try:
        yield
    finally:
        member.leave()


def commit_for(bootstrap: str, group: str, topic: str, offset: int, retention_ms: int) -> None:
    """Commit an offset on a topic's first partition that goes after so long, whatever the broker is set to."""
    client = RawMember(bootstrap, group)
    try:
        wait_until(
            lambda: client.commit(topic, 0, offset, retention_ms), CALL_SECONDS, f"{group} to have a commit on {topic}"
        )
    finally:
        client.close()
