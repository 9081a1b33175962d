"""The checks on the records of a plan's topics, and how their blocks reach the rows."""

import pytest

from migrate.checks import checklist
from migrate.checks.checklist import parse_waiver
from migrate.errors import UsageError
from migrate.match.equality import Equality
from migrate.match.protocol import Matched, Tail, Unmatched, Why, WhyUnmatched
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.flow import ANY
from migrate.model import Decision, Failure, Level, LogRange, Method, Scope, TopicPartition
from migrate.plan.rows import with_blocks
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, Waiver
from migrate.survey.survey import Logs
from tests.fakes import FakeComparer
from tests.unit.checkscene import blocked, compared, found, levels, row
from tests.unit.planscene import planned, rows_of, world

U0 = TopicPartition("u", 0)
ROWS = (row("g", "t", 0), row("g", "t", 1), row("h", "u", 0))
WAITING, UNKNOWN = Tail(17), Tail(None)


def drained(**changes):
    return {r.subject: (r.level, r.counts_as) for r in found("not-drained", ROWS, **changes)}


def test_a_missing_target_topic_blocks_only_the_groups_on_it():
    rows = (row("g", "t", target_partitions=None, target_log=None), row("h", "u"))
    assert levels("target-topic-exists", rows=rows, target_topics={"A.u": 1}) == {"t": Level.BLOCK}
    assert blocked(rows=rows, target_topics={"A.u": 1}) == {"g"}


def test_fewer_partitions_on_the_target_block_and_more_warn():
    assert levels("target-partitions", source_topics={"t": 3, "u": 1})["t"] is Level.BLOCK
    assert levels("target-partitions", target_topics={"A.t": 3, "A.u": 1})["t"] is Level.WARN
    assert blocked(source_topics={"t": 3, "u": 1}) == {"g"}


def test_one_partition_that_is_not_copied_blocks_its_topic_and_those_that_are_pass_in_one_line():
    assert drained() == {"2 topics": (Level.PASS, Level.PASS)}
    assert drained(comparison=compared(t1=WAITING)) == {"t": (Level.BLOCK,) * 2, "1 topic": (Level.PASS,) * 2}
    assert drained(source_down=True, comparison=compared(t0=WAITING)) == {}, "nobody asks"


def test_not_knowing_counts_as_a_block_and_says_why_mm2s_positions_are_not_known():
    assert drained(comparison=compared(t1=UNKNOWN))["t"] == (Level.NOT_VISIBLE, Level.BLOCK)
    no_position = Positions(unknown="there is no topic x on B")
    result = found("not-drained", ROWS, comparison=compared(t1=UNKNOWN), positions=no_position)[0]
    assert "there is no topic x on B" in result.seen


def test_where_nobody_knows_what_is_copied_the_waiver_is_named_and_not_where_it_would_give_up_what_is_left():
    unknown, left = (found("not-drained", ROWS, comparison=compared(t0=tail))[0] for tail in (UNKNOWN, WAITING))
    assert "--accept not-drained" in unknown.todo and "--accept" not in left.todo and "restart it" in left.todo


def test_a_partition_that_nobody_judged_is_no_pass():
    results = found("not-drained", ROWS[:1], logs=Logs({}, {}))
    assert [(r.level, r.counts_as) for r in results] == [(Level.NOT_VISIBLE, Level.BLOCK)]


def test_partitions_without_a_translation_do_not_count():
    beyond = row("g", "t", 1, source_log=LogRange(0, 10))
    assert beyond.target_offset is None
    results = found("not-drained", (ROWS[0], beyond), comparison=compared(t1=WAITING))
    assert [r.level for r in results] == [Level.PASS]


def test_a_rehearsal_blocks_the_undrained_topics_groups_and_shows_the_translation():
    comparer = FakeComparer(tails={("t", 1): Tail(3)})
    source, target, mirror = world()
    mirror.last_copied_offset = {}
    plan = planned(source, target, mirror, comparer=comparer)
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 55, "not-drained")
    assert rows_of(plan)["h", "u", 0] == (Decision.SET, 100, "proven")
    waived = planned(
        source, target, mirror, comparer=comparer, policies=Policies(waivers=(Waiver("not-drained", "t"),))
    )
    assert waived.is_clean()


