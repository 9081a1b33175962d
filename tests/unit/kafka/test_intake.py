"""What is kept of the records of a run: those within its ranges, from where the log can be read."""

from array import array

from confluent_kafka import Message

from migrate.kafka.read_pass import Contents, Prints, RunIntake
from migrate.match.equality import Equality
from migrate.match.log_reader import runs_of
from migrate.match.protocol import OffsetRange

RANGES = (OffsetRange(2, 4), OffsetRange(6, 9))


def records(*offsets):
    return [
        Message(topic="t", partition=0, offset=o, key=b"k", value=b"v%d" % o, timestamp=(1, 100 + o), headers=[])
        for o in offsets
    ]


def intake():
    (run,) = runs_of(RANGES, 100)
    shelves = [Contents() for _ in RANGES]
    return RunIntake(run, RANGES, shelves), shelves


def test_records_between_two_ranges_belong_to_neither():
    taking, shelves = intake()
    assert not taking.take(records(2, 3, 4, 5)) and not taking.take(records(6))
    assert taking.start == 7
    assert taking.take(records(7, 8))
    assert [list(shelf.records) for shelf in shelves] == [[2, 3], [6, 7, 8]]


def test_a_record_beyond_the_runs_end_ends_it_and_is_not_kept():
    taking, shelves = intake()
    assert taking.take(records(3, 20))
    assert [list(shelf.records) for shelf in shelves] == [[3], []]


def test_where_retention_was_faster_what_is_below_the_logs_start_can_no_longer_be_read():
    taking, shelves = intake()
    taking.begin_at(7)
    assert taking.start == 7 and [shelf.readable_from for shelf in shelves] == [7, 7]
    prints = Prints(Equality.KEY_AND_VALUE)
    prints.add(array("q", [6, 7, 8]), records(6, 7, 8))
    prints.readable_from = 7
    piece = prints.stretch(OffsetRange(6, 9))
    assert (piece.start, piece.end, piece.readable_from, list(piece.offsets)) == (6, 9, 7, [7, 8])


def test_equal_records_have_equal_prints_and_keys_are_marked_only_where_they_are_asked_for():
    plain, keyed = Prints(Equality.KEY_AND_VALUE), Prints(Equality.KEY_AND_VALUE, with_keys=True)
    for shelf in (plain, keyed):
        shelf.add(array("q", [1, 2]), [*records(1), *records(1)])
        prints = shelf.stretch(OffsetRange(0, 3)).prints
        assert prints[0] == prints[1]
    assert len(keyed.stretch(OffsetRange(0, 3)).keys) == 2 and len(plain.stretch(OffsetRange(0, 3)).keys) == 0
    assert keyed.stretch(OffsetRange(0, 3)).prints == plain.stretch(OffsetRange(0, 3)).prints
