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


def exported(spark, records, request, retention_ms=HOUR_MS, partitions=1, look=lambda chosen: None):
    read, logs = topic_of(spark, records)
    lines = []

    def write(chosen):
        lines[:] = map(json.loads, chosen.json_lines())
        look(chosen)
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


TO_A_TOPIC = ExportRequest(tombstones=True, kinds=ExportKinds.ALL)
REQUESTS = [
    ExportRequest(),
    TO_A_TOPIC,
    replace(TO_A_TOPIC, history=True),
    ExportRequest(Filters.from_options(groups=["a", "grü.*"], exclude_topics=["u"]), since_ms=EPOCH_MS + 40),
    ExportRequest(Filters.from_options(topics=["t"]), history=True, until_ms=EPOCH_MS + 150, tombstones=True),
    ExportRequest(kinds=ExportKinds.GROUPS, until_ms=EPOCH_MS + 200, since_ms=EPOCH_MS + 20),
]


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_every_record_is_written_or_left_out_for_one_reason_as_a_plain_walk_finds(spark, quick, number):
    request, records, made = REQUESTS[number], some_records(random.Random(number)), []

    def look(chosen):
        if replace(request, history=False) == TO_A_TOPIC:
            made[:] = [row for part in chosen.records().rdd.glom().collect() for row in part]

    # Compiled queries, as for a long topic, for one of them.
    found, lines = exported(spark if number == 2 else quick, records, request, partitions=3, look=look)
    written, reasons = walked(records, request)
    assert {(line["logPartition"], line["logOffset"]) for line in lines} == written
    assert found.left_out == reasons
    assert found.read == len(records) == found.lines + sum(reasons.values())
    assert found.labels == Counter(label(key, value) for _, key, value in records)
    for partition in range(3):
        offsets = [line["logOffset"] for line in lines if line["logPartition"] == partition]
        assert offsets == sorted(offsets)
    if made:
        check_records_for_a_topic(records, lines, made, request.history)


def check_records_for_a_topic(records, lines, made, history):
    """They have the keys of the offsets topic, and those of a key stand in its order."""
    keys = {(p, n): key for p in range(3) for n, (_, key, _) in enumerate(r for r in records if r[0] == p)}
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


def test_a_line_says_what_the_commit_says_and_when_it_expires_depends_on_what_its_group_is(quick):
    said = CommitValue(4, 95, 5, "é,\"'\n", EPOCH_MS, topic_id="AAECAwQFBgcICQoLDA0ODw")
    assert decode_commit(commit_value(said)) == said
    topic = [(0, commit_key("said", "t", 7), commit_value(said))]
    for group, (records, _, _) in EXPIRIES.items():
        topic += [(0, group_key(k, group, b"\x00\x01m" if k in (5, 19) else b""), value) for k, value in records]
        topic.append(commit(group))
    _, (line, *lines) = exported(quick, topic, ExportRequest())
    assert line == {
        "topic": "t", "partition": 7, "group": "said", "version": 4, "offset": 95, "metadata": "é,\"'\n",
        "commitTimestamp": EPOCH_MS, "expireTimestamp": EPOCH_MS + HOUR_MS, "expires": "retention-from-commit",
        "recordType": 1, "leaderEpoch": 5, "topicId": "AAECAwQFBgcICQoLDA0ODw", "tombstone": False,
        "logPartition": 0, "logOffset": 0, "logTimestamp": EPOCH_MS,
    }  # fmt: skip
    told = {line["group"]: (line["expires"], line["expireTimestamp"]) for line in lines}
    assert told == {group: (expires, end) for group, (_, expires, end) in EXPIRIES.items()}


def test_an_end_of_its_own_counts_where_nobody_consumes_and_a_retention_that_is_not_known_is_not_guessed(quick):
    def stored(group):
        return 0, commit_key(group, "t", 0), commit_value(CommitValue(1, 5, None, "", EPOCH_MS, EPOCH_MS + 9))

    members = [
        (0, group_key(2, "m"), group_value(GroupValue("classic", 4, "consumer", 1, "r", "m", 5, (MEMBER,)))),
        (0, group_key(3, "n"), KIND_VALUE), (0, group_key(5, "n", b"\x00\x01m"), b"member"),
    ]  # fmt: skip
    records = [stored("g"), commit("h"), *members, stored("m"), stored("n")]
    _, lines = exported(quick, records, ExportRequest(), retention_ms=None)
    assert {line["group"]: (line["expires"], line["expireTimestamp"]) for line in lines} == {
        "g": ("stored", EPOCH_MS + 9), "h": ("unknown", None),
        "m": ("not-while-consumed", None), "n": ("not-while-consumed", None),
    }  # fmt: skip


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


VALUE, KEY, CUT = "undecodable-value:unknown-version", "undecodable-key:bad-length", "undecodable-value:bad-length"


def broken(group="g", topic="t"):
    return 0, commit_key(group, topic, 0), b"\x00\x09"


def misspelt(group="g"):
    return 0, commit_key(group, "t", 0)[:-1], commit(group)[2]


def of_old_type(group):
    """Brokers take both types of key for the same commit."""
    return 0, commit_key(group, "t", 0, record_type=0), commit(group)[2]


