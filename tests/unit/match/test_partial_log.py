"""What is known of two logs, and how that which is missing becomes one request, in straight runs."""

import random

import pytest

from migrate.match.equality import Equality
from migrate.match.log_reader import Run, runs_of
from migrate.match.partial_log import LogPair, MissingRanges, PartialLog, collected
from migrate.match.protocol import LogSlice, Needs, OffsetRange, PartitionQuestion, Supply
from migrate.model import LogRange, Side, TopicPartition

PLACE = TopicPartition("t", 0)


def read(start: int, end: int, *offsets: int, readable_from: int | None = None) -> LogSlice:
    times = [1_000 + offset for offset in offsets]
    return LogSlice(start, end, start if readable_from is None else readable_from, offsets, times, offsets)


def test_a_section_is_there_once_all_of_it_was_read_and_tells_of_its_gaps():
    log = PartialLog(Side.SOURCE, LogRange(0, 100), 1_000)
    log.add(read(20, 30, *range(20, 30)))
    with pytest.raises(MissingRanges) as missing:
        log.section(10, 40)
    assert missing.value.ranges == {Side.SOURCE: (OffsetRange(10, 20), OffsetRange(30, 40))}
    log.add(read(30, 40, 31, 32))
    log.add(read(10, 20, *range(10, 20)))
    section = log.section(25, 35)
    assert list(section.prints) == [25, 26, 27, 28, 29, 31, 32] and section.has_gaps
    assert not log.section(10, 30).has_gaps and log.at(31) == section.low + 5 and log.at(30) is None


def test_what_retention_deleted_while_it_was_read_is_not_asked_for_again():
    log = PartialLog(Side.TARGET, LogRange(0, 100), 1_000)
    log.add(read(10, 20, 15, 16, readable_from=15))
    assert (log.start, log.uncovered(0, 20), log.has_unseen) == (15, (), True)


def test_all_that_is_missing_becomes_one_request_without_what_is_known():
    log, missing = LogRange(0, 100), []
    logs = LogPair(PartitionQuestion(PLACE, PLACE, log, log, (), sync_pairs=(), equality=Equality.ALL))
    logs.take_in(Supply(source=(read(10, 20),), target_first={1_007: 7}))
    for step in (
        lambda: logs.source.section(0, 15),
        lambda: logs.sections(OffsetRange(12, 25), OffsetRange(0, 5)),
        lambda: logs.target.first_at(1_007),
        lambda: logs.source.first_at(1_003),
    ):
        with collected(missing):
            step()
    assert logs.needs(missing) == Needs(
        source=(OffsetRange(0, 10), OffsetRange(20, 25)), target=(OffsetRange(0, 5),), source_times=(1_003,)
    )


def test_ranges_close_to_each_other_are_one_run_and_an_empty_one_is_never_read():
    assert runs_of([OffsetRange(5, 5)], 100) == []
    assert runs_of([OffsetRange(0, 3), OffsetRange(5, 5), OffsetRange(9, 12)], 100) == [Run(0, 12, 0, 2)]
    ranges = [OffsetRange(0, 10), OffsetRange(15, 20)]
    assert runs_of(ranges, 5) == [Run(0, 20, 0, 1)]
    assert runs_of(ranges, 4) == [Run(0, 10, 0, 0), Run(15, 20, 1, 1)]


def test_every_offset_of_every_range_is_in_the_run_that_names_it():
    rnd = random.Random(3)
    for _ in range(300):
        cuts = sorted(rnd.sample(range(400), 2 * rnd.randrange(1, 12)))
        ranges = [OffsetRange(*pair) for pair in zip(cuts[::2], cuts[1::2], strict=True)]
        gap = rnd.randrange(40)
        runs = runs_of(ranges, gap)
        assert [n for run in runs for n in range(run.first, run.last + 1)] == list(range(len(ranges)))
        for run in runs:
            inside = ranges[run.first : run.last + 1]
            assert (run.start, run.end) == (inside[0].start, inside[-1].end)
        assert all(b.start - a.end > gap for a, b in zip(runs, runs[1:], strict=False))
