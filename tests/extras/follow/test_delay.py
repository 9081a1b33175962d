"""Delays: from the commit where its time is known for sure, else from its first seen, and never for old commits."""

import pytest

from migrate.extras.follow.delay import Delay, DelaySum, DelayWatch, made_at
from migrate.model import Failure, TopicPartition
from migrate.survey.offsets_topic import CommitTopic, GroupKind, GroupRecord, PastCommit
from tests.builders import make_row

PLACE = TopicPartition("orders", 0)


def record(made_ms: int, offset: int | None = None, newest: tuple[tuple[int, int], ...] = ()) -> GroupRecord:
    """The newest commit of a group and where it was made, and the times and offsets of some before it."""
    made_on = {} if offset is None else {PLACE: CommitTopic(offset, "id")}
    past = {PLACE: tuple(PastCommit(*commit) for commit in newest)} if newest else {}
    return GroupRecord(GroupKind.CLASSIC, "consumer", None, {PLACE: made_ms}, made_on=made_on, newest=past)


@pytest.mark.parametrize(("records", "delay"), [
    ({"billing": record(4000)}, Delay(5.0, False)),
    ({"billing": record(9999, 800)}, Delay(0.0, False)),  # the clock of a broker that is ahead
    (Failure("NOT_ASKED", "not asked"), Delay(4.0, True)),
])  # fmt: skip
def test_a_commit_that_changed_since_the_first_look_waits_until_it_has_reached_the_target_once(records, delay):
    watch, moved = DelayWatch(), make_row(source_committed=800)
    assert watch.look([make_row()], records, 1000) == 1
    assert watch.reached([make_row()], 2000) == (), "what was there at the first look is of any age"
    assert [watch.look([moved], records, at_ms) for at_ms in (5000, 7000)] == [1, 0]
    assert [watch.reached([moved], at_ms) for at_ms in (9000, 9500)] == [(delay,), ()]


EARLIER = record(6000, 803, newest=((4500, 800), (5500, 801), (6000, 803)))
# Java's consumer commits every five seconds, moved or not: the time that it waited would be left out.
AGAIN_AND_AGAIN = record(4005, newest=((4000, 7), (4001, 9), (4002, 9), (4003, 9), (4004, 7), (4005, 7)))


@pytest.mark.parametrize(("committed", "told", "made_ms"), [
    (800, record(6000), None), (800, record(5000), 5000),
    (800, record(6000, 800), 6000), (800, record(4000, 801), None),
    (800, GroupRecord(GroupKind.SIMPLE), None),
    (801, EARLIER, 5500), (802, EARLIER, None),
    (9, AGAIN_AND_AGAIN, 4001), (7, AGAIN_AND_AGAIN, 4004),
])  # fmt: skip
def test_a_record_tells_when_a_commit_came_first_and_nothing_where_it_may_be_of_a_later_one(committed, told, made_ms):
    assert made_at(make_row(source_committed=committed), told, 5000) == made_ms


def test_delays_add_up_to_ranks_and_take_no_memory_for_each():
    total = DelaySum()
    assert total.document() == {"p50": None, "p99": None, "max": None, "rows": 0, "from_first_seen": 0}
    total.add(Delay(n / 10, n == 1) for n in range(1, 101))
    assert total.document() == {"p50": 5.0, "p99": 9.9, "max": 10.0, "rows": 100, "from_first_seen": 1}
    total.add([Delay(10.0**9, False)])
    assert total.document()["max"] == 86_400 and len(total.tenths) == 101
