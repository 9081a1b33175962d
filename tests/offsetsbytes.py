"""Records of `__consumer_offsets` as bytes, as brokers write them, in every version."""

import struct
from base64 import urlsafe_b64decode
from collections.abc import Sequence

from migrate.survey.offsets_wire import CommitValue
from tests.offsetsdecoded import GroupValue, GroupValueMember


def group_key(record_type: int, group: str, rest: bytes = b"") -> bytes:
    """The key of a group's record; `rest` is what else keys of other types have."""
    return struct.pack(">H", record_type) + text(group) + rest


def commit_key(group: str, topic: str, partition: int, record_type: int = 1) -> bytes:
    return group_key(record_type, group, text(topic) + struct.pack(">i", partition))


def commit_value(said: CommitValue) -> bytes:
    flexible = said.version >= 4
    epoch = b"" if said.version < 3 else struct.pack(">i", -1 if said.leader_epoch is None else said.leader_epoch)
    expires = b"" if said.version != 1 else struct.pack(">q", -1 if said.expires_ms is None else said.expires_ms)
    tags = b""
    if flexible:
        own = [b"\x00\x10" + urlsafe_b64decode(said.topic_id + "==")] if said.topic_id else []
        others = [b"\x05\x02ab"] if said.other_tags else []
        tags = varint(len(own + others)) + b"".join(own + others)
    head = struct.pack(">hq", said.version, said.offset) + epoch + text(said.metadata, flexible)
    return head + struct.pack(">q", said.committed_ms) + expires + tags


def group_value(said: GroupValue, blobs: Sequence[bytes] = (b"", b"")) -> bytes:
    """A classic group's value; `blobs` are the subscription and the assignment of every member."""
    version, flexible = said.version, said.version >= 4
    head = struct.pack(">h", version) + text(said.protocol_type or "", flexible)
    head += struct.pack(">i", said.generation or 0) + text(said.protocol, flexible) + text(said.leader, flexible)
    if version >= 2:
        head += struct.pack(">q", -1 if said.state_ms is None else said.state_ms)
    head += varint(len(said.members) + 1) if flexible else struct.pack(">i", len(said.members))
    members = b"".join(member(version, each, blobs) for each in said.members)
    return head + members + (b"\x00" if flexible else b"")


def member(version: int, said: GroupValueMember, blobs: Sequence[bytes]) -> bytes:
    flexible = version >= 4
    found = text(said.member_id, flexible)
    if version >= 3:
        found += text(said.group_instance_id, flexible)
    found += text(said.client_id, flexible) + text(said.client_host, flexible)
    if version >= 1:
        found += struct.pack(">i", said.rebalance_timeout or 0)
    found += struct.pack(">i", said.session_timeout)
    for blob in blobs:
        found += (varint(len(blob) + 1) if flexible else struct.pack(">i", len(blob))) + blob
    return found + (b"\x00" if flexible else b"")


def text(said: str | None, flexible: bool = False) -> bytes:
    raw = (said or "").encode()
    size = -1 if said is None else len(raw)
    return (varint(size + 1) if flexible else struct.pack(">h", size)) + raw


def varint(number: int) -> bytes:
    found = b""
    while number >= 0x80:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])