END_OF_TIME = CommitValue(3, 1, None, "", 2**63 - 1)
# What each group has left, all in one topic: each export takes seconds.
LEFT = {
    "whole": [commit("whole")],
    "replaced": [commit("replaced", 1), commit("replaced", 3)],
    "cut": [commit("cut"), (0, commit("cut")[1], commit("cut")[2] + b"x")],
    "without-offset": [commit("without-offset"), commit("without-offset", -1)],
    "was": [commit("was"), gone(commit("was"))],
    "gone": [gone(commit("gone"))],
    "two-types": [of_old_type("two-types"), commit("two-types", 2)],
    "was-of-two-types": [of_old_type("was-of-two-types"), gone(commit("was-of-two-types"))],
    "end-of-time": [(0, commit_key("end-of-time", "t", 0), commit_value(END_OF_TIME))],
    "broke": [commit("broke"), broken("broke")],
    "broken": [broken("broken"), broken("broken")],
    "mended": [broken("mended"), commit("mended")],
    "broken-and-gone": [broken("broken-and-gone"), gone(commit("broken-and-gone"))],
    "misspelt": [misspelt("misspelt")],
    "misspelt-and-gone": [misspelt("misspelt-and-gone"), gone(misspelt("misspelt-and-gone"))],
    "other-types": [(0, group_key(99, "other-types"), b"?"), (0, group_key(5, "other-types", b"\x00\x01m"), b"?")],
}
NEWEST = {"whole": [1], "replaced": [3], "two-types": [2], "end-of-time": [1], "mended": [1]}
TOLD_APART = {VALUE: 5, KEY: 3, CUT: 1, "type-99": 1, "type-5": 1}
NEVER_THERE = ("misspelt", "misspelt-and-gone", "nobody", "other-types")


@pytest.mark.parametrize(
    ("more", "written", "left_out", "lost", "unknown"),
    [
        pytest.param(
            {}, NEWEST, {"superseded": 7, "commit-without-offset": 1, "tombstone": 4}, {VALUE: 2, KEY: 1, CUT: 1},
            ("broken-and-gone", "gone", "was", "was-of-two-types"), id="the newest",
        ),
        pytest.param(
            {"tombstones": True},
            {**NEWEST, **dict.fromkeys(("was", "gone", "was-of-two-types", "broken-and-gone"), [None])},
            {"superseded": 7, "commit-without-offset": 1}, {VALUE: 2, KEY: 2, CUT: 1}, (), id="with tombstones",
        ),
        pytest.param(
            {"history": True},
            {
                **NEWEST, "replaced": [1, 3], "two-types": [1, 2],
                **dict.fromkeys(("cut", "without-offset", "was", "was-of-two-types", "broke"), [1]),
            },
            {"commit-without-offset": 1, "tombstone": 4}, {VALUE: 5, KEY: 2, CUT: 1}, ("gone",), id="all",
        ),
        # All are later than that.
        pytest.param({"until_ms": 1}, {}, {"outside-time": 16, "commit-without-offset": 1}, {}, ("gone",), id="none"),
    ],
)  # fmt: skip
def test_what_is_written_of_a_group_why_not_the_rest_what_is_lost_and_who_is_not_there(
    quick, more, written, left_out, lost, unknown
):
    request = ExportRequest(Filters.from_options(groups=[*LEFT, "nobody"]), **more)
    found, lines = exported(quick, [record for records in LEFT.values() for record in records], request)
    offsets = {}
    for line in lines:
        offsets.setdefault(line["group"], []).append(line["offset"])
        assert line["tombstone"] is (line["offset"] is None) and line["partition"] == 0
        assert line["offset"] is not None or line["expires"] is None
        if line["group"] == "end-of-time":  # a time that no clock has stops nothing
            assert (line["commitTimestamp"], line["expireTimestamp"]) == (2**63 - 1, None)
    assert offsets == written
    assert found.left_out == {**TOLD_APART, **left_out}
    assert found.lost == lost
    assert found.unknown == tuple(sorted((*unknown, *NEVER_THERE)))


BROKEN_GROUP = (0, group_key(2, "g"), b"\x00\x09")
# One of a group that is left out, one of a topic that is, and one that comes too late.
ASKED_IN_PART = [
    commit("h"),
    broken("g"),
    broken("h", "u"),
    misspelt(),
    broken("h"),
    commit("h", 3, "v"),
    broken("h", "v"),
]


@pytest.mark.parametrize(
    ("records", "request_", "lost"),
    [
        ([broken(), BROKEN_GROUP], ExportRequest(kinds=ExportKinds.GROUPS), {VALUE: 1}),
        ([broken(), BROKEN_GROUP], ExportRequest(kinds=ExportKinds.ALL), {VALUE: 2}),
        (
            ASKED_IN_PART,
            ExportRequest(Filters.from_options(groups=["h"], exclude_topics=["u"]), until_ms=EPOCH_MS + 6),
            {VALUE: 1, KEY: 1},
        ),
    ],
)
def test_what_was_asked_for_and_cannot_be_decoded_is_lost(quick, records, request_, lost):
    assert exported(quick, records, request_)[0].lost == lost


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


# Where the topic had 50 partitions, and has 60.
OWN, FORMER = partition_of("g", 60), partition_of("g", 50)


def at(partition, record):
    return partition, *record[1:]


@pytest.mark.parametrize("history", [False, True])
def test_what_a_group_has_left_in_a_partition_that_is_not_its_own_is_counted_and_says_nothing_of_it(quick, history):
    members = group_value(GroupValue("classic", 4, "consumer", 1, "r", "m", 5, (MEMBER,)))
    records = [
        at(OWN, commit(offset=2)), at(FORMER, commit(offset=1)), at(FORMER, broken()),
        at(FORMER, (0, group_key(2, "g"), members)), at((partition_of("only", 60) + 1) % 60, commit("only")),
    ]  # fmt: skip
    request = ExportRequest(Filters.from_options(groups=["g", "only"]), history=history)
    found, (line,) = exported(quick, records, request, None if history else HOUR_MS, partitions=60)
    assert (line["logPartition"], line["offset"]) == (OWN, 2)
    assert line["expires"] == ("unknown" if history else "retention-from-commit")
    assert found.left_out == {"not-its-partition": 4} and found.read == 5 and found.lost == {}
    assert found.unknown == ("only",)
