"""Tails compared without Spark: drained or how many are left, and what stands still is not read twice."""

from contextlib import nullcontext

from migrate.match.compare import Memory, TasksHere, compare_tails
from migrate.match.equality import Equality
from migrate.match.protocol import Limits, Listener, Work
from migrate.model import LogRange, TopicPartition
from tests.memorylogs import MemoryReader, record

LIMITS = Limits(50_000, None)
LISTENER = Listener(lambda estimate: None, lambda done, total: None)


class Flow:
    """One partition of `written` records, of which `copied` have a copy; a sync every ten of them."""

    def __init__(self, written=100, copied=100, syncs=True, **reader):
        self.place, self.copy = TopicPartition("t", 0), TopicPartition("A.t", 0)
        self.reads, self.reader, self.syncs = 0, reader, syncs
        self.grow(written, copied)
        self.memory = Memory()

    def grow(self, written, copied):
        self.written, self.copied = written, copied

    def sync_pairs(self, source, source_end, target_end):
        return tuple((n, n) for n in range(0, self.copied, 10)) if self.syncs else ()

    def open(self):
        self.reads += 1
        source = MemoryReader({self.place: {n: record(n) for n in range(self.written)}}, **self.reader)
        return nullcontext((source, MemoryReader({self.copy: {n: record(n) for n in range(self.copied)}})))

    def compare(self, limits=LIMITS):
        logs = LogRange(0, self.written), LogRange(0, self.copied)
        work = Work(self.place, self.copy, *logs, (50,))
        found = compare_tails(TasksHere(self.open, self.sync_pairs), self.memory, [work], limits, LISTENER)
        return found.answers[self.place].tail, found


def test_a_partition_that_is_copied_in_full_is_drained():
    tail, found = Flow().compare()
    assert (tail.uncopied, tail.last_record, tail.waiting_since) == (0, 99, None)
    assert found.equalities == {"t": Equality.ALL}


def test_one_that_is_not_says_how_many_are_left_and_since_when_the_first_of_them_waits():
    tail, _ = Flow(100, 93).compare()
    assert (tail.uncopied, tail.waiting_since) == (7, record(93).timestamp)


def test_without_any_sync_an_anchor_near_the_ends_serves():
    assert Flow(syncs=False).compare()[0].uncopied == 0
    assert Flow(100, 93, syncs=False).compare()[0].uncopied == 7


def test_what_is_drained_and_stands_still_is_not_read_again_and_what_moves_is():
    flow = Flow()
    flow.compare()
    reads = flow.reads
    assert flow.compare()[0].uncopied == 0
    once_more = flow.reads - reads
    flow.grow(105, 100)
    tail, _ = flow.compare()
    assert tail.uncopied == 5 and flow.reads > reads + once_more
    flow.grow(105, 105)
    assert flow.compare()[0].uncopied == 0


def test_what_no_anchor_told_is_found_out_anew_at_the_next_look():
    flow = Flow(100, 0)
    assert flow.compare()[1].equalities == {"t": Equality.ALL}
    assert not flow.memory.calibrations
    flow.grow(100, 100)
    flow.compare()
    assert flow.memory.calibrations["t"].equality is Equality.ALL


def test_a_partition_that_may_not_be_read_is_not_judged_and_no_error():
    flow = Flow(unreadable={TopicPartition("t", 0): "TOPIC_AUTHORIZATION_FAILED"})
    assert flow.compare()[0].uncopied is None
