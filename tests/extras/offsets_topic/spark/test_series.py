"""A time series of commits is what a plain walk through the records finds, bucket by bucket."""

import csv
import random
from collections import defaultdict

import pytest

from migrate.extras.offsets_topic.history_values import OFFSET_DELETED, HistoryRequest, reason_of
from migrate.extras.offsets_topic.series import FIELDS, commit_series
from migrate.model import Failure, TopicPartition
from migrate.show.table import harmless
from migrate.spark.consumer_offsets import offsets_session
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import partition_of
from migrate.survey.offsets_wire import CommitValue, Fault, decode_commit, decode_key
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue
from tests.spark.offsetstopic import timed_topic
from tests.spark.records import EPOCH_MS

MINUTE = 60_000
PARTITIONS = 3
LATE_MS = EPOCH_MS + 10**9
EVERY = HistoryRequest(MINUTE, LATE_MS)


@pytest.fixture(scope="module")
def quick(spark):
    """A session that compiles no query, as for any small topic; the plain walk is held against compiled ones."""
    return offsets_session(lambda: spark, is_small=True)


def commit(after_ms, offset, group="g", topic="t", partition=0, version=3):
    """None as an offset is a tombstone."""
    value = None if offset is None else commit_value(CommitValue(version, offset, None, "m", EPOCH_MS))
    return partition_of(group, PARTITIONS), after_ms, commit_key(group, topic, partition), value


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
    for _, after_ms, key, value in records:
        decoded = decoded_commit(key, value)
        time_ms = EPOCH_MS + after_ms
        inside = (request.since_ms or 0) <= time_ms < (request.until_ms or 2**62)
        if decoded is None or not inside or request.filters.group_verdict(decoded[0][0]):
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
        record = commit(after_ms, offset, group, rnd.choice("tu"), rnd.randrange(2), rnd.randrange(5))
        pick = rnd.random()
        if pick < 0.05:
            record = (*record[:3], b"\x00\x09")
        elif pick < 0.1:
            value = group_value(GroupValue("classic", 3, "consumer", 1, None, None, EPOCH_MS))
            record = (*record[:2], group_key(2, group), value)
        records.append(record)
    return records


