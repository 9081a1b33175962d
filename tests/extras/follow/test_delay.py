"""Delays: from the commit where its time is known for sure, else from its first seen, and never for old commits."""

from migrate.extras.follow.delay import Delay, DelaySum, DelayWatch, made_at
from migrate.model import Failure, TopicPartition
from migrate.survey.offsets_topic import CommitTopic, GroupKind, GroupRecord, PastCommit
from tests.builders import make_row

PLACE = TopicPartition("orders", 0)
NOT_READ = Failure("NOT_ASKED", "not asked")


def record(made_ms: int, offset: int | None = None) -> GroupRecord:
    made_on = {} if offset is None else {PLACE: CommitTopic(offset, "id")}
    return GroupRecord(GroupKind.CLASSIC, "consumer", None, {PLACE: made_ms}, made_on=made_on)


def test_what_was_there_at_the_first_look_is_of_any_age_and_measures_nothing():
    watch = DelayWatch()
    assert watch.look([make_row()], {"billing": record(5)}, 1000) == 1
    assert watch.reached([make_row()], 9000) == ()


def test_a_commit_that_changed_waits_from_its_own_time_until_it_has_reached_the_target_once():
    watch = DelayWatch()
    watch.look([make_row()], NOT_READ, 1000)
    moved = make_row(source_committed=800)
    assert watch.look([moved], {"billing": record(4000)}, 5000) == 1
    assert watch.look([moved], {"billing": record(4000)}, 6000) == 0
    assert watch.reached([moved], 9000) == (Delay(5.0, False),) and watch.reached([moved], 9500) == ()


def test_without_its_time_a_commit_waits_from_the_look_that_saw_it_first():
    watch = DelayWatch()
    watch.look([make_row()], NOT_READ, 1000)
    moved = make_row(source_committed=800)
    watch.look([moved], NOT_READ, 5000)
    watch.look([moved], NOT_READ, 7000)
    assert watch.reached([moved], 9000) == (Delay(4.0, True),)


def test_a_record_that_may_be_of_a_later_commit_tells_nothing():
    row = make_row(source_committed=800)
    assert made_at(row, record(6000), 5000) is None and made_at(row, record(5000), 5000) == 5000
    assert made_at(row, record(6000, 800), 5000) == 6000 and made_at(row, record(4000, 801), 5000) is None
    assert made_at(row, GroupRecord(GroupKind.SIMPLE), 5000) is None


def test_an_earlier_one_of_the_newest_commits_tells_its_own_time():
    newest = GroupRecord(
        GroupKind.CLASSIC, "consumer", None, {PLACE: 6000}, made_on={PLACE: CommitTopic(803, "id")},
        newest={PLACE: (PastCommit(4500, 800), PastCommit(5500, 801), PastCommit(6000, 803))},
    )  # fmt: skip
    assert made_at(make_row(source_committed=801), newest, 5000) == 5500
    assert made_at(make_row(source_committed=802), newest, 5000) is None


def test_an_offset_that_was_committed_again_and_again_was_made_when_it_came_first():
    """Java's consumer commits every five seconds, moved or not: the time that it waited would be left out."""
    newest = tuple(PastCommit(4000 + n, offset) for n, offset in enumerate([7, 9, 9, 9, 7, 7]))
    waiting = GroupRecord(GroupKind.CLASSIC, "consumer", None, {PLACE: 4005}, newest={PLACE: newest})
    assert made_at(make_row(source_committed=9), waiting, 5000) == 4001
    assert made_at(make_row(source_committed=7), waiting, 5000) == 4004


def test_the_clock_of_a_broker_that_is_ahead_makes_no_delay_below_nothing():
    watch = DelayWatch()
    watch.look([], NOT_READ, 0)
    watch.look([make_row()], {"billing": record(9000, 700)}, 5000)
    assert watch.reached([make_row()], 8000) == (Delay(0.0, False),)


def test_delays_add_up_to_ranks_and_take_no_memory_for_each():
    total = DelaySum()
    assert total.document() == {"p50": None, "p99": None, "max": None, "rows": 0, "from_first_seen": 0}
    total.add(Delay(n / 10, n == 1) for n in range(1, 101))
    assert total.document() == {"p50": 5.0, "p99": 9.9, "max": 10.0, "rows": 100, "from_first_seen": 1}
    total.add([Delay(10.0**9, False)])
    assert total.document()["max"] == 86_400 and len(total.tenths) == 101
