"""What is exported of the offsets topic is what a plain walk through its records finds, each of them counted once."""

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from migrate.errors import ClusterError
from migrate.model import LogRange
from migrate.spark.consumer_offsets import chosen_and_written, offsets_session
from migrate.survey.filters import Filters
from migrate.survey.offsets_export import ExportKinds, ExportRequest
from migrate.survey.offsets_wire import (
    COMMIT_TYPES,
    CommitValue,
    GroupValue,
    GroupValueMember,
    decode_commit,
    decode_key,
    label,
)
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value

pytestmark = pytest.mark.spark

SCHEMA = "key binary, value binary, partition int, offset bigint, timestamp timestamp"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)
HOUR_MS = 3_600_000
KNOWN = ("commit", "commit-with-unknown-tags", "commit-tombstone", "group", "group-tombstone")


def topic_of(spark, records):
    """A topic with these (partition, key, value), a millisecond apart; `read` of it."""
    ends = Counter()
    rows = []
    for number, (partition, key, value) in enumerate(records):
        raw = (None if part is None else bytearray(part) for part in (key, value))
        rows.append((*raw, partition, ends[partition], EPOCH + timedelta(milliseconds=number)))
        ends[partition] += 1
    whole = spark.createDataFrame(rows, SCHEMA)

    def read(logs):
        inside = [f"(partition = {p} and offset between {log.start} and {log.end - 1})" for p, log in logs.items()]
        return whole.where(" or ".join(inside) or "false")

    return read, {partition: LogRange(0, end) for partition, end in ends.items()}


def exported(spark, records, request, retention_ms=HOUR_MS):
    read, logs = topic_of(spark, records)
    lines = []

    def write(chosen):
        lines[:] = map(json.loads, chosen.json_lines())
        return len(lines)

    return chosen_and_written(read, logs, request, retention_ms, write), lines


def commit(group="g", offset=1, topic="t", partition=0, **more):
    said = CommitValue(3, offset, None, "", EPOCH_MS, **more)
    return 0, commit_key(group, topic, partition), commit_value(said)


def gone(record):
    return record[0], record[1], None


def some_records(rnd, count=300):
    records = []
    for _ in range(count):
        group = rnd.choice(["a", "b", "__own", "console-consumer-1", "grüppe"])
        partition = sum(group.encode()) % 3
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
def test_every_record_is_written_or_left_out_for_one_reason_as_a_plain_walk_finds(spark, number):
    request, records = REQUESTS[number], some_records(random.Random(number))
    found, lines = exported(spark, records, request)
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
    _, (line,) = exported(spark, [(11, commit_key("g", "t", 7), commit_value(said))], ExportRequest())
    assert line == {
        "topic": "t", "partition": 7, "group": "g", "version": 4, "offset": 95, "metadata": "é,\"'\n",
        "commitTimestamp": EPOCH_MS, "expireTimestamp": EPOCH_MS + HOUR_MS, "expires": "retention-from-commit",
        "recordType": 1, "leaderEpoch": 5, "topicId": "AAECAwQFBgcICQoLDA0ODw", "tombstone": False,
        "logPartition": 11, "logOffset": 0, "logTimestamp": EPOCH_MS,
    }  # fmt: skip
    assert decode_commit(commit_value(said)) == said


def test_a_newest_record_that_cannot_be_decoded_hides_the_older_one(spark):
    whole = commit(offset=1)
    found, lines = exported(spark, [whole, (0, whole[1], whole[2] + b"x")], ExportRequest())
    assert lines == [] and found.left_out == {"superseded": 1, "undecodable-value:bad-length": 1}


def test_a_tombstone_takes_the_commit_away_and_is_told_where_it_is_asked_for(spark):
    records = [commit(offset=1), gone(commit()), commit("h", offset=2)]
    assert [line["group"] for line in exported(spark, records, ExportRequest())[1]] == ["h"]
    tombstone = exported(spark, records, ExportRequest(tombstones=True))[1][0]
    assert (tombstone["group"], tombstone["offset"], tombstone["expires"]) == ("g", None, None)
    assert tombstone["tombstone"] is True and tombstone["partition"] == 0


MEMBER = GroupValueMember("m", None, "c", "/h", 1, 1)
KIND_VALUE = bytes.fromhex("0000 00000005 00")