@pytest.mark.parametrize(
    "request_",
    [
        EVERY,
        HistoryRequest(1000, EPOCH_MS + 500_500),
        HistoryRequest(3_600_000, LATE_MS, Filters.from_options(groups=["a|grü.*"])),
        HistoryRequest(MINUTE, LATE_MS, since_ms=EPOCH_MS + 90_000, until_ms=EPOCH_MS + 1_000_000),
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
    assert counted.left_out["tombstone"] and counted.left_out["undecodable-value:unknown-version"]


# What a group has committed, by the milliseconds after the beginning; and its rows. All are in one topic: each series
# takes seconds.
TOLD = {
    "the newest of a bucket, at its end, and how fast the group went on": (
        [(0, 10), (59_999, 40), (60_000, 100), (200_000, 400)],
        [(60, 40, 2, None), (120, 100, 1, 1.0), (240, 400, 1, 2.5)],
    ),
    "no rate, and never a negative one, of what goes back": (
        [(0, 100), (60_000, 5), (120_000, 65)], [(60, 100, 1, None), (120, 5, 1, None), (180, 65, 1, 1.0)],
    ),
    "a reset within a bucket is no progress though it ends ahead": (
        [(0, 100), (60_000, 0), (70_000, 160), (130_000, 220)],
        [(60, 100, 1, None), (120, 160, 2, None), (180, 220, 1, 1.0)],
    ),
    "nor is one from far ahead": (
        [(0, 100), (60_000, 900), (70_000, 160)], [(60, 100, 1, None), (120, 160, 2, None)],
    ),
    "what follows a tombstone begins anew": (
        [(0, 100), (60_000, None), (120_000, 500), (180_000, 560)],
        [(60, 100, 1, None), (180, 500, 1, None), (240, 560, 1, 1.0)],
    ),
    "within a bucket, too": (
        [(0, 100), (60_000, None), (61_000, 500)], [(60, 100, 1, None), (120, 500, 1, None)],
    ),
}  # fmt: skip


def test_what_is_told_of_a_group_and_what_lies_in_a_partition_that_is_not_its_own_is_counted_and_no_row(quick):
    records = [commit(*of, topic=name) for name, (commits, _) in TOLD.items() for of in commits]
    elsewhere = (partition_of("g", PARTITIONS) + 1) % PARTITIONS
    found, counted = rows_of(quick, [*records, (elsewhere, *commit(60_000, 99)[1:])])
    assert found == {("g", name, 0): rows for name, (_, rows) in TOLD.items()}
    assert counted.left_out == {"not-its-partition": 1, "tombstone": 2}


def test_the_bucket_that_is_still_open_ends_now(quick):
    request = HistoryRequest(3_600_000, EPOCH_MS + 90_000)
    assert rows_of(quick, [commit(0, 1), commit(80_000, 10)], request)[0]["g", "t", 0] == [(90, 10, 2, None)]


def test_ends_of_logs_are_joined_and_those_not_visible_counted(quick):
    read, logs = timed_topic(quick, [commit(0, 10), commit(60_000, 30), commit(60_000, 7, "h", 'u,"1')])
    with commit_series(read, logs, PARTITIONS, EVERY) as series:
        assert series.lookups() == 3
        at = {(place.topic, time_ms - EPOCH_MS) for place, time_ms in series.places()}
        assert at == {("t", 60_000), ("t", 120_000), ('u,"1', 120_000)}
        denied = Failure("TOPIC_AUTHORIZATION_FAILED", "no")
        ends = {
            (TopicPartition("t", 0), EPOCH_MS + 60_000): 25,
            (TopicPartition("t", 0), EPOCH_MS + 120_000): 31,
            (TopicPartition('u,"1', 0), EPOCH_MS + 120_000): denied,
        }
        whole = series.with_ends(ends)
        assert whole.unseen() == {"TOPIC_AUTHORIZATION_FAILED: no": 1}
        rows = list(csv.reader(whole.csv_lines()))
        (newest,) = whole.newest(2).shown()[1:]
        table = whole.table()
    assert rows == [
        list(FIELDS),
        ["2026-01-01T00:01:00.000Z", "g", "t", "0", "10", "1", "", "25", "15", "true"],
        ["2026-01-01T00:02:00.000Z", "g", "t", "0", "30", "1", "0.333", "31", "1", "true"],
        ["2026-01-01T00:02:00.000Z", "h", 'u,"1', "0", "7", "1", "", "", "", ""],
    ]
    assert (newest.group, newest.lag, newest.lag_is_estimate) == ("h", None, None)
    assert dict(table.dtypes)["time"] == "timestamp" and tuple(table.columns) == tuple(FIELDS)


def test_csv_has_names_that_no_spreadsheet_runs_and_no_terminal_obeys_and_the_table_has_them_as_they_are(quick):
    texts = ["=1+1", "a\x1bb", "plain"]
    read, logs = timed_topic(quick, [commit(0, 10, text, text) for text in texts])
    with commit_series(read, logs, PARTITIONS, EVERY) as series:
        _, *rows = csv.reader(series.csv_lines())
        exact = {(row.group, row.topic) for row in series.table().collect()}
    assert sorted(row[1:5] for row in rows) == sorted([harmless(text), harmless(text), "0", "10"] for text in texts)
    assert exact == {(text, text) for text in texts}


def test_only_the_newest_times_are_shown(quick):
    read, logs = timed_topic(quick, [commit(n * 60_000, n) for n in range(5)])
    with commit_series(read, logs, PARTITIONS, EVERY) as series:
        assert sorted(row.offset for row in series.newest(2).shown()) == [3, 4]
        assert series.newest(2).lookups() == 2 and series.rows == 5


def test_a_topic_without_records_gives_no_row(quick):
    read, _ = timed_topic(quick, [commit(0, 1)])
    with commit_series(read, {}, PARTITIONS, EVERY) as series:
        assert (series.rows, series.lookups(), series.counted.read) == (0, 0, 0)
        assert list(series.with_ends({}).csv_lines()) == [",".join(FIELDS)]


def test_an_offset_that_was_deleted_before_its_bucket_ended_is_asked_no_end_and_has_no_lag(quick):
    records = [commit(0, 10), commit(60_000, 20), commit(70_000, None), commit(60_000, 25, "other")]
    read, logs = timed_topic(quick, records)
    place = TopicPartition("t", 0)
    with commit_series(read, logs, PARTITIONS, EVERY) as series:
        assert series.lookups() == 2, "that of the other group alone at the later time"
        told = series.with_ends({(place, EPOCH_MS + 60_000): 12, (place, EPOCH_MS + 120_000): 30})
        shown = {(row.group, row.offset): row.lag for row in told.shown()}
        assert shown == {("g", 10): 2, ("g", 20): None, ("other", 25): 5}
        assert told.unseen() == {reason_of(OFFSET_DELETED): 1}
