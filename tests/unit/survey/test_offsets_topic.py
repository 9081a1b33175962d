"""The offsets topic's records, byte by byte as brokers write them, and nothing raised on any others."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model import TopicPartition
from migrate.survey.offsets_topic import (
    PACE_COMMITS,
    PACE_PARTITIONS,
    CommitTopic,
    GroupKind,
    GroupLog,
    GroupRecord,
    PastCommit,
    logs_of,
    newest_ms,
    partition_of,
    records_of,
)
from tests.offsetsbytes import group_key

COMMIT_KEY = bytes.fromhex("0001 0002 6731 0002 7431 00000003")
AT_MS = 1_700_000_000_000
# Offset 258 of g1 on t1-3, committed at AT_MS, in every version that a broker has ever written.
COMMITS = {
    "v0": "0000 0000000000000102 0000 0000018bcfe56800",
    "v1": "0001 0000000000000102 0000 0000018bcfe56800 0000018bd50bc400",
    "v2": "0002 0000000000000102 0000 0000018bcfe56800",
    "v3": "0003 0000000000000102 ffffffff 0000 0000018bcfe56800",
    "v3m": "0003 0000000000000102 00000005 0001 6d 0000018bcfe56800",
    "v4": "0004 0000000000000102 ffffffff 01 0000018bcfe56800 00",
    "v4t": "0004 0000000000000102 ffffffff 01 0000018bcfe56800 01 00 10 000102030405060708090a0b0c0d0e0f",
}
EXPIRES = {"v1": AT_MS + 86_400_000}
NO_EXPIRY = "0001 0000000000000102 0000 0000018bcfe56800 ffffffffffffffff"
GROUP_KEY = bytes.fromhex("0002 0002 6731")
EMPTY_CLASSIC = bytes.fromhex("0003 0008 636f6e73756d6572 00000005 ffff ffff 0000018bcfe56800 00000000")


def log_of(*records, wanted=None):
    log = GroupLog(wanted)
    for record in records:
        log.take(*([part] for part in record))
    return log.groups()


@pytest.mark.parametrize("version", COMMITS)
def test_the_time_of_a_commit_is_read_from_every_version_of_its_record(version):
    found = log_of((COMMIT_KEY, bytes.fromhex(COMMITS[version])))
    place = TopicPartition("t1", 3)
    expires = {place: EXPIRES[version]} if version in EXPIRES else {}
    made_on = {place: CommitTopic(258, "AAECAwQFBgcICQoLDA0ODw")} if version == "v4t" else {}
    assert found == {"g1": GroupRecord(GroupKind.SIMPLE, "", None, {place: AT_MS}, expires, made_on=made_on)}


def test_a_commit_of_version_1_without_an_expiry_of_its_own_has_none():
    assert log_of((COMMIT_KEY, bytes.fromhex(NO_EXPIRY)))["g1"].expires_ms == {}


@pytest.mark.parametrize("version", ["v0", "v2", "v3", "v3m", "v4", "v4t"])
def test_a_commit_of_minus_one_tells_its_time_as_any_other(version):
    value = COMMITS[version].replace("0000000000000102", "ffffffffffffffff")
    found = log_of((COMMIT_KEY, bytes.fromhex(value)))["g1"]
    assert (found.kind, found.committed_ms) == (GroupKind.SIMPLE, {TopicPartition("t1", 3): AT_MS})
    undecodable = COMMITS[version].replace("0000000000000102", "fffffffffffffffe")
    assert log_of((COMMIT_KEY, bytes.fromhex(undecodable))) == {}


def test_a_later_commit_takes_the_expiry_of_the_earlier_one_away():
    later = bytes.fromhex("0003 0000000000000103 ffffffff 0000 0000018bcfe56801")
    assert log_of((COMMIT_KEY, bytes.fromhex(COMMITS["v1"])), (COMMIT_KEY, later))["g1"].expires_ms == {}


def test_of_two_types_of_key_for_one_place_the_newer_commit_says_whether_it_expires():
    old_key = bytes.fromhex("0000") + COMMIT_KEY[2:]
    later = bytes.fromhex("0003 0000000000000103 ffffffff 0000 0000018bcfe56801")
    for records in (
        ((old_key, bytes.fromhex(COMMITS["v1"])), (COMMIT_KEY, later)),
        ((COMMIT_KEY, later), (old_key, bytes.fromhex(COMMITS["v1"]))),
    ):
        assert log_of(*records)["g1"] == GroupRecord(
            GroupKind.SIMPLE, "", None, {TopicPartition("t1", 3): AT_MS + 1}, {}
        )


# Empty, of generation 5; with the member m1 of client c1; with a member and nullable strings that are there.
FLEXIBLE_EMPTY = "0004 09 636f6e73756d6572 00000005 00 00 0000018bcfe56800 01 00"
FLEXIBLE_MEMBER = (
    "0004 09 636f6e73756d6572 00000005 06 72616e6765 03 6d31 0000018bcfe56800 "
    "02 03 6d31 00 03 6331 03 2f68 0000ea60 0000afc8 01 01 00 00"
)


@pytest.mark.parametrize(("value", "since"), [(FLEXIBLE_EMPTY, AT_MS), (FLEXIBLE_MEMBER, None)])
def test_the_flexible_record_of_a_classic_group_is_read_too(value, since):
    assert log_of((GROUP_KEY, bytes.fromhex(value)))["g1"] == GroupRecord(GroupKind.CLASSIC, "consumer", since, {})


@pytest.mark.parametrize("value", ["0005 09 636f6e73756d6572 00000005 00 00", "0003 0008 636f", "0004 00", ""])
def test_a_classic_group_whose_record_cannot_be_read_is_not_taken_for_one_without_members_ever(value):
    commit = (COMMIT_KEY, bytes.fromhex(COMMITS["v3"]))
    found = log_of(commit, (GROUP_KEY, bytes.fromhex(value)))["g1"]
    assert (found.kind, found.empty_since_ms) == (GroupKind.CLASSIC, None) and found.protocol_type


@pytest.mark.parametrize("length", [127, 128, 16_500])
def test_long_names_in_a_flexible_record_have_a_length_of_several_bytes(length):
    size = length + 1
    varint = b""
    while size > 0x7F:
        varint, size = varint + bytes([size & 0x7F | 0x80]), size >> 7
    varint += bytes([size])
    head = struct.pack(">h", 4) + bytes.fromhex("09") + b"consumer" + struct.pack(">i", 5)
    value = head + varint + b"p" * length + b"\0" + struct.pack(">q", AT_MS) + b"\1\0"
    assert log_of((GROUP_KEY, value))["g1"].empty_since_ms == AT_MS


def test_a_classic_group_without_members_tells_since_when_it_is_empty():
    found = log_of((COMMIT_KEY, bytes.fromhex(COMMITS["v3"])), (GROUP_KEY, EMPTY_CLASSIC))["g1"]
    assert (found.kind, found.protocol_type, found.empty_since_ms) == (GroupKind.CLASSIC, "consumer", AT_MS)


def test_a_classic_group_with_a_member_is_not_empty():
    one_member = EMPTY_CLASSIC[:-4] + struct.pack(">i", 1) + b"\0" * 40
    assert log_of((GROUP_KEY, one_member))["g1"].empty_since_ms is None


def test_records_from_before_kafka_2_1_do_not_tell_since_when():
    old = bytes.fromhex("0001 0008 636f6e73756d6572 00000005 ffff ffff 00000000")
    assert log_of((GROUP_KEY, old))["g1"] == GroupRecord(GroupKind.CLASSIC, "consumer", None, {})


@pytest.mark.parametrize(("record_type", "kind"), [(3, "consumer"), (11, "share"), (17, "streams")])
def test_the_newer_kinds_are_known_by_the_type_of_their_record(record_type, kind):
    key = struct.pack(">h", record_type) + bytes.fromhex("0002 6731")
    assert log_of((key, bytes.fromhex("0000 00000007 00")))["g1"].kind == kind


PARTS = [(n, "share") for n in (9, 10, 12, 13, 14, 15)] + [(n, "streams") for n in range(18, 25)]
PART_VALUE = bytes.fromhex("0000 01 01 00")


@pytest.mark.parametrize(("record_type", "kind"), PARTS)
@pytest.mark.parametrize("rest", ["", "0002 6d31"], ids=["group", "member"])
def test_a_record_of_one_part_of_a_group_tells_its_kind_where_the_groups_own_is_missing(record_type, kind, rest):
    """`kafka-share-groups --reset-offsets` writes type 15 alone of a group that nobody has joined."""
    key = group_key(record_type, "g1", bytes.fromhex(rest))
    assert {group: record.kind for group, record in log_of((key, PART_VALUE)).items()} == {"g1": kind}
    assert log_of((key, PART_VALUE), (key, None)) == {}
    assert log_of((COMMIT_KEY, bytes.fromhex(COMMITS["v3"])), (key, PART_VALUE))["g1"].kind == kind
    # A leftover of a group that was deleted: the name is another group's now.
    assert log_of((key, PART_VALUE), (GROUP_KEY, EMPTY_CLASSIC))["g1"].kind is GroupKind.CLASSIC


@pytest.mark.parametrize("record_type", [4, 5, 8, 16, 25, 99])
def test_of_other_types_no_kind_is_guessed(record_type):
    assert log_of((group_key(record_type, "g1"), PART_VALUE)) == {}


def test_a_group_that_was_converted_is_what_it_is_now():
    converted = (struct.pack(">h", 3) + bytes.fromhex("0002 6731"), bytes.fromhex("0000 00000007 00"))
    assert log_of((GROUP_KEY, EMPTY_CLASSIC), (GROUP_KEY, None), converted)["g1"].kind is GroupKind.CONSUMER


def test_tombstones_end_what_they_name():
    commit = (COMMIT_KEY, bytes.fromhex(COMMITS["v3"]))
    assert log_of(commit, (COMMIT_KEY, None)) == {}
    assert log_of((GROUP_KEY, EMPTY_CLASSIC), commit, (GROUP_KEY, None))["g1"].kind is GroupKind.SIMPLE


def test_only_wanted_groups_are_kept():
    assert log_of((GROUP_KEY, EMPTY_CLASSIC), wanted={"other"}) == {}


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_no_bytes_make_it_raise(key, value):
    log_of((key, value), (COMMIT_KEY, value), (GROUP_KEY, value))


@pytest.mark.parametrize(
    ("group", "partition"), [("g1", 42), ("mygroup", 39), ("", 0), ("polygenelubricants", 0), ("\U0001f600", 49)]
)
def test_a_groups_partition_is_the_one_that_kafka_computes(group, partition):
    assert partition_of(group, 50) == partition


def commit_record(partition: int, offset: int, at_ms: int) -> tuple[bytes, bytes]:
    """A commit of g1 on t1, as Kafka 2.1 to 4.0 writes it."""
    return COMMIT_KEY[:-4] + struct.pack(">i", partition), struct.pack(">hqihq", 3, offset, -1, 0, at_ms)


def newest_of(*records) -> list[list[tuple[int, int]]]:
    """The newest commits of each partition of g1, oldest first: when, from `AT_MS`, and the offset."""
    log = GroupLog()
    for key, value in records:
        log.take([key], [value])
    return [[(at_ms - AT_MS, offset) for at_ms, offset in made] for made in log.groups()["g1"].newest.values()]


def test_the_newest_commits_of_a_partition_are_kept_in_their_order():
    records = [commit_record(p, 10 * n + p, AT_MS + 1000 * n + p) for n in range(3) for p in range(2)]
    assert newest_of(*records) == [[(0, 0), (1000, 10), (2000, 20)], [(1, 1), (1001, 11), (2001, 21)]]
    assert newest_of(commit_record(0, 9, AT_MS), commit_record(0, 4, AT_MS + 5)) == [[(0, 9), (5, 4)]]


def test_only_the_newest_commits_of_a_few_partitions_are_kept():
    many = [commit_record(p, n, AT_MS + n * n) for n in range(20) for p in range(9)]
    kept = [(n * n, n) for n in range(20 - PACE_COMMITS, 20)]
    assert newest_of(*many) == [kept] * PACE_PARTITIONS


def test_quiet_partitions_and_tombstones_take_nobodys_place():
    quiet = [commit_record(p, 5, AT_MS) for p in range(9)] + [(commit_record(p, 0, 0)[0], None) for p in range(9, 20)]
    busy = [commit_record(99, n, AT_MS + n) for n in range(3)]
    assert newest_of(*quiet, *busy) == [[(0, 0), (1, 1), (2, 2)]]


def test_a_commit_after_a_deletion_does_not_follow_the_one_before():
    first, second = commit_record(0, 5, AT_MS), commit_record(0, 9, AT_MS + 1)
    assert newest_of(first, (first[0], None), second) == []
    third = commit_record(0, 12, AT_MS + 3)
    assert newest_of(first, second, (first[0], None), third) == []


def test_how_often_a_group_commits_is_a_median_and_a_step_back_is_nobodys_pace():
    made = ((0, 500), (1_000, 510), (4_000, 550), (9_000, 562), (18_000, 62))
    newest = {TopicPartition("t", 0): tuple(PastCommit(*commit) for commit in made)}
    record = GroupRecord(GroupKind.SIMPLE, newest=newest)
    assert (record.seconds_between_commits, record.records_between_commits) == (3.0, 12)
    back = {TopicPartition("t", 0): (PastCommit(0, 500), PastCommit(9_000, 0))}
    none = GroupRecord(GroupKind.SIMPLE, newest=back)
    assert (none.seconds_between_commits, none.records_between_commits, none.last_commit_ms) == (None, None, None)


def test_a_commits_time_that_is_no_date_does_not_make_the_clock_run_on():
    place, later = TopicPartition("t", 0), TopicPartition("t", 1)
    in_microseconds = GroupRecord(
        GroupKind.SIMPLE, committed_ms={place: 1_785_553_259_999_000, later: 1_785_553_259_999}
    )
    assert newest_ms({"g": in_microseconds}) == 1_785_553_259_999
    assert newest_ms({"g": GroupRecord(GroupKind.SIMPLE, committed_ms={place: 2**62})}) == 0


def test_each_partition_has_a_log_of_its_own_groups_alone():
    logs = logs_of(["g1", "other"], 50)
    own, stray = partition_of("g1", 50), partition_of("other", 50)
    assert logs.keys() == {own, stray} and own != stray
    logs[own].take([COMMIT_KEY], [bytes.fromhex(COMMITS["v3"])])
    older = commit_record(3, 1, 1)
    logs[stray].take([older[0], GROUP_KEY], [older[1], EMPTY_CLASSIC])
    assert records_of(logs.values()) == log_of((COMMIT_KEY, bytes.fromhex(COMMITS["v3"])))


def test_of_a_partition_below_zero_nothing_is_known():
    key = COMMIT_KEY[:-4] + b"\xff" * 4
    assert log_of((key, bytes.fromhex(COMMITS["v3"])), (key, bytes.fromhex(COMMITS["v3m"]))) == {}
