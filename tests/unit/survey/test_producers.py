"""Producers that still write: two readings of the log ends, the check, and what an accepted writer means to apply."""

from migrate.model import Decision, Failure, Level, LogRange, TopicPartition
from migrate.survey.producers import Growth, growth_of
from tests.fakes import FakeClock
from tests.unit.checkscene import found, row
from tests.unit.planscene import planned, rows_of, world

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
ROWS = (row("g", "t", 0), row("g", "t", 1), row("h", "u", 0))
STILL = Growth(0, 15.0)
LOST = Failure("NOT_LEADER_OR_FOLLOWER", "the leader has moved")


def told(**growth):
    read = {T0: STILL, T1: STILL, U0: STILL} | {TopicPartition(k[0], int(k[1])): v for k, v in growth.items()}
    return found("producers-stopped", ROWS, growth=read)


def verdicts(results):
    return {r.subject: (r.level, r.counts_as) for r in results}


def test_logs_that_stand_still_pass_in_one_line_and_say_for_how_long():
    (result,) = told()
    assert (result.level, result.subject) == (Level.PASS, "2 topics")
    assert result.expected == "no record written to it for 15 s"
    at_once = Growth(0, 0.2)
    (result,) = told(t0=at_once, t1=at_once, u0=at_once)
    assert (result.level, result.counts_as) == (Level.NOT_VISIBLE, Level.BLOCK), "two readings at the same time"


def test_a_topic_that_is_written_to_blocks_alone_and_says_where_and_how_fast():
    results = told(t1=Growth(1230, 15.0))
    assert verdicts(results) == {"t": (Level.BLOCK,) * 2, "1 topic": (Level.PASS,) * 2}
    assert results[0].seen == "1,230 offsets in 15 s, about 82/s, on 1 partition (1)"
    assert verdicts(told(u0=Growth(-5, 15.0)))["u"] == (Level.BLOCK, Level.BLOCK), "one that became shorter"


def test_a_log_that_was_not_read_twice_is_never_a_pass():
    assert growth_of({T0: LOST, T1: 7}, {T0: 3}, 2.0) == {
        T0: LOST,
        T1: Failure("NO_ANSWER", "the partition is missing from the answer"),
    }
    assert verdicts(told(u0=LOST))["u"] == (Level.NOT_VISIBLE, Level.BLOCK)
    nothing = found("producers-stopped", ROWS, growth={})
    assert verdicts(nothing) == {"t": (Level.NOT_VISIBLE, Level.BLOCK), "u": (Level.NOT_VISIBLE, Level.BLOCK)}


def test_plan_reads_the_ends_a_settle_time_apart_and_blocks_the_topics_groups():
    source, target, mirror = world()

    class Clock(FakeClock):
        def wait(self, seconds):
            super().wait(seconds)
            source.ranges[T1] = LogRange(0, 130)

    plan = planned(source, target, mirror, clock=Clock())
    assert [(c.check, c.subject) for c in plan.blocks()] == [("producers-stopped", "t")]
    assert "30 offsets in 15 s, about 2.0/s" in plan.blocks()[0].seen
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 51, "producers-stopped")
    assert rows_of(plan)["h", "u", 0][0] is Decision.SET


def test_the_ends_are_read_a_whole_settle_time_after_they_were_pinned():
    source, target, mirror = world()
    clock = FakeClock()

    def slow_to_pin(call):
        if call == "log_ranges" and not source.calls[call]:
            clock.waited += 10.0

    source.on_call = slow_to_pin
    plan = planned(source, target, mirror, clock=clock)
    (passed,) = [c for c in plan.header.checks if c.check == "producers-stopped"]
    assert passed.expected == "no record written to it for 15 s" and source.calls["high_watermarks"] == 2
