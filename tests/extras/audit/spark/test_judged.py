"""What is read of two logs again, and what is said of their records: small scenes, and others that are cut in two."""

from collections import defaultdict
from dataclasses import replace
from random import Random

import pytest

from migrate.errors import ClusterError
from migrate.extras.audit.judge import LogReading, judged, with_order
from migrate.extras.audit.stretches import Cut, Stretch, Sums, TopicSums
from migrate.extras.audit.verdict import Category, Lack, TopicAudit, Verdict
from migrate.match.equality import Equality
from migrate.model import LogRange, Side
from migrate.spark.consumer_offsets import offsets_session
from tests.extras.audit.auditlogs import Logs, Record, Topic
from tests.extras.audit.spark.auditframes import CUT, Found, audited, audited_again, pinned, read, sum_up
from tests.seeds import new_seed

IN_TENS = Cut(Equality.ALL, 10, 10)
TROUBLES = frozenset({"restarts", "drops", "local-writers", "transactions", "jitter"})


@pytest.fixture(scope="module")
def quick(spark):
    """A session that compiles no query: that takes longer than all else here. Random scenes have compiled ones."""
    return offsets_session(lambda: spark, is_small=True)


def some_logs():
    return [each.logs() for each in Topic.of(new_seed(), TROUBLES).partitions]


