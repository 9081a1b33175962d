"""A time series of commits is what a plain walk through the records finds, bucket by bucket."""

import csv
import random
from collections import defaultdict

import pytest

from migrate.extras.offsets_topic.history_values import OFFSET_DELETED, HistoryRequest, reason_of
from migrate.extras.offsets_topic.series import FIELDS, commit_series
from migrate.model import Failure, TopicPartition
from migrate.show.table import harmless
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import partition_of
from migrate.survey.offsets_wire import Fault, decode_commit, decode_key
from tests.offsetsbytes import group_key, group_value
from tests.offsetsdecoded import GroupValue
from tests.spark import offsetstopic
from tests.spark.offsetstopic import PARTITIONS, timed_topic
from tests.spark.records import EPOCH_MS

MINUTE = 60_000
LATE_MS = EPOCH_MS + 10**9
EVERY = HistoryRequest(MINUTE, LATE_MS)


def commit(after_ms, offset, group="g", *place):
    partition, *record = offsetstopic.commit(group, offset, *place)
    return partition, after_ms, *record


def rows_of(spark, records, request=EVERY):
    """(group, topic, partition): [(seconds after the beginning, offset, commits, records_per_s)]."""
    read, logs = timed_topic(spark, records)
    found = defaultdict(list)
    with commit_series(read, logs, PARTITIONS, request) as series:
        shown = series.shown()
        assert series.rows == len(shown)
        assert sum(row.commits for row in shown) == series.counted.lines
        counted = series.counted
    for row in sorted(shown, key=lambda row: row.time):
        seconds = (row.time - EPOCH_MS) / 1000
        found[row.group, row.topic, row.partition].append((seconds, row.offset, row.commits, row.records_per_s))
    return dict(found), counted


