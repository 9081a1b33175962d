"""What is exported of the offsets topic is what a plain walk through its records finds, each of them counted once."""

import json
import random
from collections import Counter

import pytest

from migrate.errors import ClusterError
from migrate.extras.offsets_topic import chosen as reading
from migrate.extras.offsets_topic.chosen import chosen_and_written
from migrate.extras.offsets_topic.request import ExportKinds, ExportRequest
from migrate.model import LogRange
from migrate.spark.consumer_offsets import offsets_session
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import partition_of
from migrate.survey.offsets_wire import COMMIT_TYPES, CommitValue, decode_commit, decode_key
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue, GroupValueMember, label
from tests.spark.offsetstopic import topic_of
from tests.spark.records import EPOCH_MS


@pytest.fixture(scope="module")
def quick(spark):
    """A session that compiles no query, as for any small topic: that takes longer than all else here."""
    return offsets_session(lambda: spark, is_small=True)


HOUR_MS = 3_600_000
KNOWN = ("commit", "commit-with-unknown-tags", "commit-tombstone", "group", "group-tombstone")


def exported(spark, records, request, retention_ms=HOUR_MS, partitions=1):
    read, logs = topic_of(spark, records)
    lines = []

    def write(chosen):
        lines[:] = map(json.loads, chosen.json_lines())
        return len(lines)

    return chosen_and_written(read, logs, partitions, request, retention_ms, write), lines


def commit(group="g", offset=1, topic="t", partition=0, **more):
    said = CommitValue(3, offset, None, "", EPOCH_MS, **more)
    return 0, commit_key(group, topic, partition), commit_value(said)


def gone(record):
    return record[0], record[1], None


def some_records(rnd, count=300):
    records = []
    for _ in range(count):
        group = rnd.choice(["a", "b", "__own", "console-consumer-1", "grüppe"])
        partition = partition_of(group, 3)
        key = commit_key(group, rnd.choice("tuv"), rnd.randrange(2))
        value = commit_value(CommitValue(rnd.randrange(5), rnd.randrange(100), None, "m", EPOCH_MS))
        if rnd.random() < 0.2:
            key = group_key(2, group)
            value = group_value(GroupValue("classic", 3, "consumer", 1, None, None, EPOCH_MS))
        if rnd.random() < 0.1:
            key = group_key(rnd.choice([5, 99]), group, b"m")
        pick = rnd.random()
        value = None if pick < 0.15 else value + b"x" if pick < 0.2 else value
        records.append((partition, key, value))
    return records


def walked(records, request):
    """What a plain walk finds: the places to write, and the reasons of all others."""
    ends, newest, told = Counter(), {}, []
    for number, (partition, key, value) in enumerate(records):
        time = EPOCH_MS + number
        place = (partition, ends[partition])
        ends[partition] += 1
        if request.until_ms is None or time < request.until_ms:
            newest[partition, key] = place
        told.append((place, time, key, value))
    written, reasons = set(), Counter()
    for place, time, key, value in told:
        reason = reason_of(label(key, value), key, time, newest.get((place[0], key)) == place, request)
        if reason:
            reasons[reason] += 1
        else:
            written.add(place)
    return written, reasons


def reason_of(named, key, time, is_newest, request):
    if named not in KNOWN:
        return named
    if not (request.since_ms or 0) <= time < (request.until_ms or 2**62):
        return "outside-time"
    decoded = decode_key(key)
    if request.kinds != "all" and request.kinds != ("commits" if decoded.record_type in COMMIT_TYPES else "groups"):
        return "other-kind"
    verdict = request.filters.group_verdict(decoded.group)
    if verdict is None and decoded.topic is not None:
        verdict = request.filters.topic_verdict(decoded.topic)
    if verdict:
        return f"filter:{verdict}"
    if not request.history and not is_newest:
        return "superseded"
    return "tombstone" if named.endswith("tombstone") and not request.tombstones else None


