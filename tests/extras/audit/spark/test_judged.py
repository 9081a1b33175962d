"""What is said of records is what their identities say: worlds with kills, losses, strangers, changes and retention."""

from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

import pytest

from migrate.errors import ClusterError
from migrate.extras.audit.judge import LogReading, judged, with_order
from migrate.extras.audit.stretches import Cut, Stretch, Sums, TopicSums
from migrate.extras.audit.verdict import Category, Lack, TopicAudit, Verdict
from migrate.match.equality import Equality
from migrate.model import LogRange, Side
from tests.extras.audit.auditworld import RECORDS, Record, World, some_world
from tests.extras.audit.spark.auditframes import CUT, Found, audited, audited_again, pinned, read
from tests.seeds import new_seed

WORLDS = 24


def expected(world):
    """By what identities say: the category of every original without a copy, by offset."""
    there, ever = {r.identity for r in world.copies}, {r.identity.removesuffix(" changed") for r in world.target}
    changed = {i.removesuffix(" changed") for i in there if i.endswith(" changed")}
    copied = [r.offset for r in world.originals if r.identity in there]
    copied_to = world.next_to_copy if world.next_to_copy is not None else max(copied, default=-1) + 1
    found = {}
    for r in world.originals:
        if r.identity in there:
            continue
        if r.identity in changed:
            found[r.offset] = {Category.CHANGED}
        elif r.offset >= copied_to:
            found[r.offset] = {Category.NOT_COPIED_YET}
        elif r.identity in ever:
            found[r.offset] = {Category.MAYBE_COPIED}
        elif world.target_start == 0 or world.next_to_copy is not None and any(r.offset > offset for offset in copied):
            found[r.offset] = {Category.MISSING}
        else:
            found[r.offset] = {Category.MAYBE_COPIED}
    return found


def expected_counts(worlds):
    counts = Counter()
    for world in worlds:
        of_source = {r.identity: r for r in world.source if r.offset >= world.source_start}
        visible = {r.identity for r in world.originals}
        there = Counter(r.identity for r in world.copies)
        counts[Category.COPIED] += len(visible & there.keys())
        counts[Category.COPIED_AGAIN] += sum(n - 1 for i, n in there.items() if i in visible)
        counts.update(category for each in expected(world).values() for category in each)
        for identity, number in there.items():
            original = identity.removesuffix(" changed")
            if identity in visible:
                continue
            if identity in of_source:
                counts[Category.ABORTED_COPY] += number
                continue
            # One changed copy is the original's, if that has no other.
            number -= original != identity and original in visible and original not in there
            counts[Category.FOREIGN if world.source_start == 0 else Category.NO_ORIGINAL_VISIBLE] += number
    return Counter({category: n for category, n in counts.items() if n})