@pytest.mark.parametrize(
    ("records", "expires", "end"),
    [
        ([], "retention-from-commit", EPOCH_MS + HOUR_MS),
        ([(2, group_value(GroupValue("classic", 3, "consumer", 1, None, None, EPOCH_MS + 7)))],
         "retention-from-empty", EPOCH_MS + 7 + HOUR_MS),
        ([(2, group_value(GroupValue("classic", 4, "consumer", 1, "r", "m", 5, (MEMBER,))))],
         "not-while-consumed", None),
        ([(2, group_value(GroupValue("classic", 1, "consumer", 1, None, None)))],
         "retention-from-commit", EPOCH_MS + HOUR_MS),
        ([(2, group_value(GroupValue("classic", 3, "", 1, None, None, 5)))],
         "retention-from-commit", EPOCH_MS + HOUR_MS),
        ([(2, b"\x00\x09")], "unknown", None),
        ([(2, group_value(GroupValue("classic", 3, "consumer", 1, None, None, 5))), (2, None)],
         "retention-from-commit", EPOCH_MS + HOUR_MS),
        ([(3, KIND_VALUE)], "retention-from-commit", EPOCH_MS + HOUR_MS),
        ([(3, KIND_VALUE), (5, b"member")], "not-while-consumed", None),
        ([(3, KIND_VALUE), (5, b"member"), (5, None)], "retention-from-commit", EPOCH_MS + HOUR_MS),
        ([(17, KIND_VALUE), (19, b"member")], "not-while-consumed", None),
    ],
)  # fmt: skip
def test_when_a_commit_expires_depends_on_what_its_group_is(spark, records, expires, end):
    of_group = [(0, group_key(kind, "g", b"\x00\x01m" if kind in (5, 19) else b""), value) for kind, value in records]
    _, (line,) = exported(spark, [*of_group, commit()], ExportRequest())
    assert (line["expires"], line["expireTimestamp"]) == (expires, end)


def test_an_end_of_its_own_comes_before_everything_and_a_retention_that_is_not_known_is_not_guessed(spark):
    stored = (0, commit_key("g", "t", 0), commit_value(CommitValue(1, 5, None, "", EPOCH_MS, EPOCH_MS + 9)))
    _, lines = exported(spark, [stored, commit("h")], ExportRequest(), retention_ms=None)
    told = {line["group"]: (line["expires"], line["expireTimestamp"]) for line in lines}
    assert told == {"g": ("stored", EPOCH_MS + 9), "h": ("unknown", None)}
    _, lines = exported(spark, [commit("h")], ExportRequest(history=True))
    assert [(line["expires"], line["expireTimestamp"]) for line in lines] == [("unknown", None)]


def test_a_group_that_is_named_and_has_no_record_is_told(spark):
    found, lines = exported(spark, [commit("g")], ExportRequest(Filters.from_options(groups=["g", "simpel"])))
    assert found.unknown == ("simpel",) and len(lines) == 1


def test_an_empty_topic_has_no_lines(spark):
    found, lines = exported(spark, [commit()], ExportRequest(until_ms=1))
    assert lines == [] and found.left_out == {"outside-time": 1}


def test_what_is_compacted_away_between_the_passes_is_not_missed_in_silence(spark):
    read, logs = topic_of(spark, [commit("g", 1), commit("h", 2)])
    passes = []

    def compacting(part):
        passes.append(part)
        return read(part) if len(passes) == 1 else read(part).where("offset <> 0")

    lines = []

    def write(chosen):
        lines[:] = map(json.loads, chosen.json_lines())
        return len(lines)

    found = chosen_and_written(compacting, logs, ExportRequest(), HOUR_MS, write)
    assert [line["group"] for line in lines] == ["h"] and found.read == 1
    with pytest.raises(ClusterError, match="compacted 3 times"):
        chosen_and_written(read, logs, ExportRequest(), HOUR_MS, lambda chosen: 0)


def test_internal_topics_are_shown_to_a_session_of_their_own(spark):
    own = offsets_session(lambda: spark)
    setting = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    assert own.conf.get(setting) == "true" and spark.conf.get(setting) == "false"
    assert own.conf.get("spark.sql.session.timeZone") == "UTC"