REQUESTS = [
    ExportRequest(),
    ExportRequest(history=True),
    ExportRequest(tombstones=True, kinds=ExportKinds.ALL),
    ExportRequest(history=True, tombstones=True, kinds=ExportKinds.GROUPS),
    ExportRequest(Filters.from_options(groups=["a", "grü.*"], exclude_topics=["u"]), since_ms=EPOCH_MS + 40),
    ExportRequest(Filters.from_options(topics=["t"]), history=True, until_ms=EPOCH_MS + 150, tombstones=True),
    ExportRequest(until_ms=EPOCH_MS + 100, since_ms=EPOCH_MS + 20),
]


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_every_record_is_written_or_left_out_for_one_reason_as_a_plain_walk_finds(spark, quick, number):
    request, records = REQUESTS[number], some_records(random.Random(number))
    # Compiled queries, as for a long topic, for every other one of them.
    found, lines = exported(quick if number % 2 else spark, records, request, partitions=3)
    written, reasons = walked(records, request)
    assert {(line["logPartition"], line["logOffset"]) for line in lines} == written
    assert found.left_out == reasons
    assert found.read == len(records) == found.lines + sum(reasons.values())
    assert found.labels == Counter(label(key, value) for _, key, value in records)
    for partition in range(3):
        offsets = [line["logOffset"] for line in lines if line["logPartition"] == partition]
        assert offsets == sorted(offsets)


def test_a_line_says_what_the_commit_says(spark):
    said = CommitValue(4, 95, 5, "é,\"'\n", EPOCH_MS, topic_id="AAECAwQFBgcICQoLDA0ODw")
    records = [(11, commit_key("g", "t", 7), commit_value(said))]
    _, (line,) = exported(spark, records, ExportRequest(), partitions=92)
    assert line == {
        "topic": "t", "partition": 7, "group": "g", "version": 4, "offset": 95, "metadata": "é,\"'\n",
        "commitTimestamp": EPOCH_MS, "expireTimestamp": EPOCH_MS + HOUR_MS, "expires": "retention-from-commit",
        "recordType": 1, "leaderEpoch": 5, "topicId": "AAECAwQFBgcICQoLDA0ODw", "tombstone": False,
        "logPartition": 11, "logOffset": 0, "logTimestamp": EPOCH_MS,
    }  # fmt: skip
    assert decode_commit(commit_value(said)) == said


def test_a_newest_record_that_cannot_be_decoded_hides_the_older_one(quick):
    whole = commit(offset=1)
    found, lines = exported(quick, [whole, (0, whole[1], whole[2] + b"x")], ExportRequest())
    assert lines == [] and found.left_out == {"superseded": 1, "undecodable-value:bad-length": 1}


def test_a_commit_without_an_offset_hides_the_older_one_and_is_left_out_by_its_name_and_not_lost(quick):
    records = [commit(offset=1), commit(offset=-1), commit("h", offset=2)]
    found, lines = exported(quick, records, ExportRequest())
    assert [line["group"] for line in lines] == ["h"] and found.lost == {}
    assert found.left_out == {"superseded": 1, "commit-without-offset": 1}
    history, lines = exported(quick, records, ExportRequest(history=True))
    assert [line["offset"] for line in lines] == [1, 2] and history.left_out == {"commit-without-offset": 1}


def test_a_tombstone_takes_the_commit_away_and_is_told_where_it_is_asked_for(quick):
    records = [commit(offset=1), gone(commit()), commit("h", offset=2)]
    assert [line["group"] for line in exported(quick, records, ExportRequest())[1]] == ["h"]
    tombstone = exported(quick, records, ExportRequest(tombstones=True))[1][0]
    assert (tombstone["group"], tombstone["offset"], tombstone["expires"]) == ("g", None, None)
    assert tombstone["tombstone"] is True and tombstone["partition"] == 0


MEMBER = GroupValueMember("m", None, "c", "/h", 1, 1)
KIND_VALUE = bytes.fromhex("0000 00000005 00")


