"""What is exported of the offsets topic is what a plain walk through its records finds, each of them counted once."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from migrate.errors import ClusterError
from migrate.extras.offsets_topic import chosen as reading
from migrate.extras.offsets_topic.chosen import chosen_and_written
from migrate.extras.offsets_topic.request import ExportKinds, ExportRequest
from migrate.model import LogRange
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import partition_of
from migrate.survey.offsets_wire import COMMIT_TYPES, CommitValue, decode_commit, decode_key
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue, GroupValueMember, label
from tests.spark.offsetstopic import PARTITIONS, commit, topic_of
from tests.spark.records import EPOCH_MS

HOUR_MS = 3_600_000
KNOWN = ("commit", "commit-with-unknown-tags", "commit-tombstone", "group", "group-tombstone")


def exported(spark, records, request, look=lambda chosen: None):
    read, logs = topic_of(spark, records)
    lines = []

    def write(chosen):
        lines[:] = map(json.loads, chosen.json_lines())
        look(chosen)
        return len(lines)

    return chosen_and_written(read, logs, PARTITIONS, request, HOUR_MS, write), lines


def record(group, key, value):
    """In the group's own partition of the topic."""
    return partition_of(group, PARTITIONS), key, value


def some_records(rnd, count=300):
    records = []
    for _ in range(count):
        group = rnd.choice(["a", "b", "__own", "console-consumer-1", "grüppe"])
        partition = partition_of(group, PARTITIONS)
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


TO_A_TOPIC = ExportRequest(tombstones=True, kinds=ExportKinds.ALL)
REQUESTS = [
    TO_A_TOPIC,
    replace(TO_A_TOPIC, history=True),
    ExportRequest(
        Filters.from_options(groups=["a", "grü.*"], exclude_topics=["u"]), since_ms=EPOCH_MS + 40,
        until_ms=EPOCH_MS + 250,
    ),
    ExportRequest(kinds=ExportKinds.GROUPS, until_ms=EPOCH_MS + 200, since_ms=EPOCH_MS + 20),
]  # fmt: skip