@pytest.mark.parametrize("run", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_every_category_is_what_identities_say(spark, run):
    dice = Random(new_seed())
    worlds = [some_world(dice) for _ in range(WORLDS)]
    audit, named, _ = audited(spark, worlds)
    assert Counter(audit.counts) == expected_counts(worlds)
    missing = {(n.partition, n.offset) for n in named if n.category is Category.MISSING}
    assert missing == {
        (p, o) for p, w in enumerate(worlds) for o, each in expected(w).items() if Category.MISSING in each
    }
    assert audit.verdict is (Verdict.INCOMPLETE if missing else Verdict.NOT_PROVEN)


def test_since_a_time_every_category_is_what_identities_say_of_the_records_since_then(spark):
    dice, since_ms = Random(new_seed()), 1_150
    worlds = [some_world(dice) for _ in range(WORLDS)]

    def later(log):
        return [r for r in log if r.time_ms >= since_ms]

    begins = {
        p: tuple(min((r.offset for r in later(log)), default=RECORDS) for log in (w.source, w.target))
        for p, w in enumerate(worlds)
    }
    audit, _, _ = audited(spark, worlds, since_ms=since_ms, begins=begins)
    assert Counter(audit.counts) == expected_counts(
        [replace(w, source=later(w.source), target=later(w.target)) for w in worlds]
    )


def test_what_is_too_old_to_be_looked_at_supersedes_a_record_like_any_other(spark):
    world = World([Record(0, "0", 2_000, b"k", b"v"), Record(1, "1", 1_000, b"k", b"v")], [], source_end=2)
    world.next_to_copy, world.target = 2, [replace(world.source[1], offset=1)]
    audit, _, _ = audited(spark, [world], since_ms=1_500, begins={0: (0, 2)}, compacted=frozenset({Side.TARGET}))
    assert audit.counts == {Category.SUPERSEDED: 1}


def whole(count=40, start=0):
    """A log whose copy has all of it, and both ends."""
    records = [Record(o, str(o), 1_000 + o, b"k%d" % (o % 7), b"v%d" % o) for o in range(count)]
    return World(records, list(records), source_end=count, next_to_copy=count, target_start=start)


def test_a_copy_with_all_records_is_complete_and_none_is_compared(spark):
    audit, _, reading = audited(spark, [whole(), whole()])
    assert audit.verdict is Verdict.COMPLETE and audit.counts == {Category.COPIED: 80}
    assert len(reading.asked) == 2


def test_only_stretches_that_differ_are_read_again(spark):
    world = whole()
    del world.target[20]
    audit, named, reading = audited(spark, [world], Cut(Equality.ALL, 10, 10))
    assert audit.verdict is Verdict.INCOMPLETE and [n.offset for n in named] == [20]
    again = [(side, ranges[0].start, ranges[0].end) for side, ranges in reading.asked[2:]]
    # To count equal records, and then to name those without a counterpart.
    assert again == 2 * [(Side.SOURCE, 20, 30), (Side.TARGET, 21, 30)]


def test_a_partition_that_agrees_is_not_searched_for_what_was_aborted_in_another(spark):
    quiet, met = whole(), whole()
    for world in (quiet, met):
        world.source[5] = replace(world.source[5], is_aborted=True)
    del quiet.target[5]  # the other's copy stays
    audit, _, reading = audited(spark, [quiet, met])
    assert audit.counts == {Category.COPIED: 78, Category.ABORTED_COPY: 1}
    assert {p for _, ranges in reading.asked[2:] for p in ranges} == {1}


def test_what_differs_by_replays_and_copies_of_aborted_records_alone_is_not_read_again(spark):
    world = whole()
    world.source[15] = replace(world.source[15], is_aborted=True)
    # Stretches of ten records: 5 is copied again, 15 aborted and copied, 25 lost, and 35 stands beside a stranger.
    world.target = [world.source[5], *(r for r in world.source if r.offset != 25), Record(0, "s", 1_035, b"s", b"s")]
    world.target = [replace(r, offset=place) for place, r in enumerate(world.target)]
    held, salt = TopicSums("t", "t", "", "", Cut(Equality.ALL, 10, 10)), new_seed()
    first, named, _ = audited_again(spark, [world], held, salt=salt)
    counts = {Category.COPIED: 38, Category.COPIED_AGAIN: 1, Category.ABORTED_COPY: 1, Category.MISSING: 1}
    assert first.counts == counts | {Category.FOREIGN: 1}
    second, again, reading = audited_again(spark, [world], held, salt=salt)
    assert (second, again) == (first, named)
    asked = {o for side, ranges in reading.asked if side is Side.TARGET for o in range(ranges[0].start, ranges[0].end)}
    assert asked and min(asked) > 20, "neither the first stretch nor the second"
    # The lost copy comes, and a new record that is lost, into a stretch that was settled.
    world.source.append(Record(40, "40", 1_107, b"k", b"late"))
    world.target.append(replace(world.source[25], offset=len(world.target)))
    world.source_end, world.next_to_copy = 41, 41
    third, named, _ = audited_again(spark, [world], held, salt=salt)
    assert third.counts == counts | {Category.COPIED: 39, Category.FOREIGN: 1}
    assert [n.offset for n in named if n.category is Category.MISSING] == [40]


def test_what_a_transaction_that_is_still_open_on_the_source_has_copied_is_not_foreign_and_judged_again(spark):
    world = whole()
    world.source[39] = replace(world.source[39], is_aborted=True)
    held, salt = TopicSums("t", "t", "", "", Cut(Equality.ALL, 10, 10)), new_seed()
    world.source_end = world.next_to_copy = 39
    found, _, _ = audited_again(spark, [world], held, salt=salt, open_on_source=frozenset({0}))
    assert found.counts == {Category.COPIED: 39, Category.NO_ORIGINAL_VISIBLE: 1}
    world.source_end = world.next_to_copy = 40
    found, _, _ = audited_again(spark, [world], held, salt=salt)
    assert found.counts == {Category.COPIED: 39, Category.ABORTED_COPY: 1}


@pytest.mark.parametrize("run", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_log_that_is_audited_as_it_grows_has_the_same_counts_as_one_that_is_audited_once(spark, run):
    dice = Random(new_seed())
    worlds = [replace(w, source_start=0, target_start=0) for w in (some_world(dice) for _ in range(WORLDS))]
    held, salt = TopicSums("t", "t", "", "", CUT), new_seed()
    for share in (0.4, 0.8, 1) if run else (0.6, 1):
        grown = [_until(w, int(share * w.source_end), int(share * len(w.target))) for w in worlds]
        found, named, _ = audited_again(spark, grown, held, salt=salt)
        if run or share == 1:
            once, all_named, _ = audited(spark, grown)
            assert found.counts == once.counts and set(named) == set(all_named)


def _until(world, source_end, copies):
    target = world.target[:copies]
    copied_to = max((int(r.identity.split()[0]) for r in target if r.identity[0].isdigit()), default=-1) + 1
    end = max(source_end, copied_to)
    source = [r for r in world.source if r.offset < end]
    return replace(world, source=source, target=target, source_end=end, next_to_copy=None)


def test_of_equal_records_only_how_many_is_told(spark):
    world = whole()
    for offset in (10, 11, 12):
        world.source[offset] = Record(offset, "x", 1_010, b"k", b"v")
    world.target = [r for r in world.source if r.offset != 11]
    audit, _, _ = audited(spark, [world])
    assert audit.counts == {Category.COPIED: 39, Category.MISSING: 1}


def test_what_was_shown_by_no_pair_of_records_is_never_called_missing(spark):
    world = whole()
    del world.target[20]
    audit, _, _ = audited(spark, [world], lasts=False)
    assert audit.counts == {Category.COPIED: 39, Category.MAYBE_COPIED: 1} and audit.verdict is Verdict.NOT_PROVEN


def test_what_lies_beyond_an_open_transaction_on_the_target_may_have_been_copied(spark):
    world = whole()
    del world.target[30:]
    audit, _, _ = audited(spark, [world], open_on_target=frozenset({0}))
    assert audit.counts == {Category.COPIED: 30, Category.NOT_COPIED_YET: 10} and audit.verdict is Verdict.NOT_PROVEN


def test_of_a_plan_each_group_is_told_what_it_lacks_and_what_no_group_is_owed_is_not_read(spark):
    world = whole()
    # The only copy of 15 lies before all that a group reads, and that of 5 concerns none.
    world.target = [r for r in world.source if r.offset not in (5, 15, 20, 30)]
    world.target = sorted([*world.target, replace(world.source[15], offset=5)], key=lambda r: r.offset)
    owed = {"begins": {0: (10, 10)}, "owed_from": frozenset({(0, 10), (0, 25), (0, 40)})}
    world.target_start = 4
    audit, named, reading = audited(spark, [world], **owed)
    assert audit.counts == {Category.COPIED: 27, Category.MISSING: 3} and [n.offset for n in named] == [15, 20, 30]
    assert audit.lacks == (Lack(0, 10, Category.MISSING, 3, 15, 30), Lack(0, 25, Category.MISSING, 1, 30, 30))
    assert {ranges[0].start for _, ranges in reading.asked} >= {10} and all(r[0].start >= 10 for _, r in reading.asked)
    # Retention took copies that a group would have read.
    world.target_start = 12
    audit, _, _ = audited(spark, [world], **owed)
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


def test_out_of_order_is_what_identities_say_and_doublings_are_not(spark):
    dice = Random(new_seed())
    worlds = [some_world(dice) for _ in range(WORLDS)]
    for world in worlds[1:]:
        for _ in range(3):
            one, other = dice.choices(range(len(world.target)), k=2) if world.target else (0, 0)
            if one != other:
                here, there = world.target[one], world.target[other]
                world.target[one] = replace(there, offset=here.offset)
                world.target[other] = replace(here, offset=there.offset)
    topic, found = pinned(worlds), Found([])
    audit = with_order(read(spark, worlds), topic, TopicSums("t", "t", "", "", CUT), TopicAudit("t", "t", None), found)
    late = {(n.partition, n.offset) for n in found.records}
    assert late == {(p, offset) for p, world in enumerate(worlds) for offset in late_by_identity(world)}
    assert audit.counts == {Category.OUT_OF_ORDER: len(late)} and len(late) == len(found.records) > WORLDS


class Refusing(LogReading):
    """Reads nothing."""

    def records(self, *asked):
        raise ClusterError("Topic t on A could not be read: no.")


def test_what_is_missing_is_told_though_the_order_could_not_be_looked_at(spark):
    short = TopicAudit("t", "t", Equality.ALL, {Category.COPIED: 39, Category.MISSING: 1})
    reading, topic = Refusing(spark, defaultdict(lambda: None), 1), pinned([whole()])
    audit = with_order(reading, topic, TopicSums("t", "t", "", "", CUT), short, Found([]))
    assert audit.verdict is Verdict.INCOMPLETE and audit.counts == short.counts
    assert audit.unproven == ("the order of copies was not looked at: Topic t on A could not be read: no.",)


def test_a_cleaner_takes_superseded_copies_and_perhaps_tombstones(spark):
    records = [Record(o, str(o), 1_000 + o, b"k%d" % (o % 4), b"v%d" % o) for o in range(12)]
    # The newest of k3 is a tombstone, and a stranger wrote k2 to the target.
    records[11] = Record(11, "11", 1_011, b"k3", None)
    target = [Record(20, "8", 1_008, b"k0", b"v8"), Record(21, "stranger", 1_500, b"k2", b"s")]
    world = World(records, target, source_end=12, target_start=0, next_to_copy=12)
    audit, named, _ = audited(spark, [world], compacted=frozenset({Side.TARGET}))
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
    found, _ = judged(None, pinned([], unproven=("partition 1 is not visible",)), held, True, Found([]))
    assert (found.counts, found.verdict) == ({Category.COPIED: 2}, Verdict.NOT_PROVEN)