# The records of a group, and when its commit expires. All are in one topic: each export takes seconds.
EXPIRIES = {
    "nothing": ([], "retention-from-commit", EPOCH_MS + HOUR_MS),
    "empty since": ([(2, group_value(GroupValue("classic", 3, "consumer", 1, None, None, EPOCH_MS + 7)))],
        "retention-from-empty", EPOCH_MS + 7 + HOUR_MS),
    "a member": ([(2, group_value(GroupValue("classic", 4, "consumer", 1, "r", "m", 5, (MEMBER,))))],
        "not-while-consumed", None),
    "empty, of a version without a time": ([(2, group_value(GroupValue("classic", 1, "consumer", 1, None, None)))],
        "retention-from-commit", EPOCH_MS + HOUR_MS),
    "no protocol type": ([(2, group_value(GroupValue("classic", 3, "", 1, None, None, 5)))],
        "retention-from-commit", EPOCH_MS + HOUR_MS),
    "not decodable": ([(2, b"\x00\x09")], "unknown", None),
    "deleted": ([(2, group_value(GroupValue("classic", 3, "consumer", 1, None, None, 5))), (2, None)],
        "retention-from-commit", EPOCH_MS + HOUR_MS),
    "consumer protocol, empty": ([(3, KIND_VALUE)], "retention-from-commit", EPOCH_MS + HOUR_MS),
    "consumer protocol, a member": ([(3, KIND_VALUE), (5, b"member")], "not-while-consumed", None),
    "consumer protocol, a member that left": ([(3, KIND_VALUE), (5, b"member"), (5, None)],
        "retention-from-commit", EPOCH_MS + HOUR_MS),
    "streams protocol, a member": ([(17, KIND_VALUE), (19, b"member")], "not-while-consumed", None),
    "empty since the end of time": ([(2, group_value(GroupValue("classic", 3, "consumer", 1, None, None, 2**63 - 1)))],
        "retention-from-empty", None),
}  # fmt: skip


def test_when_a_commit_expires_depends_on_what_its_group_is(quick):
    topic = []
    for group, (records, _, _) in EXPIRIES.items():
        topic += [(0, group_key(k, group, b"\x00\x01m" if k in (5, 19) else b""), value) for k, value in records]
        topic.append(commit(group))
    _, lines = exported(quick, topic, ExportRequest())
    told = {line["group"]: (line["expires"], line["expireTimestamp"]) for line in lines}
    assert told == {group: (expires, end) for group, (_, expires, end) in EXPIRIES.items()}


def test_an_end_of_its_own_counts_where_nobody_consumes_and_a_retention_that_is_not_known_is_not_guessed(quick):
    stored = (0, commit_key("g", "t", 0), commit_value(CommitValue(1, 5, None, "", EPOCH_MS, EPOCH_MS + 9)))
    _, lines = exported(quick, [stored, commit("h")], ExportRequest(), retention_ms=None)
    told = {line["group"]: (line["expires"], line["expireTimestamp"]) for line in lines}
    assert told == {"g": ("stored", EPOCH_MS + 9), "h": ("unknown", None)}
    members = [
        (0, group_key(2, "g"), group_value(GroupValue("classic", 4, "consumer", 1, "r", "m", 5, (MEMBER,)))),
        (0, group_key(3, "h"), KIND_VALUE), (0, group_key(5, "h", b"\x00\x01m"), b"member"),
    ]  # fmt: skip
    of_h = (0, commit_key("h", "t", 0), stored[2])
    _, lines = exported(quick, [*members, stored, of_h], ExportRequest())
    assert {(line["expires"], line["expireTimestamp"]) for line in lines} == {("not-while-consumed", None)}
    _, lines = exported(quick, [commit("h")], ExportRequest(history=True))
    assert [(line["expires"], line["expireTimestamp"]) for line in lines] == [("unknown", None)]


def test_a_group_that_is_named_and_has_no_record_is_told(quick):
    found, lines = exported(quick, [commit("g")], ExportRequest(Filters.from_options(groups=["g", "simpel"])))
    assert found.unknown == ("simpel",) and len(lines) == 1


def test_an_empty_topic_has_no_lines(quick):
    found, lines = exported(quick, [commit()], ExportRequest(until_ms=1))
    assert lines == [] and found.left_out == {"outside-time": 1}


class CompactedTopic:
    """A topic of which an earlier record vanishes after the first pass, for a later one has come since."""

    def __init__(self, spark, records, gone, pinned):
        self.whole, self.logs = topic_of(spark, records)
        self.gone, self.pinned, self.passes, self.lines = gone, {0: LogRange(0, pinned)}, 0, []

    def read(self, part):
        self.passes += 1
        return self.whole(part) if self.passes == 1 else self.whole(part).where(f"offset <> {self.gone}")

    def write(self, chosen):
        self.lines[:] = map(json.loads, chosen.json_lines())
        return len(self.lines)

    def exported(self, request, renewed=None):
        return chosen_and_written(self.read, self.pinned, 1, request, HOUR_MS, self.write, renewed)