@pytest.mark.parametrize("number", [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_every_record_is_written_or_left_out_for_one_reason_as_a_plain_walk_finds(quick, monkeypatch, number):
    request, records, made, parts = REQUESTS[number], some_records(random.Random(number)), [], []
    monkeypatch.setattr(reading, "OFFSETS_A_TASK", 1)

    def look(chosen):
        parts.append(chosen.frame.rdd.getNumPartitions())
        if request.kinds is ExportKinds.ALL:
            made[:] = [row for part in chosen.records().rdd.glom().collect() for row in part]

    found, lines = exported(quick, records, request, look)
    # The lines of a long topic come in several parts.
    assert request.history or parts == [4 * len({partition for partition, _, _ in records})]
    written, reasons = walked(records, request)
    assert {(line["logPartition"], line["logOffset"]) for line in lines} == written
    assert found.left_out == reasons
    assert found.read == len(records) == found.lines + sum(reasons.values())
    assert found.labels == Counter(label(key, value) for _, key, value in records)
    for partition in range(PARTITIONS):
        offsets = [line["logOffset"] for line in lines if line["logPartition"] == partition]
        assert offsets == sorted(offsets)
    if made:
        check_records_for_a_topic(records, lines, made, request.history)


def check_records_for_a_topic(records, lines, made, history):
    """They have the keys of the offsets topic, and those of a key stand in its order."""
    keys = {(p, n): key for p in range(PARTITIONS) for n, (_, key, _) in enumerate(r for r in records if r[0] == p)}
    told = [(bytes(row.key), json.loads(row.value)) for row in made]
    assert [row.asDict().keys() for row in made[:1]] == [{"key": 0, "value": 0}.keys()]
    assert all(keys[line["logPartition"], line["logOffset"]] == key for key, line in told)
    assert sorted(map(str, lines)) == sorted(str(line) for _, line in told)
    by_key = {}
    for key, line in told:
        by_key.setdefault(key, []).append(line["logOffset"])
    assert all(offsets == sorted(offsets) for offsets in by_key.values())
    assert any(len(offsets) > 1 for offsets in by_key.values()) is history
    assert any(line["tombstone"] and line["offset"] is None for _, line in told if "offset" in line)


MEMBER = GroupValueMember("m", None, "c", "/h", 1, 1)
KIND_VALUE = bytes.fromhex("0000 00000005 00")


def classic(version=3, protocol_type="consumer", state_ms=None, members=()):
    return 2, group_value(GroupValue("classic", version, protocol_type, 1, None, None, state_ms, members))


FROM_COMMIT = ("retention-from-commit", EPOCH_MS + HOUR_MS)
CONSUMED = ("not-while-consumed", None)
# The records of a group, and when its commit expires. All are in one topic: each export takes seconds.
EXPIRIES = {
    "nothing": ([], FROM_COMMIT),
    "empty since": ([classic(state_ms=EPOCH_MS + 7)], ("retention-from-empty", EPOCH_MS + 7 + HOUR_MS)),
    "a member": ([classic(4, state_ms=5, members=(MEMBER,))], CONSUMED),
    "empty, of a version without a time": ([classic(1)], FROM_COMMIT),
    "no protocol type": ([classic(protocol_type="", state_ms=5)], FROM_COMMIT),
    "not decodable": ([(2, b"\x00\x09")], ("unknown", None)),
    "deleted": ([classic(state_ms=5), (2, None)], FROM_COMMIT),
    "consumer protocol, empty": ([(3, KIND_VALUE)], FROM_COMMIT),
    "consumer protocol, a member": ([(3, KIND_VALUE), (5, b"member")], CONSUMED),
    "consumer protocol, a member that left": ([(3, KIND_VALUE), (5, b"member"), (5, None)], FROM_COMMIT),
    "streams protocol, a member": ([(17, KIND_VALUE), (19, b"member")], CONSUMED),
    "empty since the end of time": ([classic(state_ms=2**63 - 1)], ("retention-from-empty", None)),
    # Its own end counts where nobody consumes.
    "stored": ([], ("stored", EPOCH_MS + 9)),
    "stored, a member": ([classic(4, state_ms=5, members=(MEMBER,))], CONSUMED),
    "stored, consumer protocol, a member": ([(3, KIND_VALUE), (5, b"member")], CONSUMED),
}  # fmt: skip


def test_a_line_says_what_the_commit_says_and_when_it_expires_depends_on_what_its_group_is(quick):
    said = CommitValue(4, 95, 5, "é,\"'\n", EPOCH_MS, topic_id="AAECAwQFBgcICQoLDA0ODw")
    assert decode_commit(commit_value(said)) == said
    topic = [record("said", commit_key("said", "t", 7), commit_value(said))]
    for group, (records, _) in EXPIRIES.items():
        keys = [(group_key(kind, group, b"\x00\x01m" if kind in (5, 19) else b""), value) for kind, value in records]
        topic += [record(group, *each) for each in keys]
        stored = {"version": 1, "expires_ms": EPOCH_MS + 9} if group.startswith("stored") else {}
        topic.append(commit(group, **stored))
    told = {line["group"]: line for line in exported(quick, topic, ExportRequest())[1]}
    assert told.pop("said") == {
        "topic": "t", "partition": 7, "group": "said", "version": 4, "offset": 95, "metadata": "é,\"'\n",
        "commitTimestamp": EPOCH_MS, "expireTimestamp": EPOCH_MS + HOUR_MS, "expires": "retention-from-commit",
        "recordType": 1, "leaderEpoch": 5, "topicId": "AAECAwQFBgcICQoLDA0ODw", "tombstone": False,
        "logPartition": topic[0][0], "logOffset": 0, "logTimestamp": EPOCH_MS,
    }  # fmt: skip
    expiries = {group: (line["expires"], line["expireTimestamp"]) for group, line in told.items()}
    assert expiries == {group: expiry for group, (_, expiry) in EXPIRIES.items()}


def test_what_is_compacted_away_between_the_passes_has_given_place_to_what_came_since(quick):
    empty = record("h", group_key(2, "h"), classic(state_ms=5)[1])
    whole, logs = topic_of(quick, [commit("g", 1), empty, commit("h", 2), commit("g", 3)])
    place, passes, lines = partition_of("g", PARTITIONS), [], []

    def read(part):
        """The first record vanishes after the first pass, for the last has come since."""
        passes.append(part)
        here = f"partition = {place} and offset = 0"
        return whole(part) if len(passes) == 1 else whole(part).where(f"not ({here})")

    def write(chosen):
        lines[:] = map(json.loads, chosen.json_lines())
        return len(lines)

    pinned = logs | {place: LogRange(0, logs[place].end - 1)}
    found = chosen_and_written(read, pinned, PARTITIONS, ExportRequest(), None, write, lambda: logs)
    assert {(line["group"], line["offset"]) for line in lines} == {("h", 2), ("g", 3)} and found.read == 3
    assert {line["expires"] for line in lines} == {"unknown"}, "a retention that is not known is not guessed"


def test_compaction_without_later_ends_or_time_and_again_is_an_error_and_no_silence(quick, monkeypatch):
    read, logs = topic_of(quick, [commit("g", 1)])
    monkeypatch.setattr(reading, "ATTEMPTS", 2)
    for renewed, times in (None, "once"), (lambda: logs, "2 times"):
        with pytest.raises(ClusterError, match=f"compacted {times}"):
            chosen_and_written(read, logs, PARTITIONS, ExportRequest(), HOUR_MS, lambda chosen: 0, renewed)


VALUE, KEY, CUT = "undecodable-value:unknown-version", "undecodable-key:bad-length", "undecodable-value:bad-length"


def broken(group="g", topic="t"):
    return (*commit(group, topic=topic)[:2], b"\x00\x09")


def misspelt(group="g"):
    place, key, value = commit(group)
    return place, key[:-1], value


def elsewhere(record):
    """In a partition that is not its group's any more: the topic was given more of them."""
    return (record[0] + 1) % PARTITIONS, *record[1:]


# What each group has left, all in one topic: each export takes seconds.
LEFT = {
    "whole": [commit("whole")],
    "replaced": [commit("replaced", 1), commit("replaced", 3)],
    "cut": [commit("cut"), (*commit("cut")[:2], commit("cut")[2] + b"x")],
    "without-offset": [commit("without-offset"), commit("without-offset", -1)],
    "was": [commit("was"), commit("was", None)],
    "gone": [commit("gone", None)],
    "two-types": [commit("two-types", record_type=0), commit("two-types", 2)],
    "was-of-two-types": [commit("was-of-two-types", record_type=0), commit("was-of-two-types", None)],
    "end-of-time": [commit("end-of-time", committed_ms=2**63 - 1)],
    "broke": [commit("broke"), broken("broke")],
    "broken": [broken("broken"), broken("broken")],
    "mended": [broken("mended"), commit("mended")],
    "broken-and-gone": [broken("broken-and-gone"), commit("broken-and-gone", None)],
    "misspelt": [misspelt("misspelt")],
    "misspelt-and-gone": [misspelt("misspelt-and-gone"), (*misspelt("misspelt-and-gone")[:2], None)],
    "other-types": [
        record("other-types", group_key(99, "other-types"), b"?"),
        record("other-types", group_key(5, "other-types", b"\x00\x01m"), b"?"),
    ],
    "moved": [
        commit("moved", 2), elsewhere(commit("moved", 1)), elsewhere(broken("moved")),
        elsewhere(record("moved", group_key(2, "moved"), classic(4, state_ms=5, members=(MEMBER,))[1])),
    ],
    "moved-away": [elsewhere(commit("moved-away"))],
}  # fmt: skip
NEWEST = {"whole": [1], "replaced": [3], "two-types": [2], "end-of-time": [1], "mended": [1], "moved": [2]}
TOLD_APART = {VALUE: 5, KEY: 3, CUT: 1, "type-99": 1, "type-5": 1, "not-its-partition": 4}
NEVER_THERE = ("misspelt", "misspelt-and-gone", "nobody", "other-types", "moved-away")
TOMBSTONES = ("broken-and-gone", "gone", "was", "was-of-two-types")


@pytest.mark.parametrize(("more", "written", "left_out", "lost", "unknown"), [
    ({}, NEWEST, {"superseded": 7, "commit-without-offset": 1, "tombstone": 4}, {VALUE: 2, KEY: 1, CUT: 1}, TOMBSTONES),
    ({"tombstones": True}, NEWEST | dict.fromkeys(TOMBSTONES, [None]),
     {"superseded": 7, "commit-without-offset": 1}, {VALUE: 2, KEY: 2, CUT: 1}, ()),
    ({"history": True},
     NEWEST | {"replaced": [1, 3], "two-types": [1, 2]}
     | dict.fromkeys(("cut", "without-offset", "was", "was-of-two-types", "broke"), [1]),
     {"commit-without-offset": 1, "tombstone": 4}, {VALUE: 5, KEY: 2, CUT: 1}, ("gone",)),
], ids=["the newest", "with tombstones", "all"])  # fmt: skip
def test_what_is_written_of_a_group_why_not_the_rest_what_is_lost_and_who_is_not_there(
    quick, more, written, left_out, lost, unknown
):
    request = ExportRequest(Filters.from_options(groups=[*LEFT, "nobody"]), **more)
    found, lines = exported(quick, [record for records in LEFT.values() for record in records], request)
    offsets = {}
    for line in lines:
        offsets.setdefault(line["group"], []).append(line["offset"])
        assert line["tombstone"] is (line["offset"] is None) and line["partition"] == 0
        expected = None if line["tombstone"] else "unknown" if request.history else "retention-from-commit"
        assert line["expires"] == expected
        if line["group"] == "end-of-time":  # a time that no clock has stops nothing
            assert (line["commitTimestamp"], line["expireTimestamp"]) == (2**63 - 1, None)
    assert offsets == written
    assert found.left_out == TOLD_APART | left_out
    assert found.lost == lost
    assert found.unknown == tuple(sorted((*unknown, *NEVER_THERE)))


# One of a group that is left out, one of a topic that is, one of a group that is deleted, and two that come too late.
ASKED_IN_PART = [
    commit("h"), broken("g"), broken("h", "u"), misspelt(), broken("h"), commit("deleted", None), commit("h", 3, "v"),
    broken("h", "v"), commit("late"),
]  # fmt: skip


@pytest.mark.parametrize(("records", "request_", "lost", "unknown"), [
    ([broken(), record("g", group_key(2, "g"), b"\x00\x09")], ExportRequest(kinds=ExportKinds.GROUPS), {VALUE: 1}, ()),
    (ASKED_IN_PART,
     ExportRequest(Filters.from_options(groups=["h", "late", "deleted"], exclude_topics=["u"]), until_ms=EPOCH_MS + 7),
     {VALUE: 1, KEY: 1}, ("deleted",)),
])  # fmt: skip
def test_what_was_asked_for_and_cannot_be_decoded_is_lost_and_what_came_later_is_there(
    quick, records, request_, lost, unknown
):
    found, _ = exported(quick, records, request_)
    assert (found.lost, found.unknown) == (lost, unknown)
