"""The bytes of `__consumer_offsets`: which record is which, and what commits and groups say in it. Pure.

Layouts are those of Kafka's group-coordinator schemas (`CoordinatorRecordType`, `OffsetCommitKey/Value`,
`GroupMetadataKey/Value`): a key begins with an int16 record type, a value with an int16 version, integers are
big-endian, a string is an int16 length and UTF-8; version 4 of both values is flexible (KIP-482).
`migrate.spark.offset_columns` says the same in Spark SQL, and is tested against this. Nothing raises on foreign bytes:
what cannot be read gives the `Fault` why, and every record has a `label` under which it is counted.
"""

import struct
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

COMMIT_TYPES = (0, 1)
CLASSIC_TYPE = 2
GROUP_KINDS = {CLASSIC_TYPE: "classic", 3: "consumer", 11: "share", 17: "streams"}
"""The record that every group of a kind has that somebody has joined, by its type."""
KINDS_OF_PARTS = {**dict.fromkeys((9, 10, 12, 13, 14, 15), "share"), **dict.fromkeys(range(18, 25), "streams")}
"""The kind that a record of a part of a group tells: a share group that nobody has joined has no other."""
NEWEST_VERSION = 4

TYPE_NAMES = {
    0: "LegacyOffsetCommit", 1: "OffsetCommit", 2: "GroupMetadata", 3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata", 5: "ConsumerGroupMemberMetadata", 6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember", 8: "ConsumerGroupCurrentMemberAssignment",
    9: "ShareGroupPartitionMetadata", 10: "ShareGroupMemberMetadata", 11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata", 13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment", 15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression", 17: "StreamsGroupMetadata", 18: "StreamsGroupPartitionMetadata",
    19: "StreamsGroupMemberMetadata", 20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember", 22: "StreamsGroupCurrentMemberAssignment", 23: "StreamsGroupTopology",
    24: "StreamsGroupTargetAssignmentResolvedTopicIds",
}  # fmt: skip
"""Kafka's names of the record types."""

# What records are counted as.
COMMIT = "commit"
COMMIT_WITH_OTHER_TAGS = "commit-with-unknown-tags"
COMMIT_TOMBSTONE = "commit-tombstone"
GROUP = "group"
GROUP_TOMBSTONE = "group-tombstone"
OTHER_TYPE = "type-"
BROKEN_KEY = "undecodable-key:"
BROKEN_VALUE = "undecodable-value:"
COMMIT_WITHOUT_OFFSET = "commit-without-offset"
NO_OFFSET = -1

# Of each member of a classic group, by version: string, nullable string, int32, bytes, tags.
MEMBER_FIELDS = ("SSSIBB", "SSSIIBB", "SSSIIBB", "SNSSIIBB", "SNSSIIBBT")

_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_TOPIC_ID = b"\x00\x10"
_TOPIC_ID_SIZE = 16
_KIND_VALUE_SIZE = 7
_LONGEST = 2**15 - 1


class Fault(StrEnum):
    """Why a key or a value could not be decoded."""

    NO_KEY = "no-key"
    BAD_LENGTH = "bad-length"
    UNKNOWN_VERSION = "unknown-version"
    UNKNOWN_TAGS = "unknown-tags"
    INVALID_UTF8 = "invalid-utf8"
    NEGATIVE = "negative"
    # No fault of the bytes: brokers take a commit of -1, which everybody reads as nothing committed.
    WITHOUT_OFFSET = "without-offset"


class OffsetsKey(NamedTuple):
    """What a record is about. `topic` and `partition` are None where it is about a whole group.

    Of a type that tells no group's kind, `group` is "".
    """

    record_type: int
    group: str = ""
    topic: str | None = None
    partition: int | None = None