@pytest.mark.parametrize("history", [False, True])
def test_what_is_compacted_away_between_the_passes_has_given_place_to_what_came_since(quick, history):
    topic = CompactedTopic(quick, [commit("g", 1), commit("h", 2), commit("g", 3)], gone=0, pinned=2)
    found = topic.exported(ExportRequest(history=history), lambda: topic.logs)
    assert {(line["group"], line["offset"]) for line in topic.lines} == {("h", 2), ("g", 3)} and found.read == 2


def test_compaction_without_later_ends_or_time_and_again_is_an_error_and_no_silence(quick, monkeypatch):
    topic = CompactedTopic(quick, [commit("g", 1), commit("h", 2), commit("g", 3)], gone=0, pinned=2)
    with pytest.raises(ClusterError, match="compacted once"):
        topic.exported(ExportRequest())
    read, logs = topic_of(quick, [commit("g", 1)])
    monkeypatch.setattr(reading, "ATTEMPTS", 2)
    with pytest.raises(ClusterError, match="compacted 2 times"):
        chosen_and_written(read, logs, 1, ExportRequest(), HOUR_MS, lambda chosen: 0, lambda: logs)


VALUE, KEY = "undecodable-value:unknown-version", "undecodable-key:bad-length"


def broken(group="g"):
    return 0, commit_key(group, "t", 0), b"\x00\x09"


def misspelt(group="g"):
    return 0, commit_key(group, "t", 0)[:-1], commit(group)[2]


BROKEN_GROUP = (0, group_key(2, "g"), b"\x00\x09")
OF_OTHER_TYPES = [(0, group_key(99, "g"), b"?"), (0, group_key(5, "g", b"\x00\x01m"), b"?")]
# Two are lost: the last of a key that was there, or never whole. Not one that is followed by another, or taken away.
SEVERAL = [
    commit("a"), broken("a"), broken("b"), broken("b"), broken("c"), commit("c"), broken("d"), gone(commit("d")),
    misspelt("e"), gone(misspelt("e")), *OF_OTHER_TYPES,
]  # fmt: skip


@pytest.mark.parametrize(
    ("records", "request_", "lost"),
    [
        (SEVERAL, ExportRequest(), {VALUE: 2}),
        ([*SEVERAL, misspelt("f")], ExportRequest(tombstones=True), {VALUE: 2, KEY: 2}),
        (SEVERAL, ExportRequest(history=True), {VALUE: 5, KEY: 1}),
        ([broken(), BROKEN_GROUP], ExportRequest(kinds=ExportKinds.GROUPS), {VALUE: 1}),
        ([broken(), BROKEN_GROUP], ExportRequest(kinds=ExportKinds.ALL), {VALUE: 2}),
        ([broken(), broken("h"), misspelt()], ExportRequest(Filters.from_options(groups=["h"])), {VALUE: 1, KEY: 1}),
        ([broken()], ExportRequest(Filters.from_options(exclude_topics=["t"])), {}),
        ([commit(), broken()], ExportRequest(until_ms=EPOCH_MS + 1), {}),
    ],
)
def test_what_was_asked_for_and_cannot_be_decoded_is_lost(quick, records, request_, lost):
    assert exported(quick, records, request_)[0].lost == lost


def test_both_types_of_key_name_the_same_commit(quick):
    old = (0, commit_key("g", "t", 0, record_type=0), commit("g", 1)[2])
    found, lines = exported(quick, [old, commit("g", 2), commit("h", 3)], ExportRequest())
    assert [(line["group"], line["offset"]) for line in lines] == [("g", 2), ("h", 3)]
    assert found.left_out == {"superseded": 1}
    assert exported(quick, [old, gone(commit("g"))], ExportRequest())[1] == []


def test_a_time_that_no_clock_tells_stops_nothing(quick):
    late = CommitValue(3, 1, None, "", 2**63 - 1)
    _, (line,) = exported(quick, [(0, commit_key("g", "t", 0), commit_value(late))], ExportRequest())
    assert (line["commitTimestamp"], line["expireTimestamp"]) == (2**63 - 1, None)


