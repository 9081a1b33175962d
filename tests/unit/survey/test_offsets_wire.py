"""The bytes of the offsets topic, in every version, and under which label each record is counted."""

import pytest

from migrate.survey.offsets_wire import CommitValue, OffsetsKey, decode_classic, decode_commit, decode_key
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue, GroupValueMember, decode_group, label

KEY = bytes.fromhex("0001 0002 6731 0002 7431 00000003")
NOW = 1_700_000_000_000
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"


def commit_of(version, **said):
    told = {"version": version, "offset": 258, "leader_epoch": 5 if version >= 3 else None, "metadata": 'é,\x00"'}
    return CommitValue(**{**told, "committed_ms": NOW, "expires_ms": NOW + 1 if version == 1 else None, **said})


@pytest.mark.parametrize(
    "commit",
    [
        *map(commit_of, range(5)),
        commit_of(4, topic_id=TOPIC_ID),
        commit_of(4, topic_id=TOPIC_ID, other_tags=True),
        *(commit_of(version, metadata="m" * size) for version in (3, 4) for size in (0, 126, 127, 128, 16_383, 16_384)),
    ],
)
def test_a_commit_is_read_in_every_version_with_metadata_of_any_length(commit):
    assert decode_commit(commit_value(commit)) == commit


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("members", [0, 2])
def test_a_classic_group_is_read_in_every_version(version, members):
    each = GroupValueMember("m1", "static" if version >= 3 else None, "c", "/h", 7 if version else None, 45_000)
    state_ms = NOW if version >= 2 else None
    group = GroupValue("classic", version, "consumer", 5, "range", None, state_ms, (each,) * members)
    value = group_value(group, (b"s" * 300, b""))
    assert decode_group(2, value) == group
    assert decode_classic(value) == ("consumer", None if members else state_ms)


def test_a_key_tells_group_topic_and_partition_or_if_it_cannot_be_read_its_type_alone():
    assert decode_key(KEY) == OffsetsKey(1, "g1", "t1", 3) and commit_key("g1", "t1", 3) == KEY
    assert decode_key(group_key(2, "grüppe")) == OffsetsKey(2, "grüppe")
    for rest in (b"", b"\x00\x02m1"):
        assert decode_key(group_key(15, "g", rest)) == OffsetsKey(15, "g")
        assert decode_key(group_key(24, "", rest)) == OffsetsKey(24, "")
        assert decode_key(group_key(5, "g", rest)) == OffsetsKey(5)
    for key in (b"\x00\x0f", b"\x00\x0f\x00\x02g", b"\x00\x0f\x00\x01\xff", b"\x00\x0f\xff\xffg"):
        assert decode_key(key) == OffsetsKey(15)


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        (KEY, None, "commit-tombstone"),
        (group_key(0, "g", KEY[6:]), None, "commit-tombstone"),
        (group_key(17, "g"), None, "group-tombstone"),
        (group_key(5, "g", b"x"), None, "type-5"),
        (group_key(99, "g"), b"", "type-99"),
        (None, b"", "undecodable-key:no-key"),
        (b"\x00", b"", "undecodable-key:bad-length"),
        (KEY[:-1], b"", "undecodable-key:bad-length"),
        (KEY + b"x", b"", "undecodable-key:bad-length"),
        (KEY[:-4] + b"\xff" * 4, None, "undecodable-key:negative"),
        (group_key(2, "g")[:-1] + b"\xff", None, "undecodable-key:invalid-utf8"),
        (KEY, b"\x00", "undecodable-value:bad-length"),
        (KEY, b"\x00\x05", "undecodable-value:unknown-version"),
        (KEY, commit_value(commit_of(3)) + b"x", "undecodable-value:bad-length"),
        (KEY, commit_value(commit_of(4, topic_id=TOPIC_ID))[:-1], "undecodable-value:bad-length"),
        (KEY, commit_value(commit_of(3, offset=-1)), "commit-without-offset"),
        (KEY, commit_value(commit_of(4, other_tags=True)), "commit-with-unknown-tags"),
        (KEY, commit_value(commit_of(3, offset=-2)), "undecodable-value:negative"),
        (KEY, commit_value(commit_of(3, metadata="m")).replace(b"m", b"\xff"), "undecodable-value:invalid-utf8"),
        (group_key(3, "g"), bytes.fromhex("0001 00000005 00"), "undecodable-value:unknown-version"),
        (group_key(3, "g"), bytes.fromhex("0000 00000005"), "undecodable-value:bad-length"),
        (group_key(2, "g"), group_value(GroupValue("classic", 4))[:-1] + b"\x01", "undecodable-value:unknown-tags"),
    ],
)  # fmt: skip
def test_every_record_has_one_label(key, value, wanted):
    assert label(key, value) == wanted