class CommitValue(NamedTuple):
    """A commit. Times are in ms since 1970.

    `leader_epoch` is None where the consumer sent none, `expires_ms` where the commit carries no end of its own (only
    version 1 can), `topic_id` (as Kafka prints it) before Kafka 4.1. `other_tags` is True where a newer Kafka has added
    something that is not known here.
    """

    version: int
    offset: int
    leader_epoch: int | None
    metadata: str
    committed_ms: int
    expires_ms: int | None = None
    topic_id: str | None = None
    other_tags: bool = False


@dataclass(frozen=True, slots=True)
class GroupValueMember:
    """A member of a classic group; without its subscription and assignment, which may hold data of users."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int | None
    session_timeout: int


@dataclass(frozen=True, slots=True)
class GroupValue:
    """A group. All but `kind` and `version` are a classic group's, and None, or empty, for other kinds.

    `state_ms` is when its state last changed (ms since 1970), None where that was not stored.
    """

    kind: str
    version: int
    protocol_type: str | None = None
    generation: int | None = None
    protocol: str | None = None
    leader: str | None = None
    state_ms: int | None = None
    members: tuple[GroupValueMember, ...] = ()


# Commits without metadata, in the versions that brokers from Kafka 2.1 on write, by version and size: version, offset,
# epoch, the length of nothing, time; in version 4 the count of tags, and the topic's id. Behind it what must be there.
_PLAIN = {
    (3, 24): (struct.Struct(">hqihq"), (0,)),
    (4, 24): (struct.Struct(">hqibqb"), (1, 0)),
    (4, 42): (struct.Struct(">hqibqb2s16s"), (1, 1, _TOPIC_ID)),
}


class PlainCommit(NamedTuple):
    """What a commit without metadata says, as `CommitValue` does; `topic_id` in Kafka's 16 bytes, b"" without one."""

    offset: int
    committed_ms: int
    topic_id: bytes


class _Broken(Exception):
    """Raised where bytes cannot be read."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


def label(key: bytes | None, value: bytes | None) -> str:
    """Name a record for the counts: "commit", "type-5" for a type that is not decoded, "undecodable-value:..."."""
    decoded = decode_key(key)
    if isinstance(decoded, Fault):
        return BROKEN_KEY + decoded
    if decoded.record_type in COMMIT_TYPES:
        if value is None:
            return COMMIT_TOMBSTONE
        commit = decode_commit(value)
        if isinstance(commit, Fault):
            return label_of(commit)
        return COMMIT_WITH_OTHER_TAGS if commit.other_tags else COMMIT
    if decoded.record_type not in GROUP_KINDS:
        return f"{OTHER_TYPE}{decoded.record_type}"
    if value is None:
        return GROUP_TOMBSTONE
    group = decode_group(decoded.record_type, value)
    return label_of(group) if isinstance(group, Fault) else GROUP


def label_of(fault: Fault) -> str:
    """Name a record by what is wrong with its value."""
    return COMMIT_WITHOUT_OFFSET if fault is Fault.WITHOUT_OFFSET else BROKEN_VALUE + fault


def decode_key(key: bytes | None) -> OffsetsKey | Fault:
    """Decode what a record is about; of types that are neither commits nor groups, the type and, where it tells a
    group's kind and can be read, the group."""
    if key is None:
        return Fault.NO_KEY
    if len(key) < _INT16.size:
        return Fault.BAD_LENGTH
    record_type = int.from_bytes(key[:2], "big")
    is_commit = record_type in COMMIT_TYPES
    if not is_commit and record_type not in GROUP_KINDS:
        return OffsetsKey(record_type, _group_of_part(key) if record_type in KINDS_OF_PARTS else "")
    first = int.from_bytes(key[2:4], "big")
    second = int.from_bytes(key[4 + first : 6 + first], "big") if is_commit else 0
    if max(first, second) > _LONGEST or len(key) != 4 + first + (6 + second if is_commit else 0):
        return Fault.BAD_LENGTH
    try:
        group = key[4 : 4 + first].decode()
        topic = key[6 + first : 6 + first + second].decode() if is_commit else None
    except UnicodeDecodeError:
        return Fault.INVALID_UTF8
    partition = _INT32.unpack_from(key, len(key) - _INT32.size)[0] if is_commit else None
    if partition is not None and partition < 0:
        return Fault.NEGATIVE
    return OffsetsKey(record_type, group, topic, partition)