def test_an_open_transaction_on_the_source_is_not_drained():
    source, target, mirror = world()
    source.watermarks[U0] = 104
    plan = planned(source, target, mirror, comparer=FakeComparer())
    assert [c.subject for c in plan.blocks()] == ["u"] and "4 beyond its last stable offset" in plan.blocks()[0].seen


def test_a_row_with_owed_records_that_have_no_copy_is_blocked_and_its_group_with_it():
    places = {("t", 0, 55): Matched(57, Why.PROVEN, 0, missing_on_target=28)}
    plan = planned(*world(), comparer=FakeComparer(places))
    assert rows_of(plan) == {
        ("g", "t", 0): (Decision.BLOCK, 57, "missing-on-target"),
        ("g", "t", 1): (Decision.BLOCK, 60, "group-blocked"),
        ("h", "u", 0): (Decision.SET, 100, "proven"),
    }
    assert "28 owed records have none" in plan.blocks()[0].seen and plan.blocks()[0].scope is Scope.ROW


@pytest.mark.parametrize(("subject", "covers"), [(None, True), ("g/t/0", True), ("g/t/1", False)])
def test_missing_records_can_be_accepted_by_name(subject, covers):
    places = {("t", 0, 55): Matched(57, Why.PROVEN, 0, missing_on_target=28)}
    policies = Policies(waivers=(Waiver("missing-on-target", subject),))
    plan = planned(*world(), comparer=FakeComparer(places), policies=policies)
    assert plan.is_clean() is covers
    assert [c.accepted for c in plan.header.checks if c.check == "missing-on-target"] == [covers]