@pytest.mark.parametrize(
    ("more", "unknown"),
    [
        ({}, ("gone", "member", "nobody", "was")),
        ({"tombstones": True}, ("member", "nobody")),
        ({"history": True}, ("gone", "member", "nobody")),
        ({"until_ms": 1}, ("gone", "member", "nobody")),
    ],
)
def test_of_a_group_that_is_named_something_has_to_be_there(quick, more, unknown):
    records = [
        gone(commit("gone")), commit("was"), gone(commit("was")), broken("broken"), commit("whole"),
        (0, group_key(5, "member", b"\x00\x01m"), b"?"),
    ]  # fmt: skip
    names = ["gone", "was", "broken", "whole", "member", "nobody"]
    request = ExportRequest(Filters.from_options(groups=names), **more)
    assert exported(quick, records, request)[0].unknown == unknown


def test_the_lines_of_a_long_topic_come_in_several_parts(quick, monkeypatch):
    monkeypatch.setattr(reading, "OFFSETS_A_TASK", 10)
    records = [(partition_of(f"g{n}", 3), *commit(f"g{n}", n)[1:]) for n in range(90)]
    read, logs = topic_of(quick, records)
    sizes = []

    def write(chosen):
        sizes.append(chosen.frame.rdd.getNumPartitions())
        return sum(1 for _ in chosen.json_lines())

    found = chosen_and_written(read, logs, 3, ExportRequest(), HOUR_MS, write)
    assert found.lines == 90 and sizes == [12]


@pytest.mark.parametrize("history", [False, True])
def test_records_for_a_topic_have_the_keys_of_the_offsets_topic_and_stand_in_its_order(quick, history):
    records = [*some_records(random.Random(4)), (partition_of("a", 3), *gone(commit("a"))[1:])]
    read, logs = topic_of(quick, records)
    request = ExportRequest(history=history, tombstones=True, kinds=ExportKinds.ALL)
    made, lines = [], []

    def write(chosen):
        lines[:] = map(json.loads, chosen.json_lines())
        parts = chosen.records().rdd.glom().collect()
        made[:] = [(bytes(row.key), json.loads(row.value)) for part in parts for row in part]
        assert chosen.records().columns == ["key", "value"]
        return len(made)

    chosen_and_written(read, logs, 3, request, HOUR_MS, write)
    keys = {(p, n): key for p in range(3) for n, (_, key, _) in enumerate(r for r in records if r[0] == p)}
    assert all(keys[line["logPartition"], line["logOffset"]] == key for key, line in made)
    assert sorted(map(str, lines)) == sorted(str(line) for _, line in made)
    by_key = {}
    for key, line in made:
        by_key.setdefault(key, []).append(line["logOffset"])
    assert all(offsets == sorted(offsets) for offsets in by_key.values())
    assert any(len(offsets) > 1 for offsets in by_key.values()) is history
    assert any(line["tombstone"] and line["offset"] is None for _, line in made if "offset" in line)


# Where the topic had 50 partitions, and has 60.
OWN, FORMER = partition_of("g", 60), partition_of("g", 50)


def at(partition, record):
    return partition, *record[1:]


@pytest.mark.parametrize("history", [False, True])
def test_what_a_group_has_left_in_a_partition_that_is_not_its_own_is_counted_and_not_written(quick, history):
    records = [at(OWN, commit(offset=2)), at(FORMER, commit(offset=1)), at(FORMER, broken())]
    found, lines = exported(quick, records, ExportRequest(history=history), partitions=60)
    assert [(line["logPartition"], line["offset"]) for line in lines] == [(OWN, 2)]
    assert found.left_out == {"not-its-partition": 2} and found.read == 3 and found.lost == {}


def test_a_group_is_what_its_own_partition_says_and_not_there_where_only_another_has_it(quick):
    members = GroupValue("classic", 4, "consumer", 1, "r", "m", 5, (MEMBER,))
    records = [at(FORMER, (0, group_key(2, "g"), group_value(members))), at(OWN, commit())]
    _, (line,) = exported(quick, records, ExportRequest(), partitions=60)
    assert line["expires"] == "retention-from-commit"
    of_g = ExportRequest(Filters.from_options(groups=["g"]))
    assert exported(quick, [at(FORMER, commit())], of_g, partitions=60)[0].unknown == ("g",)
