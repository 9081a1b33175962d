"""Commits placed and tails compared without Spark, within the limits; what stands still is not read twice."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from migrate.match.compare import Memory, TasksHere, compare_records, compare_tails
from migrate.match.equality import Content, Equality
from migrate.match.protocol import FetchEstimate, Limits, Listener, Matched, Unmatched, Why, WhyUnmatched, Work
from migrate.model import LogRange, TopicPartition
from tests.memorylogs import MemoryReader, log_range, record

LIMITS = Limits(1_000_000, None)
UNHEARD = Listener(lambda estimate: None, lambda done, total: None)
PLACE, COPY = TopicPartition("t", 0), TopicPartition("A.t", 0)
UNREADABLE = {PLACE: "TOPIC_AUTHORIZATION_FAILED"}


class Flow:
    """One partition of `written` records, of which `copied` have a copy 5 further on; a sync every ten of them."""

    def __init__(self, written=100, copied=100, shift=0, syncs=True, **reader):
        self.written, self.copied, self.reader = written, copied, reader
        self.shift, self.syncs = shift, syncs
        self.expected: list[FetchEstimate] = []
        # Those that were opened, of the source and of the target.
        self.readers: list[tuple[MemoryReader, MemoryReader]] = []
        self.tasks, self.memory = TasksHere(self.open, self.sync_pairs), Memory()

    def sync_pairs(self, source, source_end, target_end):
        return tuple((n, n + 5) for n in range(0, self.copied, 10)) if self.syncs else ()

    def open(self):
        source = MemoryReader({PLACE: {n: record(n) for n in range(self.written)}}, **self.reader)
        target = MemoryReader({COPY: {n + 5: record(n + self.shift) for n in range(self.copied)}})
        self.readers.append((source, target))
        return nullcontext((source, target))

    @property
    def reads(self):
        return len(self.readers)

    @property
    def given(self):
        """What the readers have handed out, of either cluster."""
        return tuple(sum(reader.fetched_bytes for reader in side) for side in zip(*self.readers, strict=True))

    def work(self, committed):
        return Work(PLACE, COPY, LogRange(0, self.written), LogRange(0, self.copied + 5), (committed,))

    def comparison(self, committed=57, limits=LIMITS):
        listener = Listener(self.expected.append, UNHEARD.advance)
        return compare_records(self.tasks, [self.work(committed)], limits, listener, memory=self.memory)

    def place_of(self, committed=57, limits=LIMITS):
        return self.comparison(committed, limits).answers[PLACE].places[committed]

    def tail(self):
        found = compare_tails(self.tasks, self.memory, [self.work(50)], Limits(50_000, None), UNHEARD)
        return found.answers[PLACE].tail, found.equalities


def test_a_commit_is_placed_where_the_records_say_and_what_is_read_for_it_is_told_before():
    flow = Flow()
    placed = flow.place_of()
    assert isinstance(placed, Matched) and placed.exact and placed.target_offset == 62
    assert flow.expected[0].partitions == 1 and flow.expected[0].source_bytes > 0


def test_what_has_not_moved_is_not_read_again_and_what_has_is():
    flow = Flow()
    flow.place_of()
    before = flow.reads
    assert flow.place_of().target_offset == 62 and flow.reads == before
    assert flow.place_of(60).target_offset == 65 and flow.reads > before
    flow.written, before = 101, flow.reads
    assert flow.place_of(60).target_offset == 65 and flow.reads > before


def test_what_could_not_be_read_is_asked_for_again():
    flow = Flow(unreadable=UNREADABLE)
    assert flow.place_of().error_code == "TOPIC_AUTHORIZATION_FAILED"
    flow.reader = {}
    assert flow.place_of().target_offset == 62


def test_a_partition_beyond_the_bytes_allowed_is_placed_by_its_syncs_not_even_calibrated_and_asked_about_again():
    flow = Flow()
    found = flow.comparison()
    assert flow.reads == 2 and (found.source_bytes, found.target_bytes) == flow.given
    assert found.estimate.source_bytes > flow.readers[0][0].fetched_bytes > 0, "what it is calibrated on counts"
    flow = Flow()
    found = flow.comparison(limits=Limits(1_000_000, 1000))
    assert max(reader.fetched_bytes for reader in flow.readers[0]) <= 1000
    assert found.estimate.left_out == 1 and (found.source_bytes, found.target_bytes) == flow.given
    assert flow.place_of(limits=Limits(1_000_000, 1)).why is Why.NOT_ALL_READ
    assert flow.place_of().target_offset == 62, "it is calibrated as soon as it may be"


def test_records_that_compare_under_nothing_are_placed_by_their_syncs():
    assert Flow(shift=1000).place_of().reason == "records-changed-in-flight"


def compared(source, copies, *committed, sync_pairs=(), limits=LIMITS, listener=UNHEARD, memory=None, **known):
    """Compare these two logs."""
    readers = nullcontext((MemoryReader({PLACE: source}), MemoryReader({COPY: copies})))
    work = Work(PLACE, COPY, LogRange(min(source), max(source) + 1), log_range(copies), committed, **known)
    return compare_records(TasksHere(lambda: readers, lambda *_: sync_pairs), [work], limits, listener, memory)


def repeating(devices, seconds):
    """Devices that all say the same again and again, each second one of them."""
    return {n: Content(n * 1000, b"k%d" % (n % devices), b"on", ()) for n in seconds}


def test_behind_a_target_that_lags_a_commit_is_not_placed_at_what_only_looks_like_the_next_record():
    found = compared(repeating(600, range(3000)), repeating(600, range(2880)), 2880, 2940).answers[PLACE].places
    assert [(found[g].target_offset, found[g].rereads_at_most) for g in (2880, 2940)] == [(2880, 0), (2880, 60)]


def test_that_timestamps_are_not_kept_is_not_remembered_where_no_sync_says_so():
    """Of all that the source has in common with the end of a target that lags, retention has taken the originals."""
    source, memory = repeating(60, range(2990, 3120)), Memory()
    lagging, whole = (
        compared(source, repeating(60, range(copied)), 3000, memory=memory).answers[PLACE].places[3000]
        for copied in (2980, 3120)
    )
    assert lagging.why is Why.LOOK_ALIKES
    assert (whole.why, whole.target_offset) == (Why.PROVEN, 3000)


DAY_MS = 24 * 3_600_000


@pytest.mark.parametrize(("sync_pairs", "uncopied"), [((), None), (((0, 0),), 6000)])
def test_a_load_that_is_not_copied_yet_is_not_taken_for_the_same_one_of_the_night_before(sync_pairs, uncopied):
    """Each night all rows are written again, most of them unchanged, and the target sets timestamps of its own."""
    rows = 6000
    source = {n: Content(n // rows * DAY_MS + n % rows, b"k%d" % (n % rows), b"v", ()) for n in range(2 * rows)}
    source |= {rows + n: replace(source[rows + n], value=b"changed") for n in range(100)}
    copies = {n: replace(source[n], timestamp=n + 1_000) for n in range(rows)}
    found = compared(source, copies, 2 * rows, sync_pairs=sync_pairs)
    assert found.equalities["t"] is Equality.WITHOUT_TIMESTAMP
    assert found.answers[PLACE].tail.uncopied == uncopied


def test_an_answer_that_is_remembered_keeps_how_its_records_compared():
    written = {n: record(n) for n in range(400) if n != 5}
    later = {n: replace(record(n), timestamp=record(n).timestamp + 8_000_000) for n in range(400)}
    seen = {"sync_pairs": ((5, 5),), "limits": Limits(100, None), "memory": Memory()}
    looks = [compared(written, later, 20, **seen) for _ in range(2)]
    assert [look.equalities for look in looks] == [{"t": Equality.WITHOUT_TIMESTAMP}] * 2
    assert all(isinstance(look.answers[PLACE].places[20], Unmatched) for look in looks)
    first, again = ((look.source_bytes, look.target_bytes) for look in looks)
    assert min(first) > 0 and again == (0, 0)


def test_where_nothing_is_to_be_compared_a_sync_and_a_timestamp_place_the_commit():
    flow = Flow()
    assert flow.place_of(limits=Limits(0, None)) == Unmatched(WhyUnmatched.NO_MATCH, guard_offset=62, lower=(50, 55))
    (estimate,) = flow.expected
    assert (estimate.partitions, estimate.source_records, estimate.target_records, estimate.left_out) == (0, 0, 0, 0)


@pytest.mark.parametrize("may_keep", [True, False])
def test_by_timestamps_the_source_alone_is_read_where_copies_are_shown_to_keep_theirs(may_keep):
    log = {n: Content(100_000 + 100 * n, b"k%d" % n, b"v%d" % n, ()) for n in range(200)}
    changed = {n: replace(content, value=b"?") for n, content in log.items()}
    expected: list[FetchEstimate] = []
    told = {"listener": Listener(expected.append, UNHEARD.advance), "limits": replace(LIMITS, by_timestamp=True)}
    places = compared(log, changed, 50, 200, may_keep_timestamps=may_keep, **told).answers[PLACE].places
    assert places[200] == Matched(200, Why.LEAST_TIMESTAMP, 0)
    if may_keep:
        assert places[50] == Matched(50, Why.LEAST_TIMESTAMP, 150)
    else:
        assert isinstance(places[50], Unmatched) and places[50].reason is WhyUnmatched.TIMESTAMPS_NOT_KEPT
    assert (expected[0].source_records, expected[0].target_records) == (150 if may_keep else 0, 0)


# --- tails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("syncs", [True, False])
def test_a_tail_is_drained_or_says_how_many_are_left_and_since_when_the_first_of_them_waits(syncs):
    """Without any sync an anchor near the ends serves."""
    tail, equalities = Flow(syncs=syncs).tail()
    assert (tail.uncopied, tail.last_record, tail.waiting_since) == (0, 99, None)
    assert equalities == {"t": Equality.ALL}
    tail, _ = Flow(100, 93, syncs=syncs).tail()
    assert (tail.uncopied, tail.waiting_since) == (7, record(93).timestamp)
    assert Flow(unreadable=UNREADABLE, syncs=syncs).tail()[0].uncopied is None


def test_a_tail_that_is_drained_and_stands_still_is_not_read_again_and_what_moves_is():
    flow = Flow()
    flow.tail()
    reads = flow.reads
    assert flow.tail()[0].uncopied == 0
    once_more = flow.reads - reads
    flow.written = 105
    assert flow.tail()[0].uncopied == 5 and flow.reads > reads + once_more
    flow.copied = 105
    assert flow.tail()[0].uncopied == 0


def test_what_no_anchor_told_is_found_out_anew_at_the_next_look():
    flow = Flow(100, 0)
    assert flow.tail()[1] == {"t": Equality.ALL} and not flow.memory.calibrations
    flow.copied = 100
    flow.tail()
    assert flow.memory.calibrations["t"].equality is Equality.ALL