def test_rows_of_which_nothing_is_missing_pass_and_where_none_was_compared_that_is_not_visible():
    (unread,) = found("missing-on-target", ROWS)
    assert (unread.level, unread.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    assert "of 3 rows: 3 not compared" in unread.seen
    compared = row("g", "t", answer=Matched(57, Why.PROVEN, 0))
    assert [(r.level, r.subject) for r in found("missing-on-target", (compared,))] == [(Level.PASS, "1 row")]
    beside = found("missing-on-target", (compared, ROWS[1]))
    assert [r.level for r in beside] == [Level.PASS, Level.NOT_VISIBLE] and "of 1 row: 1 not compared" in beside[1].seen


def test_of_rows_that_were_not_read_to_the_end_nobody_says_that_nothing_is_missing():
    limited = row("g", "t", answer=Matched(57, Why.NOT_ALL_READ, 9, lower=(40, 40)))
    (unread,) = found("missing-on-target", (limited,))
    assert (unread.level, unread.counts_as) == (Level.NOT_VISIBLE, Level.WARN) and "of 1 row: 1 not-all" in unread.seen
    by_time = row("g", "t", answer=Matched(57, Why.LEAST_TIMESTAMP, 9))
    assert [r.level for r in found("missing-on-target", (by_time,))] == [Level.NOT_VISIBLE]
    done = limited._replace(source_committed=limited.source_log_end)
    assert not found("missing-on-target", (done,)), "it is owed nothing"
    compared = row("g", "t", 1, answer=Matched(57, Why.PROVEN, 0))
    assert [r.level for r in found("missing-on-target", (limited, compared))] == [Level.PASS, Level.NOT_VISIBLE]


@pytest.mark.parametrize("why", WhyUnmatched)
def test_beside_rows_that_were_compared_those_that_were_not_do_not_pass(why):
    compared, not_compared = row("g", "t", answer=Matched(57, Why.PROVEN, 0)), row("g", "t", 1, answer=Unmatched(why))
    found_ = found("missing-on-target", (compared, not_compared))
    assert [r.level for r in found_] == [Level.PASS, Level.NOT_VISIBLE] and f"1 {why}" in found_[1].seen
    done = not_compared._replace(source_committed=not_compared.source_log_end)
    assert [r.level for r in found("missing-on-target", (compared, done))] == [Level.PASS], "it is owed nothing"


@pytest.mark.parametrize("equality", [Equality.WITHOUT_TIMESTAMP, Equality.KEY_AND_VALUE])
def test_under_log_append_time_a_row_on_an_unproven_sync_is_blocked(equality):
    unguarded = row("g", "t", answer=Unmatched(WhyUnmatched.MATCH_LIMIT), equality=equality)
    assert [r.subject for r in found("timestamps-not-kept", (unguarded,))] == ["g/t/0"]
    laid = with_blocks(PlanRows.of([unguarded]), {}, checklist.blocked_rows(found("timestamps-not-kept", (unguarded,))))
    assert (laid[0].decision, laid[0].reason, laid[0].target_offset) == (Decision.BLOCK, "timestamps-not-kept", 41)


@pytest.mark.parametrize(
    ("answer", "equality"),
    [
        (Unmatched(WhyUnmatched.MATCH_LIMIT, lower=(40, 40)), Equality.KEY_AND_VALUE),
        (Unmatched(WhyUnmatched.MATCH_LIMIT, guard_offset=30), Equality.ALL),
        (Unmatched.not_readable("X"), None),
        (Matched(41, Why.LOOK_ALIKES, 3), Equality.KEY_AND_VALUE),
        (None, None),
    ],
)
def test_a_proven_sync_a_kept_timestamp_or_a_match_is_not_blocked_by_log_append_time(answer, equality):
    assert found("timestamps-not-kept", (row("g", "t", answer=answer, equality=equality),)) == []


def test_a_row_at_an_unproven_sync_that_nothing_guards_is_blocked_until_it_is_accepted():
    unread = row("g", "t", answer=Unmatched.not_readable("X"))
    assert unread.lower_kind == "sync"
    (result,) = found("sync-unguarded", (unread,))
    assert (result.subject, result.level) == ("g/t/0", Level.BLOCK)
    for guarded in (
        Unmatched(WhyUnmatched.MATCH_LIMIT, guard_offset=30),
        Unmatched(WhyUnmatched.NOT_READABLE, lower=(40, 40), error_code="X"),
    ):
        assert not found("sync-unguarded", (row("g", "t", answer=guarded),))


def test_where_timestamps_alone_should_place_a_row_and_are_not_kept_it_is_blocked_whatever_else_is_known():
    for equality in (Equality.KEY_AND_VALUE, None):
        by_time = row("g", "t", answer=Unmatched(WhyUnmatched.TIMESTAMPS_NOT_KEPT), equality=equality)
        (result,) = found("timestamps-not-kept", (by_time,))
        assert result.subject == "g/t/0" and "--by records" in result.todo


BY_TIME = {("t", 0, 55): Matched(50, Why.LEAST_TIMESTAMP, 9), ("t", 1, 60): Matched(0, Why.LEAST_TIMESTAMP, 9)}


def with_open_transaction(comparer=None, *accepted):
    source, target, mirror = world()
    for partition in (0, 1):
        source.watermarks[TopicPartition("t", partition)] = 104
    policies = Policies(waivers=tuple(map(parse_waiver, accepted)))
    return planned(source, target, mirror, comparer=comparer or FakeComparer(BY_TIME), policies=policies)


def test_beside_an_open_transaction_on_the_source_to_accept_that_it_is_not_drained_lets_no_row_by_timestamps_pass():
    plan = with_open_transaction(None, "not-drained")
    opened = [check for check in plan.header.checks if check.check == "open-transaction"]
    # Nothing is passed over at the log's start.
    assert [(check.subject, check.level) for check in opened] == [("g/t/0", Level.BLOCK)]
    assert rows_of(plan)["g", "t", 0][0] is Decision.BLOCK
    accepted = with_open_transaction(None, "not-drained", "open-transaction:g/t/0")
    assert rows_of(accepted)["g", "t", 0] == (Decision.SET, 50, "least-timestamp")
    # Rows that records place are not about timestamps.
    by_records = with_open_transaction(FakeComparer(), "not-drained")
    assert not [check for check in by_records.header.checks if check.check == "open-transaction"]
    assert rows_of(by_records)["g", "t", 0][0] is Decision.SET


def test_where_nobody_tells_whether_a_transaction_is_open_that_counts_as_one_that_is():
    source, target, mirror = world()
    source.watermarks[TopicPartition("t", 0)] = Failure("_TIMED_OUT", "no answer")
    plan = planned(source, target, mirror, comparer=FakeComparer(BY_TIME))
    opened = [check.subject for check in plan.header.checks if check.check == "open-transaction"]
    assert opened == ["g/t/0"]


def test_behind_another_replicator_it_is_not_mm2_that_has_to_copy_or_has_lost_records():
    others = {"replicator": ANY}
    waiting = found("not-drained", ROWS, comparison=compared(t0=WAITING), **others)[0]
    assert "et the replicator copy the rest" in waiting.todo and "MM2" not in waiting.todo
    unknown = found("not-drained", ROWS, comparison=compared(t0=UNKNOWN), **others)[0]
    assert unknown.seen == "partition 0: the records do not show it"


@pytest.mark.parametrize("check", ["missing-on-target", "not-drained", "open-transaction", "timestamps-not-kept"])
def test_each_of_them_can_be_waived_by_name(check):
    assert parse_waiver(f"{check}:g/t/0") == Waiver(check, "g/t/0")
    with pytest.raises(UsageError, match=f"{check}x"):
        parse_waiver(f"{check}x")


def test_a_target_topic_that_others_write_to_is_named():
    (foreign,) = found("target-topic-dedicated", comparison=compared(t0=Tail(0, foreign=7)))
    assert foreign.level is Level.WARN and foreign.subject == "t"
    assert foreign.seen.startswith("7 records near the end of A.t on B") and foreign.seen.endswith("writes there")


@pytest.mark.parametrize(("perhaps_copies", "counts_as"), [(7, Level.PASS), (3, Level.WARN)])
def test_what_may_be_copies_of_aborted_records_is_nobody_elses_and_more_than_these_explain_is_never_silent(
    perhaps_copies, counts_as
):
    (unclear,) = found(
        "target-topic-dedicated", comparison=compared(t0=Tail(0, foreign=7, perhaps_copies=perhaps_copies))
    )
    assert (unclear.level, unclear.counts_as) == (Level.NOT_VISIBLE, counts_as)
    assert "somebody else" not in unclear.seen and f"up to {perhaps_copies} may be" in unclear.seen


@pytest.mark.parametrize(
    ("equality", "levels"), [(Equality.WITHOUT_TIMESTAMP, [Level.NOT_VISIBLE]), (Equality.ALL, [Level.PASS])]
)
def test_on_a_failback_unread_records_that_only_look_like_others_do_not_pass_where_no_timestamp_tells(equality, levels):
    alike = row("g", "t", answer=Matched(57, Why.LOOK_ALIKES, 9), equality=equality)
    assert [r.level for r in found("unread-on-target-only", (alike,), failback=True)] == levels
    done = alike._replace(source_committed=alike.source_log_end)
    assert [r.level for r in found("unread-on-target-only", (done,), failback=True)] == [Level.PASS]


@pytest.mark.parametrize(
    "changed", [{"target_offset": None}, {"source_committed": None}, {"method": Method.EXPLICIT}], ids=str
)
def test_on_a_failback_a_row_without_a_translated_commit_is_not_asked_for_its_unread_records(changed):
    compared = row("g", "t", answer=Matched(57, Why.PROVEN, 9))
    rows = (compared, row("h", "u")._replace(**changed))
    assert [r.level for r in found("unread-on-target-only", rows, failback=True)] == [Level.PASS]
