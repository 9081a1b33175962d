"""The newest checkpoint of a key is the last one in the log, whatever else is in the topic."""

import pytest

from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.mm2.wire import SyncRecord
from migrate.mm2.wire import WireCheckpoint as Wire
from migrate.model import LogRange
from migrate.spark.checkpoints import newest_checkpoints, read_checkpoints
from migrate.survey.offsets_pin import CompactedMeanwhileError
from tests.spark.records import EPOCH_MS, frame, newest
from tests.wirebytes import encode_checkpoint, encode_sync

KEY = CheckpointKey("g", "A.t", 3)


def checkpoint(source_offset, target_offset=0, metadata="", group="g"):
    return encode_checkpoint(Wire(group, "A.t", 3, source_offset, target_offset, metadata))


def test_the_last_in_log_order_wins_even_if_it_is_lower(spark):
    reading = newest(spark, [checkpoint(9, 90), checkpoint(4, 40), checkpoint(7, 70, group="other")])
    assert reading.latest[KEY] == CheckpointRecord(4, 40, "", 1, EPOCH_MS + 1)
    assert reading.counts == {"checkpoint": 3}


def test_a_tombstone_takes_the_checkpoints_before_it_away(spark):
    gone, back = checkpoint(1), checkpoint(2, group="h")
    reading = newest(spark, [gone, (gone[0], None), (back[0], None), back])
    assert set(reading.latest) == {CheckpointKey("h", "A.t", 3)}
    assert reading.counts == {"checkpoint": 2, "tombstone": 2}


def test_an_undecodable_record_hides_no_checkpoint(spark):
    good = checkpoint(1)
    reading = newest(spark, [good, (good[0], b"\x00\x07" + good[1][2:]), (good[0], good[1][:-1])])
    assert reading.latest[KEY].source_offset == 1
    assert reading.counts == {"checkpoint": 1, "undecodable:unknown-version": 1, "undecodable:bad-length": 1}


def test_a_topic_of_offset_syncs_is_recognised(spark):
    reading = newest(spark, [encode_sync(SyncRecord("t", 0, u, u)) for u in range(5)])
    assert (reading.latest, reading.counts) == ({}, {"offset-sync": 5})


def test_metadata_is_the_newest_records_own(spark):
    text = "é\x00\n\"'"
    pairs = [checkpoint(1, metadata="old"), checkpoint(2, metadata=text)]
    pairs += [checkpoint(3, metadata="gone", group="h"), checkpoint(4, group="h")]
    latest = newest(spark, pairs).latest
    assert latest[KEY].metadata == text
    assert latest[CheckpointKey("h", "A.t", 3)] == CheckpointRecord(4, 0, "", 3, EPOCH_MS + 3)


def test_a_record_compacted_away_between_the_passes_is_not_missed_in_silence(spark):
    whole = frame(spark, [checkpoint(1), checkpoint(2, group="h"), checkpoint(3, group="h")])
    ranges = []

    def compacting(part):
        ranges.append(part)
        return whole if len(ranges) == 1 else whole.where("offset <> 0")

    # Read again up to the same end, the group whose record gave place to one beyond it would not be there at all.
    with pytest.raises(CompactedMeanwhileError, match="MM2's checkpoints topic was compacted"):
        newest_checkpoints(compacting, LogRange(0, 3))
    assert ranges == [LogRange(0, 3), LogRange(0, 3)]


def test_an_empty_range_reads_nothing(spark):
    reading = read_checkpoints(spark, {}, "no-such-topic", LogRange(5, 5))
    assert (reading.latest, reading.counts) == ({}, {})