def _group_of_part(key: bytes) -> str:
    """Return the group's name in a key whose further fields are not decoded; "" where it cannot be read."""
    end = 4 + int.from_bytes(key[2:4], "big")
    try:
        return key[4:end].decode() if len(key) >= end else ""
    except UnicodeDecodeError:
        return ""


def decode_commit(value: bytes) -> CommitValue | Fault:
    """Decode the value of a commit that has an offset."""
    commit = decode_any_commit(value)
    return Fault.WITHOUT_OFFSET if not isinstance(commit, Fault) and commit.offset == NO_OFFSET else commit


def decode_any_commit(value: bytes) -> CommitValue | Fault:
    """Decode the value of a commit, also of one without an offset: its offset is `NO_OFFSET`."""
    try:
        version, reader = _versioned(value, NEWEST_VERSION)
        offset = reader.int64()
        epoch = reader.int32() if version >= 3 else -1
        raw = reader.take("S")
        committed_ms = reader.int64()
        expires_ms = reader.int64() if version == 1 else -1
        topic_id, other_tags = _tags(reader) if version >= 4 else (None, False)
        if not other_tags:
            reader.end()
        metadata = _text(raw)
    except _Broken as broken:
        return broken.fault
    if offset < NO_OFFSET:
        return Fault.NEGATIVE
    leader_epoch = epoch if epoch >= 0 else None
    end_ms = expires_ms if expires_ms >= 0 else None
    return CommitValue(version, offset, leader_epoch, metadata, committed_ms, end_ms, topic_id, other_tags)


def plain_commit(value: bytes) -> PlainCommit | None:
    """Decode a commit without metadata, which nearly all are, several times as fast; None where it is any other."""
    form = _PLAIN.get((int.from_bytes(value[:2], "big"), len(value)))
    if form is None:
        return None
    layout, expected = form
    _, offset, _, length, committed_ms, *tags = layout.unpack(value)
    if offset < 0 or (length, *tags[:2]) != expected:
        return None
    return PlainCommit(offset, committed_ms, tags[2] if len(tags) > 2 else b"")


def topic_id_text(topic_id: bytes) -> str:
    """Return a topic's id as Kafka prints it."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")


def decode_group(record_type: int, value: bytes) -> GroupValue | Fault:
    """Decode the value of a group's own record; `record_type` is one of `GROUP_KINDS`."""
    try:
        if record_type == CLASSIC_TYPE:
            return _classic(value)
        version, _ = _versioned(value, 0)
        if len(value) < _KIND_VALUE_SIZE:
            raise _Broken(Fault.BAD_LENGTH)
        return GroupValue(GROUP_KINDS[record_type], version)
    except _Broken as broken:
        return broken.fault


def _versioned(value: bytes, newest: int) -> tuple[int, "_Reader"]:
    if len(value) < _INT16.size:
        raise _Broken(Fault.BAD_LENGTH)
    version = int.from_bytes(value[:2], "big")
    if version > newest:
        raise _Broken(Fault.UNKNOWN_VERSION)
    return version, _Reader(value, 2, flexible=version >= 4)


def _tags(reader: "_Reader") -> tuple[str | None, bool]:
    """Return the topic id, if there is one, and whether there are tags that are not known."""
    count = reader.byte()
    if count == 0:
        return None, False
    # Tags are in the order of their numbers: the topic's id, number 0, comes first.
    rest, has_id = reader.rest(), count < 0x80 and reader.rest()[:2] == _TOPIC_ID
    has_id = has_id and len(rest) >= 2 + _TOPIC_ID_SIZE
    if count == 1 and rest[:1] == b"\x00":
        if not has_id:
            raise _Broken(Fault.BAD_LENGTH)
        reader.skip(2 + _TOPIC_ID_SIZE)
    elif len(rest) < 2 * count:
        raise _Broken(Fault.BAD_LENGTH)
    topic_id = topic_id_text(rest[2 : 2 + _TOPIC_ID_SIZE]) if has_id else None
    return topic_id, count > 1 or rest[:1] != b"\x00"


