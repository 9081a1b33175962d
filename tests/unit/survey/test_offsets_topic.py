"""The offsets topic: its bytes in every version, what its records say of groups, and what of it is pinned."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import ClusterError
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_pin import PATIENCE_SECONDS, named_groups, past_open_transactions, pin_offsets_topic
from migrate.survey.offsets_topic import (
    OFFSETS_TOPIC,
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
from migrate.survey.offsets_wire import CommitValue, OffsetsKey, decode_classic, decode_commit, decode_key
from tests.fakes import FakeClock, FakeCluster
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue, GroupValueMember, decode_group, label

COMMIT_KEY = bytes.fromhex("0001 0002 6731 0002 7431 00000003")
PLACE = TopicPartition("t1", 3)
AT_MS = 1_700_000_000_000
# Offset 258 of g1 on t1-3, committed at AT_MS, in every version that a broker has ever written.
COMMITS = {
    "v0": "0000 0000000000000102 0000 0000018bcfe56800",
    "v1": "0001 0000000000000102 0000 0000018bcfe56800 0000018bd50bc400",
    "v1 without an expiry": "0001 0000000000000102 0000 0000018bcfe56800 ffffffffffffffff",
    "v2": "0002 0000000000000102 0000 0000018bcfe56800",
    "v3": "0003 0000000000000102 ffffffff 0000 0000018bcfe56800",
    "v3m": "0003 0000000000000102 00000005 0001 6d 0000018bcfe56800",
    "v4": "0004 0000000000000102 ffffffff 01 0000018bcfe56800 00",
    "v4t": "0004 0000000000000102 ffffffff 01 0000018bcfe56800 01 00 10 000102030405060708090a0b0c0d0e0f",
}
V1 = (COMMIT_KEY, bytes.fromhex(COMMITS["v1"]))
V3 = (COMMIT_KEY, bytes.fromhex(COMMITS["v3"]))
GROUP_KEY = bytes.fromhex("0002 0002 6731")
EMPTY_CLASSIC = bytes.fromhex("0003 0008 636f6e73756d6572 00000005 ffff ffff 0000018bcfe56800 00000000")
# In the flexible version, with nullable strings that are there.
CLASSIC_WITH_A_MEMBER = bytes.fromhex(
    "0004 09 636f6e73756d6572 00000005 06 72616e6765 03 6d31 0000018bcfe56800 "
    "02 03 6d31 00 03 6331 03 2f68 0000ea60 0000afc8 01 01 00 00"
)


def log_of(*records, wanted=None):
    log = GroupLog(wanted)
    for record in records:
        log.take(*([part] for part in record))
    return log.groups()


@pytest.mark.parametrize("version", COMMITS)
def test_the_time_of_a_commit_is_read_from_every_version_of_its_record(version):
    found = log_of((COMMIT_KEY, bytes.fromhex(COMMITS[version])))
    expires = {PLACE: AT_MS + 86_400_000} if version == "v1" else {}
    made_on = {PLACE: CommitTopic(258, "AAECAwQFBgcICQoLDA0ODw")} if version == "v4t" else {}
    assert found == {"g1": GroupRecord(GroupKind.SIMPLE, "", None, {PLACE: AT_MS}, expires, made_on=made_on)}
    # A commit of -1 tells its time as any other; one of -2 is none.
    of_minus_one = log_of((COMMIT_KEY, bytes.fromhex(COMMITS[version].replace("0000000000000102", "f" * 16))))["g1"]
    assert (of_minus_one.kind, of_minus_one.committed_ms) == (GroupKind.SIMPLE, {PLACE: AT_MS})
    assert log_of((COMMIT_KEY, bytes.fromhex(COMMITS[version].replace("0000000000000102", "f" * 15 + "e")))) == {}


def test_the_newer_commit_says_whether_it_expires_also_of_two_types_of_key_for_one_place():
    later = (COMMIT_KEY, bytes.fromhex("0003 0000000000000103 ffffffff 0000 0000018bcfe56801"))
    old_key = (bytes.fromhex("0000") + COMMIT_KEY[2:], V1[1])
    for records in ((V1, later), (old_key, later), (later, old_key)):
        found = log_of(*records)["g1"]
        assert (found.committed_ms, found.expires_ms, found.made_on) == ({PLACE: AT_MS + 1}, {}, {})


@pytest.mark.parametrize(("value", "since"), [
    (EMPTY_CLASSIC, AT_MS),
    (EMPTY_CLASSIC[:-4] + struct.pack(">i", 1) + b"\0" * 40, None),  # it has a member
    (bytes.fromhex("0004 09 636f6e73756d6572 00000005 00 00 0000018bcfe56800 01 00"), AT_MS),
    (CLASSIC_WITH_A_MEMBER, None),
])  # fmt: skip
def test_a_classic_group_without_members_tells_since_when_it_is_empty(value, since):
    assert log_of((GROUP_KEY, value))["g1"] == GroupRecord(GroupKind.CLASSIC, "consumer", since, {})


@pytest.mark.parametrize("value", ["0005 09 636f6e73756d6572 00000005 00 00", "0003 0008 636f", ""])
def test_a_classic_group_whose_record_cannot_be_read_is_not_taken_for_one_without_members_ever(value):
    found = log_of(V3, (GROUP_KEY, bytes.fromhex(value)))["g1"]
    assert (found.kind, found.empty_since_ms) == (GroupKind.CLASSIC, None) and found.protocol_type


KINDS = {"consumer": [3], "share": [9, 10, 11, 12, 13, 14, 15], "streams": range(17, 25)}
PART_VALUE = bytes.fromhex("0000 01 01 00")


@pytest.mark.parametrize("rest", ["", "0002 6d31"], ids=["group", "member"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_a_group_or_of_one_part_of_it_tells_its_kind(kind, rest):
    """`kafka-share-groups --reset-offsets` writes type 15 alone of a group that nobody has joined."""
    for record_type in KINDS[kind]:
        record = (group_key(record_type, "g1", b"" if record_type in (3, 11, 17) else bytes.fromhex(rest)), PART_VALUE)
        assert {group: found.kind for group, found in log_of(record).items()} == {"g1": kind}
        assert log_of(record, (record[0], None)) == {}
        assert log_of(V3, record)["g1"].kind == kind
        if record_type not in (3, 11, 17):
            # A leftover of a group that was deleted: the name is another group's now.
            assert log_of(record, (GROUP_KEY, EMPTY_CLASSIC))["g1"].kind is GroupKind.CLASSIC
    for record_type in (4, 5, 8, 16, 25, 99):
        assert log_of((group_key(record_type, "g1"), PART_VALUE)) == {}, "of other types no kind is guessed"


def test_tombstones_end_what_they_name_and_a_group_that_was_converted_is_what_it_is_now():
    assert log_of(V3, (COMMIT_KEY, None)) == {}
    assert log_of((GROUP_KEY, EMPTY_CLASSIC), V3, (GROUP_KEY, None))["g1"].kind is GroupKind.SIMPLE
    converted = (group_key(3, "g1"), bytes.fromhex("0000 00000007 00"))
    assert log_of((GROUP_KEY, EMPTY_CLASSIC), (GROUP_KEY, None), converted)["g1"].kind is GroupKind.CONSUMER
    # Only wanted groups, and partitions that there can be, are kept.
    assert log_of((GROUP_KEY, EMPTY_CLASSIC), wanted={"other"}) == log_of((COMMIT_KEY[:-4] + b"\xff" * 4, V3[1])) == {}


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


def test_the_newest_commits_of_a_few_partitions_are_kept_in_their_order():
    records = [commit_record(p, 10 * n + p, AT_MS + 1000 * n + p) for n in range(3) for p in range(2)]
    assert newest_of(*records) == [[(0, 0), (1000, 10), (2000, 20)], [(1, 1), (1001, 11), (2001, 21)]]
    assert newest_of(commit_record(0, 9, AT_MS), commit_record(0, 4, AT_MS + 5)) == [[(0, 9), (5, 4)]]
    many = [commit_record(p, n, AT_MS + n * n) for n in range(20) for p in range(9)]
    kept = [(n * n, n) for n in range(20 - PACE_COMMITS, 20)]
    assert newest_of(*many) == [kept] * PACE_PARTITIONS


def test_quiet_partitions_and_tombstones_take_nobodys_place_and_what_follows_a_deletion_follows_no_commit():
    quiet = [commit_record(p, 5, AT_MS) for p in range(9)] + [(commit_record(p, 0, 0)[0], None) for p in range(9, 20)]
    busy = [commit_record(99, n, AT_MS + n) for n in range(3)]
    assert newest_of(*quiet, *busy) == [[(0, 0), (1, 1), (2, 2)]]
    first, second, third = (commit_record(0, 5 + n, AT_MS + n) for n in range(3))
    assert newest_of(first, (first[0], None), second) == []
    assert newest_of(first, second, (first[0], None), third) == []


def test_how_often_a_group_commits_is_a_median_and_a_step_back_is_nobodys_pace():
    def pace(*made):
        record = GroupRecord(GroupKind.SIMPLE, newest={PLACE: tuple(PastCommit(*commit) for commit in made)})
        return record.seconds_between_commits, record.records_between_commits, record.last_commit_ms

    assert pace((0, 500), (1_000, 510), (4_000, 550), (9_000, 562), (18_000, 62))[:2] == (3.0, 12)
    assert pace((0, 500), (9_000, 0)) == (None, None, None)


def test_a_commits_time_that_is_no_date_does_not_make_the_clock_run_on():
    def newest(*committed_ms):
        places = {TopicPartition("t", number): time_ms for number, time_ms in enumerate(committed_ms)}
        return newest_ms({"g": GroupRecord(GroupKind.SIMPLE, committed_ms=places)})

    in_microseconds = 1_785_553_259_999_000
    assert (newest(in_microseconds, 1_785_553_259_999), newest(2**62)) == (1_785_553_259_999, 0)


def test_each_partition_has_a_log_of_its_own_groups_alone():
    logs = logs_of(["g1", "other"], 50)
    own, stray = partition_of("g1", 50), partition_of("other", 50)
    assert logs.keys() == {own, stray} and own != stray
    logs[own].take([COMMIT_KEY], [V3[1]])
    older = commit_record(3, 1, 1)
    logs[stray].take([older[0], GROUP_KEY], [older[1], EMPTY_CLASSIC])
    assert records_of(logs.values()) == log_of(V3)


KEY = bytes.fromhex("0001 0002 6731 0002 7431 00000003")
NOW = 1_700_000_000_000
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"


def commit_of(version, **said):
    told = {"version": version, "offset": 258, "leader_epoch": 5 if version >= 3 else None, "metadata": 'é,\x00"'}
    return CommitValue(**{**told, "committed_ms": NOW, "expires_ms": NOW + 1 if version == 1 else None, **said})


@pytest.mark.parametrize("commit", [
    *map(commit_of, range(5)),
    commit_of(4, topic_id=TOPIC_ID),
    commit_of(4, topic_id=TOPIC_ID, other_tags=True),
    *(commit_of(version, metadata="m" * size) for version in (3, 4) for size in (0, 126, 127, 128, 16_383, 16_384)),
])  # fmt: skip
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


def cluster(**more):
    ranges = {TopicPartition(OFFSETS_TOPIC, n): LogRange(5, end) for n, end in enumerate((10, 20, 30))}
    return FakeCluster(ranges=ranges, **more)


def past_a_transaction(ends_at_look, now_ends=40, now_at=40):
    """The pin once a transaction of partition 1, open up to 23, ended at some look, and how long that took."""
    held, clock = cluster(watermarks={TopicPartition(OFFSETS_TOPIC, 1): 23}), FakeClock()
    pin = pin_offsets_topic(held, None)

    def on_call(call):
        if call == "log_ranges" and held.calls[call] >= ends_at_look:
            held.ranges[TopicPartition(OFFSETS_TOPIC, 1)] = LogRange(5, now_ends)
            held.watermarks[TopicPartition(OFFSETS_TOPIC, 1)] = now_at

    held.on_call = on_call
    return past_open_transactions(held, pin, clock), clock.waited


def test_a_transaction_that_ends_soon_is_waited_for_and_the_moment_stays_that_of_the_pin():
    pin, waited = past_a_transaction(3)
    assert pin.open_ends == {} and pin.logs == {0: LogRange(5, 10), 1: LogRange(5, 23), 2: LogRange(5, 30)}
    assert 0 < waited < PATIENCE_SECONDS
    followed_by_another, _ = past_a_transaction(1, now_ends=25, now_at=99)
    assert followed_by_another.open_ends == {}


def test_a_transaction_that_stays_open_is_waited_for_only_so_long():
    pin, waited = past_a_transaction(1000)
    assert pin.open_ends == {1: 23} and pin.logs[1] == LogRange(5, 20) and waited == PATIENCE_SECONDS
    nothing = FakeClock()
    past_open_transactions(cluster(), pin_offsets_topic(cluster(), None), nothing)
    assert nothing.waited == 0


def test_every_partition_or_those_of_the_groups_that_are_named_is_pinned_at_its_last_stable_offset():
    asked = []
    pin = pin_offsets_topic(cluster(on_call=asked.append), None)
    assert pin.logs == {0: LogRange(5, 10), 1: LogRange(5, 20), 2: LogRange(5, 30)}
    assert (pin.partitions, pin.offsets, pin.open_ends) == (3, 45, {})
    assert (pin.offsets_bytes, pin.fetched_bytes) == (45 * 110, 45 * 110 * 2)
    assert asked.index("high_watermarks") < asked.index("log_ranges"), "a growing log is no open transaction"
    pin = pin_offsets_topic(cluster(), {"billing"})
    assert set(pin.logs) == {partition_of("billing", 3)} and pin.partitions == 3


def test_an_end_that_is_not_told_is_an_error():
    broken = cluster()
    broken.ranges[TopicPartition(OFFSETS_TOPIC, 1)] = Failure("LEADER_NOT_AVAILABLE", "no leader")
    with pytest.raises(ClusterError, match="returned no log ends of __consumer_offsets-1 .LEADER_NOT_AVAILABLE"):
        pin_offsets_topic(broken, None)


@pytest.mark.parametrize(("filters", "wanted"), [
    (Filters(), None),
    (Filters.from_options(groups=["a-b", "c_1"]), {"a-b", "c_1"}),
    (Filters.from_options(groups=["a.b"]), None),
    (Filters.from_options(groups=[r"a\.b", "c-1"]), {"a.b", "c-1"}),
    (Filters.from_options(groups=["a-b", "c.*"]), None),
    (Filters(groups_file=frozenset({"x.y"})), {"x.y"}),
])  # fmt: skip
def test_only_names_that_can_mean_nothing_else_narrow_what_is_read(filters, wanted):
    assert named_groups(filters) == wanted