def test_since_a_time_it_is_said_what_an_audit_of_the_records_since_then_says(quick):
    logs = some_logs()
    since_ms = sorted(r.time_ms for each in logs for r in each.source)[sum(len(each.source) for each in logs) // 2]

    def later(log):
        return [r for r in log if r.time_ms >= since_ms]

    def first(log, end):
        return min((r.offset for r in later(log)), default=end)

    ends = pinned(logs).target_logs
    begins = {p: (first(e.source, e.source_end), first(e.target, ends[p].end)) for p, e in enumerate(logs)}
    audit, named, _ = audited(quick, logs, since_ms=since_ms, begins=begins)
    others = [replace(each, source=later(each.source), target=later(each.target)) for each in logs]
    alone, all_named, _ = audited(quick, others, target_logs=ends)
    assert audit.counts == alone.counts and set(named) == set(all_named)


def whole():
    """A log whose copy has all of it, and both ends."""
    records = [Record(o, str(o), 1_000 + o, b"k%d" % (o % 7), b"v%d" % o) for o in range(40)]
    return Logs(records, list(records), source_end=40, next_to_copy=40)


def test_a_copy_with_all_records_is_complete_and_none_is_compared(quick):
    audit, _, reading = audited(quick, [whole(), whole()])
    assert audit.verdict is Verdict.COMPLETE and audit.counts == {Category.COPIED: 80}
    assert len(reading.asked) == 2


def test_only_stretches_that_differ_are_read_again_and_aborted_records_sought_only_in_their_partitions(quick):
    short, quiet, met = whole(), whole(), whole()
    del short.target[20]
    for world in (quiet, met):
        world.source[5] = replace(world.source[5], is_aborted=True)
    del quiet.target[5]  # the other's copy stays
    audit, named, reading = audited(quick, [short, quiet, met], IN_TENS)
    assert audit.verdict is Verdict.INCOMPLETE and [n.offset for n in named] == [20]
    assert audit.counts == {Category.COPIED: 39 + 78, Category.MISSING: 1, Category.ABORTED_COPY: 1}
    again = [(side, ranges[0].start, ranges[0].end) for side, ranges in reading.asked[2:6]]
    # To count equal records, and then to name those without a counterpart.
    assert again == 2 * [(Side.SOURCE, 20, 30), (Side.TARGET, 21, 30)]
    assert {p for _, ranges in reading.asked[2:] for p in ranges} == {0, 2}


def test_what_differs_by_replays_and_copies_of_aborted_records_alone_is_not_read_again(quick):
    world = whole()
    world.source[15] = replace(world.source[15], is_aborted=True)
    # Stretches of ten records: 5 is copied again, 15 aborted and copied, 25 lost, and 35 stands beside a stranger.
    world.target = [world.source[5], *(r for r in world.source if r.offset != 25), Record(0, "s", 1_035, b"s", b"s")]
    world.target = [replace(r, offset=place) for place, r in enumerate(world.target)]
    held, salt = TopicSums("t", "t", "", "", IN_TENS), new_seed()
    first, named, _ = audited_again(quick, [world], held, salt=salt)
    counts = {Category.COPIED: 38, Category.COPIED_AGAIN: 1, Category.ABORTED_COPY: 1, Category.MISSING: 1}
    assert first.counts == counts | {Category.FOREIGN: 1}
    second, again, reading = audited_again(quick, [world], held, salt=salt)
    assert (second, again) == (first, named)
    asked = {o for side, ranges in reading.asked if side is Side.TARGET for o in range(ranges[0].start, ranges[0].end)}
    assert asked and min(asked) > 20, "neither the first stretch nor the second"
    # The lost copy comes, and a new record that is lost, into a stretch that was settled.
    world.source.append(Record(40, "40", 1_107, b"k", b"late"))
    world.target.append(replace(world.source[25], offset=len(world.target)))
    world.source_end, world.next_to_copy = 41, 41
    third, named, _ = audited_again(quick, [world], held, salt=salt)
    assert third.counts == counts | {Category.COPIED: 39, Category.FOREIGN: 1}
    assert [n.offset for n in named if n.category is Category.MISSING] == [40]


def test_what_a_transaction_that_is_still_open_on_the_source_has_copied_is_not_foreign_and_judged_again(quick):
    world = whole()
    world.source[39] = replace(world.source[39], is_aborted=True)
    held, salt = TopicSums("t", "t", "", "", IN_TENS), new_seed()
    world.source_end = world.next_to_copy = 39
    found, _, _ = audited_again(quick, [world], held, salt=salt, open_on_source=frozenset({0}))
    assert found.counts == {Category.COPIED: 39, Category.NO_ORIGINAL_VISIBLE: 1}
    world.source_end = world.next_to_copy = 40
    found, _, _ = audited_again(quick, [world], held, salt=salt)
    assert found.counts == {Category.COPIED: 39, Category.ABORTED_COPY: 1}


def test_of_equal_records_the_one_that_is_not_copied_yet_lacks_its_copy(quick):
    world = whole()
    world.source[35] = replace(world.source[10], offset=35)
    world.target, world.next_to_copy = world.target[:20], 20
    audit, _, _ = audited(quick, [world], Cut(Equality.KEY_AND_VALUE, 10, 4))
    assert audit.counts == {Category.COPIED: 20, Category.NOT_COPIED_YET: 20}


def test_of_equal_records_only_how_many_is_told_and_what_lies_beyond_an_open_transaction_may_have_been_copied(quick):
    alike, cut_off = whole(), whole()
    for offset in (10, 11, 12):
        alike.source[offset] = Record(offset, "x", 1_010, b"k", b"v")
    alike.target = [r for r in alike.source if r.offset != 11]
    del cut_off.target[30:]
    audit, _, _ = audited(quick, [alike, cut_off], open_on_target=frozenset({1}))
    assert audit.counts == {Category.COPIED: 39 + 30, Category.MISSING: 1, Category.NOT_COPIED_YET: 10}


def test_what_was_shown_by_no_pair_of_records_is_never_called_missing(quick):
    world = whole()
    del world.target[20]
    audit, _, _ = audited(quick, [world], lasts=False)
    assert audit.counts == {Category.COPIED: 39, Category.MAYBE_COPIED: 1} and audit.verdict is Verdict.NOT_PROVEN


def test_what_retention_takes_while_logs_are_read_is_neither_missing_nor_foreign(quick):
    on_target, on_source = whole(), whole()
    del on_target.target[25], on_source.target[2]
    before = pinned([on_target, on_source])
    held, salt = TopicSums("t", "t", "", "", IN_TENS), new_seed()
    sum_up(read(quick, [on_target, on_source], salt), before, held)
    on_target.target_start, on_source.source_start = 24, 5
    now = pinned([on_target, on_source])
    found = Found()
    reading = replace(read(quick, [on_target, on_source], salt), with_current_starts=lambda _: now)
    audit, _ = judged(reading, before, held, True, found)
    # What was removed since it was summed is no place for aborted records, which may lie in all of a log.
    assert all(log.end - log.start <= 10 for _, ranges in reading.asked for log in ranges.values())
    assert [(n.category, n.partition, n.offset) for n in found.records] == [(Category.MISSING, 0, 25)]
    assert audit.counts == {
        Category.COPIED: 35 + 35,
        Category.MISSING: 1,
        Category.MAYBE_COPIED: 4,  # 20 to 23 of the first: their copies are gone
        Category.NO_ORIGINAL_VISIBLE: 4,  # 0, 1, 3 and 4 of the second
        Category.REMOVED: 5,
    }


def test_what_superseded_a_record_or_vouched_for_it_may_be_gone_by_now(quick):
    """Logs begin later after the reading: what has no copy is not called missing for what that took."""

    def judged_later(world, cleaned, **now):
        before, held, salt = pinned([world], compacted=cleaned), TopicSums("t", "t", "", "", IN_TENS), new_seed()
        reading = read(quick, [world], salt)
        sum_up(reading, before, held)
        answers = iter([before])
        reading = replace(reading, with_current_starts=lambda _: next(answers, replace(before, **now)))
        return judged(reading, before, held, True, Found())[0].counts

    world, cleaned = whole(), frozenset({Side.TARGET})
    del world.target[5]
    assert judged_later(world, cleaned) == {Category.COPIED: 39, Category.SUPERSEDED: 1}
    found = judged_later(world, cleaned, source_logs={0: LogRange(36, 40)})
    assert found == {Category.COPIED: 39, Category.MAYBE_COPIED: 1}, "12, 19, 26 and 33 have the same key"
    world = whole()
    world.target_start = 7
    del world.target[8]
    found = judged_later(world, frozenset())
    assert found == {Category.COPIED: 32, Category.MISSING: 1, Category.MAYBE_COPIED: 7}
    found = judged_later(world, frozenset(), target_logs={0: LogRange(10, 40)})
    assert found == {Category.COPIED: 32, Category.MAYBE_COPIED: 8}


def test_of_logs_that_begin_or_end_apart_only_counts_are_told_and_nothing_is_read_again(quick):
    later_copies, later_originals, behind = whole(), whole(), whole()
    later_copies.target_start, later_originals.source_start = 20, 20
    behind.target, behind.next_to_copy = behind.target[:20], 20
    audit, named, reading = audited(quick, [later_copies, later_originals, behind], IN_TENS)
    assert audit.counts == {
        Category.COPIED: 60,
        Category.MAYBE_COPIED: 20,
        Category.NO_ORIGINAL_VISIBLE: 20,
        Category.NOT_COPIED_YET: 20,
    }
    assert not named and len(reading.asked) == 2


def test_of_a_plan_each_group_is_told_what_it_lacks_and_what_no_group_is_owed_is_not_read(quick):
    world = whole()
    # The only copy of 15 lies before all that a group reads, and that of 5 concerns none.
    world.target = [r for r in world.source if r.offset not in (5, 15, 20, 30)]
    world.target = sorted([*world.target, replace(world.source[15], offset=5)], key=lambda r: r.offset)
    owed = {"begins": {0: (10, 10)}, "owed_from": frozenset({(0, 10), (0, 25), (0, 40)})}
    world.target_start = 4
    audit, named, reading = audited(quick, [world], **owed)
    assert audit.counts == {Category.COPIED: 27, Category.MISSING: 3} and [n.offset for n in named] == [15, 20, 30]
    assert audit.lacks == (Lack(0, 10, Category.MISSING, 3, 15, 30), Lack(0, 25, Category.MISSING, 1, 30, 30))
    assert {ranges[0].start for _, ranges in reading.asked} >= {10} and all(r[0].start >= 10 for _, r in reading.asked)
    # Retention took copies that a group would have read.
    world.target_start = 12
    audit, _, _ = audited(quick, [world], **owed)
    assert audit.counts == {Category.COPIED: 25, Category.MISSING: 3, Category.MAYBE_COPIED: 2}
    assert Lack(0, 10, Category.MAYBE_COPIED, 2, 10, 11) in audit.lacks


def late_by_identity(world):
    """Offsets of originals whose first copy stands behind that of a later one, as far as first copies are there."""
    originals, firsts = {r.identity: r.offset for r in world.originals}, {}
    for copy in world.copies:
        if copy.identity in originals:
            firsts.setdefault(originals[copy.identity], None)
    found, furthest = set(), -1
    for offset in firsts:
        if offset < furthest and (world.target_start == 0 or offset > next(iter(firsts))):
            found.add(offset)
        furthest = max(furthest, offset)
    return found


def test_out_of_order_is_what_identities_say_and_doublings_are_not(quick):
    dice, logs = Random(new_seed()), some_logs()
    for target in (each.target for each in logs[1:] if each.target):
        for _ in range(10):
            one, other = dice.choices(range(len(target)), k=2)
            here, there = target[one], target[other]
            target[one], target[other] = replace(there, offset=here.offset), replace(here, offset=there.offset)
    topic, found = pinned(logs), Found()
    audit = with_order(read(quick, logs), topic, TopicSums("t", "t", "", "", CUT), TopicAudit("t", "t", None), found)
    late = {(n.partition, n.offset) for n in found.records}
    assert late == {(p, offset) for p, each in enumerate(logs) for offset in late_by_identity(each)}
    assert late and audit.counts == {Category.OUT_OF_ORDER: len(late)} and len(late) == len(found.records)


class Refusing(LogReading):
    """Reads nothing."""

    def records(self, *asked):
        raise ClusterError("Topic t on A could not be read: no.")


def test_what_is_missing_is_told_though_the_order_could_not_be_looked_at(quick):
    short = TopicAudit("t", "t", Equality.ALL, {Category.COPIED: 39, Category.MISSING: 1})
    reading, topic = Refusing(quick, defaultdict(lambda: None), 1, lambda topic: topic), pinned([whole()])
    audit = with_order(reading, topic, TopicSums("t", "t", "", "", CUT), short, Found())
    assert audit.verdict is Verdict.INCOMPLETE and audit.counts == short.counts
    assert audit.unproven == ("the order of copies was not looked at: Topic t on A could not be read: no.",)


def test_a_cleaner_takes_superseded_copies_and_perhaps_tombstones(quick):
    records = [Record(o, str(o), 1_000 + o, b"k%d" % (o % 4), b"v%d" % o) for o in range(12)]
    # The newest of k3 is a tombstone, and a stranger wrote k2 to the target.
    records[11] = Record(11, "11", 1_011, b"k3", None)
    target = [Record(20, "8", 1_008, b"k0", b"v8"), Record(21, "stranger", 1_500, b"k2", b"s")]
    world = Logs(records, target, source_end=12, target_start=0, next_to_copy=12)
    audit, named, _ = audited(quick, [world], compacted=frozenset({Side.TARGET}))
    assert audit.counts == {
        Category.COPIED: 1,
        Category.SUPERSEDED: 2,  # the older ones of k0
        Category.MAYBE_COPIED: 6,  # all of k2 and k3
        Category.MISSING: 3,  # k1, of which the target has nothing
        Category.FOREIGN: 1,
    }
    assert {n.offset for n in named if n.category is Category.MISSING} == {1, 5, 9}


def test_what_differed_in_a_partition_that_is_not_visible_any_more_is_not_counted_as_copied():
    held = TopicSums("t", "t", "", "", CUT)
    agreed, alone = Sums(2, (1, 1, 1, 1), 0, 1), Sums(3, (2, 2, 2, 2), 0, 2)
    held.add(Side.SOURCE, {0: LogRange(0, 2), 1: LogRange(0, 3)}, {Stretch(0, 0): agreed, Stretch(1, 0): alone})
    held.add(Side.TARGET, {0: LogRange(0, 2)}, {Stretch(0, 0): agreed})
    found, _ = judged(None, pinned([], unproven=("partition 1 is not visible",)), held, True, Found())
    assert (found.counts, found.verdict) == ({Category.COPIED: 2}, Verdict.NOT_PROVEN)