def _classic(value: bytes) -> GroupValue:
    version, reader = _versioned(value, NEWEST_VERSION)
    protocol_type = reader.take("S")
    generation = reader.int32()
    protocol, leader = reader.take("N"), reader.take("N")
    state_ms = reader.int64() if version >= 2 else -1
    count = reader.count()
    if not 0 <= count <= len(value):
        raise _Broken(Fault.BAD_LENGTH)
    members = [list(reader.fields(MEMBER_FIELDS[version])) for _ in range(count)]
    if version >= 4:
        reader.take("T")
    reader.end()
    return GroupValue(
        GROUP_KINDS[CLASSIC_TYPE],
        version,
        _text(protocol_type),
        generation,
        None if protocol is None else _text(protocol),
        None if leader is None else _text(leader),
        state_ms if state_ms >= 0 else None,
        tuple(_member(version, fields) for fields in members),
    )


def _member(version: int, fields: list[bytes | None]) -> GroupValueMember:
    """Make a member of its fields, in the order of `MEMBER_FIELDS`."""
    left = iter(fields)
    member_id = _text(next(left))
    instance = next(left) if version >= 3 else None
    instance_id = None if instance is None else _text(instance)
    client_id, client_host = _text(next(left)), _text(next(left))
    rebalance_timeout = _number(next(left)) if version >= 1 else None
    return GroupValueMember(
        member_id, instance_id, client_id, client_host, rebalance_timeout, _number(next(left))
    )  # fmt: skip


def _number(raw: bytes | None) -> int:
    number: int = _INT32.unpack(raw or b"")[0]
    return number


def _text(raw: bytes | None) -> str:
    try:
        return (raw or b"").decode()
    except UnicodeDecodeError:
        raise _Broken(Fault.INVALID_UTF8) from None


@dataclass
class _Reader:
    """Reads `data` from `at` on; raises `_Broken` where it ends too early, or goes on too long."""

    data: bytes
    at: int
    flexible: bool = False

    def skip(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if size < 0 or len(found) < size:
            raise _Broken(Fault.BAD_LENGTH)
        self.at += size
        return found

    def rest(self) -> bytes:
        return self.data[self.at :]

    def end(self) -> None:
        if self.at != len(self.data):
            raise _Broken(Fault.BAD_LENGTH)

    def byte(self) -> int:
        return self.skip(1)[0]

    def int32(self) -> int:
        number: int = _INT32.unpack(self.skip(_INT32.size))[0]
        return number

    def int64(self) -> int:
        number: int = _INT64.unpack(self.skip(_INT64.size))[0]
        return number

    def varint(self) -> int:
        """An unsigned varint of four bytes at most: nothing here is as long as 256 MiB."""
        found = 0
        for shift in (0, 7, 14, 21):
            byte = self.byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise _Broken(Fault.BAD_LENGTH)

    def count(self) -> int:
        return self.varint() - 1 if self.flexible else self.int32()

    def take(self, kind: str) -> bytes | None:
        """Take a field of a kind of `MEMBER_FIELDS`; None for a string that is null."""
        if kind == "I":
            return self.skip(_INT32.size)
        if kind == "T":
            if self.byte() != 0:
                raise _Broken(Fault.UNKNOWN_TAGS)
            return b""
        if self.flexible or kind == "B":
            size = self.count()
        else:
            size = _INT16.unpack(self.skip(_INT16.size))[0]
        return None if size == -1 and kind == "N" else self.skip(size)

    def fields(self, kinds: str) -> Iterator[bytes | None]:
        return map(self.take, kinds)
