"""The bytes of `__consumer_offsets`: which record is which, and what commits and groups say in it. Pure.

Layouts are those of Kafka's group-coordinator schemas (`CoordinatorRecordType`, `OffsetCommitKey/Value`,
`GroupMetadataKey/Value`): a key begins with an int16 record type, a value with an int16 version, integers are
big-endian, a string is an int16 length and UTF-8; version 4 of both values is flexible
(KIP-482). Nothing raises on foreign bytes: what cannot be read gives the `Fault` why.
"""

import struct
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
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
_INT64_INT32, _TWO_INT64 = struct.Struct(">qi"), struct.Struct(">qq")
_TOPIC_ID = b"\x00\x10"
_TOPIC_ID_SIZE = 16
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


class _Broken(Exception):
    """Raised where bytes cannot be read."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


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
        version, reader = _versioned(value)
        offset, epoch = reader.numbers(_INT64_INT32) if version >= 3 else (*reader.numbers(_INT64), -1)
        raw = reader.string()
        committed_ms, expires_ms = reader.numbers(_TWO_INT64) if version == 1 else (*reader.numbers(_INT64), -1)
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


@lru_cache(maxsize=1024)
def topic_id_text(topic_id: bytes) -> str:
    """Return a topic's id as Kafka prints it."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")


def decode_classic(value: bytes) -> tuple[str, int | None] | Fault:
    """Decode what a classic group's record says of its clock: its protocol type, and since when it has no member.

    That time (ms since 1970) is None while it has members, and where it was not stored (before version 2).
    """
    try:
        version, reader = _versioned(value)
        protocol_type = _text(reader.string())
        reader.take(4)
        reader.string(is_nullable=True), reader.string(is_nullable=True)  # protocol and leader
        (state_ms,) = reader.numbers(_INT64) if version >= 2 else (-1,)
        members = reader.varint() - 1 if version >= 4 else reader.numbers(_INT32)[0]
    except _Broken as broken:
        return broken.fault
    return protocol_type, state_ms if state_ms >= 0 and not members else None


def _versioned(value: bytes) -> tuple[int, "_Reader"]:
    if len(value) < _INT16.size:
        raise _Broken(Fault.BAD_LENGTH)
    version = int.from_bytes(value[:2], "big")
    if version > NEWEST_VERSION:
        raise _Broken(Fault.UNKNOWN_VERSION)
    return version, _Reader(value, 2, flexible=version >= 4)


def _tags(reader: "_Reader") -> tuple[str | None, bool]:
    """Return the topic id, if there is one, and whether there are tags that are not known."""
    count = reader.take(1)[0]
    if count == 0:
        return None, False
    # Tags are in the order of their numbers: the topic's id, number 0, comes first.
    rest = reader.data[reader.at :]
    has_id = count < 0x80 and rest[:2] == _TOPIC_ID and len(rest) >= 2 + _TOPIC_ID_SIZE
    if count == 1 and rest[:1] == b"\x00":
        if not has_id:
            raise _Broken(Fault.BAD_LENGTH)
        reader.take(2 + _TOPIC_ID_SIZE)
    elif len(rest) < 2 * count:
        raise _Broken(Fault.BAD_LENGTH)
    topic_id = topic_id_text(rest[2 : 2 + _TOPIC_ID_SIZE]) if has_id else None
    return topic_id, count > 1 or rest[:1] != b"\x00"


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise _Broken(Fault.INVALID_UTF8) from None


@dataclass(slots=True)
class _Reader:
    """Reads `data` from `at` on; raises `_Broken` where it ends too early, or goes on too long."""

    data: bytes
    at: int
    flexible: bool

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if size < 0 or len(found) < size:
            raise _Broken(Fault.BAD_LENGTH)
        self.at += size
        return found

    def end(self) -> None:
        if self.at != len(self.data):
            raise _Broken(Fault.BAD_LENGTH)

    def numbers(self, form: struct.Struct) -> tuple[int, ...]:
        return form.unpack(self.take(form.size))

    def varint(self) -> int:
        """An unsigned varint of four bytes at most: nothing here is as long as 256 MiB."""
        found = 0
        for shift in (0, 7, 14, 21):
            byte = self.take(1)[0]
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise _Broken(Fault.BAD_LENGTH)

    def string(self, is_nullable: bool = False) -> bytes:
        """Take a string; where it may be null, one that is reads as an empty one."""
        size = self.varint() - 1 if self.flexible else self.numbers(_INT16)[0]
        return b"" if is_nullable and size == -1 else self.take(size)