def walked(records, request):
    """The same, by a plain walk through the log."""
    told = defaultdict(dict)
    for partition, after_ms, key, value in records:
        decoded = decoded_commit(key, value)
        time_ms = EPOCH_MS + after_ms
        inside = (request.since_ms or 0) <= time_ms < (request.until_ms or 2**62)
        if decoded is None or not inside or request.filters.group_verdict(decoded[0][0]):
            continue
        if partition != partition_of(decoded[0][0], PARTITIONS):
            continue
        place, offset = decoded
        told[place].setdefault(time_ms // request.bucket_ms, []).append(offset)
    found = {}
    for place, buckets in told.items():
        rows, before, before_ms = [], None, None
        for bucket in sorted(buckets):
            offsets = buckets[bucket]
            end = (bucket + 1) * request.bucket_ms
            time_ms = request.cut_ms if bucket * request.bucket_ms < request.cut_ms < end else end
            made = [offset for offset in offsets if offset is not None]
            went_on = None not in offsets and before is not None and before <= min(made) and max(made) == made[-1]
            if made:
                rate = round((made[-1] - before) / ((time_ms - before_ms) / 1000), 3) if went_on else None
                rows.append(((time_ms - EPOCH_MS) / 1000, made[-1], len(made), rate))
            before, before_ms = offsets[-1], time_ms
        if rows:
            found[place] = rows
    return found


def decoded_commit(key, value):
    told = decode_key(key)
    if isinstance(told, Fault) or told.topic is None:
        return None
    said = None if value is None else decode_commit(value)
    if isinstance(said, Fault):
        return None
    return (told.group, told.topic, told.partition), None if said is None else said.offset


def some_records(rnd, count=400):
    records, after_ms = [], 0
    for _ in range(count):
        after_ms += rnd.choice([0, 10, 2_000, 30_000])
        group = rnd.choice(["a", "b", "console-consumer-1", "grüppe"])
        offset = None if rnd.random() < 0.1 else rnd.randrange(3 * len(records) + 5)
        record = commit(after_ms, offset, group, rnd.choice("tu"), rnd.randrange(2))
        pick = rnd.random()
        if pick < 0.05:
            record = (*record[:3], b"\x00\x09")
        elif pick < 0.1:
            value = group_value(GroupValue("classic", 3, "consumer", 1, None, None, EPOCH_MS))
            record = (*record[:2], group_key(2, group), value)
        elif pick < 0.15:  # left from when the topic had fewer partitions
            record = ((record[0] + 1) % PARTITIONS, *record[1:])
        records.append(record)
    return records


@pytest.mark.parametrize(
    "request_",
    [
        EVERY,
        HistoryRequest(1000, EPOCH_MS + 500_500),
        # The bucket that is still open then ends then.
        HistoryRequest(
            3_600_000, LATE_MS, Filters.from_options(groups=["a|grü.*"]), EPOCH_MS + 90_000, EPOCH_MS + 1_000_000
        ),
    ],
)
def test_every_row_is_what_a_plain_walk_finds(spark, request_):
    records = some_records(random.Random(request_.bucket_ms))
    found, counted = rows_of(spark, records, request_)
    wanted = walked(records, request_)
    assert {place: [row[:3] for row in rows] for place, rows in found.items()} == {
        place: [row[:3] for row in rows] for place, rows in wanted.items()
    }
    for place, rows in wanted.items():
        # A half is rounded up by Spark, and to even by Python.
        for row, told in zip(rows, found[place], strict=True):
            assert told[3] == (None if row[3] is None else pytest.approx(row[3], abs=0.0011)), (place, row)
    # Random groups go back within any hour.
    assert request_.bucket_ms > MINUTE or any(row[3] for rows in found.values() for row in rows)
    assert counted.read == len(records) == counted.lines + sum(counted.left_out.values())
    for reason in ("tombstone", "undecodable-value:unknown-version", "not-its-partition"):
        assert counted.left_out[reason]


def test_ends_of_logs_are_joined_where_they_are_visible_and_the_offset_was_not_deleted_before(quick):
    records = [
        commit(0, 10), commit(60_000, 30), commit(60_000, 7, "=h\x1b", 'u,"1'),
        # An offset that was deleted before its bucket ended is asked no end.
        commit(0, 10, "d", "v"), commit(60_000, 20, "d", "v"), commit(70_000, None, "d", "v"),
        commit(60_000, 25, "other", "v"),
    ]  # fmt: skip
    denied = Failure("TOPIC_AUTHORIZATION_FAILED", "no")
    told = {("t", 60_000): 25, ("t", 120_000): 31, ('u,"1', 120_000): denied, ("v", 60_000): 12, ("v", 120_000): 30}
    read, logs = timed_topic(quick, records)
    with commit_series(read, logs, PARTITIONS, EVERY) as series:
        assert {(place.topic, time_ms - EPOCH_MS) for place, time_ms in series.places()} == told.keys()
        assert series.lookups() == len(told)
        ends = {(TopicPartition(topic, 0), EPOCH_MS + ms): end for (topic, ms), end in told.items()}
        whole = series.with_ends(ends)
        assert whole.unseen() == {reason_of(denied): 1, reason_of(OFFSET_DELETED): 1}
        rows = list(csv.reader(whole.csv_lines()))
        newest, table = whole.newest(4), whole.table()
        assert {row.time for row in newest.shown()} == {EPOCH_MS + 120_000} and (series.rows, newest.lookups()) == (
            6,
            3,
        )
        exact = {(row.group, row.topic) for row in table.collect()}
    # CSV has names that no spreadsheet runs and no terminal obeys, the table has them as they are.
    assert rows[0] == list(FIELDS) == table.columns and dict(table.dtypes)["time"] == "timestamp"
    assert sorted(rows[1:]) == [
        ["2026-01-01T00:01:00.000Z", "d", "v", "0", "10", "1", "", "12", "2", "true"],
        ["2026-01-01T00:01:00.000Z", "g", "t", "0", "10", "1", "", "25", "15", "true"],
        ["2026-01-01T00:02:00.000Z", harmless("=h\x1b"), 'u,"1', "0", "7", "1", "", "", "", ""],
        ["2026-01-01T00:02:00.000Z", "d", "v", "0", "20", "1", "", "", "", ""],
        ["2026-01-01T00:02:00.000Z", "g", "t", "0", "30", "1", "0.333", "31", "1", "true"],
        ["2026-01-01T00:02:00.000Z", "other", "v", "0", "25", "1", "", "30", "5", "true"],
    ]
    assert exact == {("g", "t"), ("=h\x1b", 'u,"1'), ("d", "v"), ("other", "v")}


def test_a_topic_without_records_gives_no_row(quick):
    read, _ = timed_topic(quick, [commit(0, 1)])
    with commit_series(read, {}, PARTITIONS, EVERY) as series:
        assert (series.rows, series.lookups(), series.counted.read) == (0, 0, 0)
        assert list(series.with_ends({}).csv_lines()) == [",".join(FIELDS)]
