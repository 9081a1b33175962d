"""How ranges become straight runs."""

import random

from migrate.match.log_reader import Run, runs_of
from migrate.match.protocol import OffsetRange


def test_ranges_close_to_each_other_are_one_run():
    ranges = [OffsetRange(0, 10), OffsetRange(15, 20), OffsetRange(100, 110)]
    assert runs_of(ranges, 5) == [Run(0, 20, 0, 1), Run(100, 110, 2, 2)]
    assert runs_of(ranges, 4) == [Run(0, 10, 0, 0), Run(15, 20, 1, 1), Run(100, 110, 2, 2)]


def test_an_empty_range_is_never_read():
    assert runs_of([OffsetRange(5, 5)], 100) == []
    assert runs_of([OffsetRange(0, 3), OffsetRange(5, 5), OffsetRange(9, 12)], 100) == [Run(0, 12, 0, 2)]


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
