"""The checks on the records of a plan's topics and on single commits, and how their blocks reach the rows."""

import pytest

from migrate.match.equality import Equality
from migrate.match.protocol import Matched, Tail, Unmatched, Why, WhyUnmatched
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.flow import ANY
from migrate.model import Commit, Decision, Failure, Level, LogRange, Method, Scope, TopicPartition
from migrate.survey.survey import Logs
from tests.fakes import FakeComparer
from tests.unit.checkscene import blocked, compared, found, levels, row, verdicts, waiving
from tests.unit.planscene import accepting, checks_of, planned, results_of, rows_of, world

T0 = TopicPartition("t", 0)
ROWS = (row("g", "t", 0), row("g", "t", 1), row("h", "u", 0))
WAITING, UNKNOWN = Tail(17), Tail(None)
PASS, BLOCK = (Level.PASS, Level.PASS), (Level.BLOCK, Level.BLOCK)
UNSEEN_WARN, UNSEEN_BLOCK = (Level.NOT_VISIBLE, Level.WARN), (Level.NOT_VISIBLE, Level.BLOCK)


def answered(answer, partition=0, **changes):
    return row("g", "t", partition, answer=answer, **changes)


def at_end(made):
    """The same row, of a group that is owed nothing."""
    return made._replace(source_committed=made.source_log_end)


PROVEN = answered(Matched(57, Why.PROVEN, 0))


def test_a_missing_target_topic_blocks_only_the_groups_on_it():
    rows = (row("g", "t", target_partitions=None, target_log=None), row("h", "u"))
    assert levels("target-topic-exists", rows, target_topics={"A.u": 1}) == {"t": Level.BLOCK}
    assert blocked(rows, target_topics={"A.u": 1}) == {"g"}


def test_fewer_partitions_on_the_target_block_more_warn_and_how_many_the_source_has_may_not_be_known():
    assert levels("target-partitions", source_topics={"t": 3, "u": 1})["t"] is Level.BLOCK
    assert levels("target-partitions", target_topics={"A.t": 3, "A.u": 1})["t"] is Level.WARN
    assert blocked(source_topics={"t": 3, "u": 1}) == {"g"}
    (result,) = found("target-partitions", ROWS[:1], source_topics={})
    assert (result.level, result.counts_as) == UNSEEN_WARN
    assert result.seen == "how many A has is not known of t" and "Find out how many there were." in result.todo
    assert verdicts("target-partitions", source_topics={"u": 1}) == {"A": UNSEEN_WARN, "1 topic": PASS}


def drained(*rows, **changes):
    return verdicts("not-drained", rows or ROWS, **changes)


def test_one_partition_that_is_not_copied_blocks_its_topic_and_those_that_are_pass_in_one_line():
    assert drained() == {"2 topics": PASS}
    assert drained(comparison=compared(t1=WAITING)) == {"t": BLOCK, "1 topic": PASS}
    assert drained(source_down=True, comparison=compared(t0=WAITING)) == {}, "nobody asks"
    assert list(drained(ROWS[0], logs=Logs({}, {})).values()) == [UNSEEN_BLOCK], "nobody judged it"
    beyond = row("g", "t", 1, source_log=LogRange(0, 10))
    assert beyond.target_offset is None
    assert drained(ROWS[0], beyond, comparison=compared(t1=WAITING)) == {"1 topic": PASS}, "it has no translation"


def test_not_knowing_counts_as_a_block_and_says_why_and_names_the_waiver_where_it_gives_up_nothing_that_is_left():
    tail = {"comparison": compared(t1=UNKNOWN)}
    assert drained(**tail)["t"] == UNSEEN_BLOCK
    unknown = found("not-drained", ROWS, **tail, positions=Positions(unknown="there is no topic x on B"))[0]
    assert "there is no topic x on B" in unknown.seen and "--accept not-drained" in unknown.todo
    left = found("not-drained", ROWS, comparison=compared(t0=WAITING))[0]
    assert "--accept" not in left.todo and "restart it" in left.todo
    # Behind another replicator it is not MM2 that has to copy or has lost records.
    left = found("not-drained", ROWS, comparison=compared(t0=WAITING), replicator=ANY)[0]
    assert "et the replicator copy the rest" in left.todo and "MM2" not in left.todo
    assert found("not-drained", ROWS, **tail, replicator=ANY)[0].seen == "partition 1: the records do not show it"


def test_a_row_with_owed_records_that_have_no_copy_is_blocked_and_its_group_with_it_until_accepted_by_name():
    comparer = FakeComparer({("t", 0, 55): Matched(57, Why.PROVEN, 0, missing_on_target=28)})
    plan = planned(*world(), comparer=comparer)
    assert rows_of(plan) == {
        ("g", "t", 0): (Decision.BLOCK, 57, "missing-on-target"),
        ("g", "t", 1): (Decision.BLOCK, 60, "group-blocked"),
        ("h", "u", 0): (Decision.SET, 100, "proven"),
    }
    assert "28 owed records have none" in plan.blocks()[0].seen and plan.blocks()[0].scope is Scope.ROW
    for subject, covers in ((None, True), ("g/t/0", True), ("g/t/1", False)):
        plan = planned(*world(), comparer=comparer, **waiving("missing-on-target", subject))
        assert plan.is_clean() is covers
        assert [c.accepted for c in results_of(plan, "missing-on-target")] == [covers]


def missing(*rows):
    return {r.subject: (r.level, r.counts_as, r.seen.rpartition("of ")[2]) for r in found("missing-on-target", rows)}


def test_rows_of_which_nothing_is_missing_pass_and_where_not_all_was_compared_that_is_not_visible():
    passed = {"1 row": (*PASS, "none is missing")}
    assert missing(PROVEN) == passed
    assert missing(*ROWS) == {"B": (*UNSEEN_WARN, "3 rows: 3 not compared")}
    others = [answered(Unmatched(why), 1) for why in WhyUnmatched]
    others += [answered(Matched(57, why, 9), 1) for why in (Why.NOT_ALL_READ, Why.LEAST_TIMESTAMP)]
    for other in others:
        unread = {"B": (*UNSEEN_WARN, f"1 row: 1 {other.why}")}
        assert missing(other) == unread and missing(PROVEN, other) == passed | unread
        assert "B" not in missing(PROVEN, at_end(other)), "it is owed nothing"
    assert missing(at_end(others[-1])) == {}


LIMITED, UNREADABLE = Unmatched(WhyUnmatched.MATCH_LIMIT), Unmatched.not_readable("X")
NO_TIME = Unmatched(WhyUnmatched.TIMESTAMPS_NOT_KEPT)


@pytest.mark.parametrize(("answer", "equality", "way"), [
    (LIMITED, Equality.WITHOUT_TIMESTAMP, "--match-limit"),
    (LIMITED, Equality.KEY_AND_VALUE, "--match-limit"),
    # A proven sync, a kept timestamp or a match.
    (Unmatched(WhyUnmatched.MATCH_LIMIT, lower=(40, 40)), Equality.KEY_AND_VALUE, ""),
    (Unmatched(WhyUnmatched.MATCH_LIMIT, guard_offset=30), Equality.ALL, ""),
    (UNREADABLE, None, ""),
    (Matched(41, Why.LOOK_ALIKES, 3), Equality.KEY_AND_VALUE, ""),
    (None, None, ""),
    # Timestamps alone should place it, whatever else is known.
    (NO_TIME, Equality.KEY_AND_VALUE, "--by records"),
    (NO_TIME, None, "--by records"),
])  # fmt: skip
def test_under_log_append_time_a_row_that_timestamps_would_have_to_place_or_guard_is_blocked(answer, equality, way):
    results = found("timestamps-not-kept", (answered(answer, equality=equality),))
    assert [(r.subject, r.level) for r in results] == [("g/t/0", Level.BLOCK)] * bool(way)
    assert all(way in result.todo for result in results)


def test_a_row_at_an_unproven_sync_that_nothing_guards_is_blocked_until_it_is_accepted():
    assert levels("sync-unguarded", (answered(UNREADABLE),)) == {"g/t/0": Level.BLOCK}
    proven = Unmatched(WhyUnmatched.NOT_READABLE, lower=(40, 40), error_code="X")
    for guarded in (Unmatched(WhyUnmatched.MATCH_LIMIT, guard_offset=30), proven):
        assert not found("sync-unguarded", (answered(guarded),))


BY_TIME = {("t", 0, 55): Matched(50, Why.LEAST_TIMESTAMP, 9), ("t", 1, 60): Matched(0, Why.LEAST_TIMESTAMP, 9)}


def test_beside_an_open_transaction_on_the_source_to_accept_that_it_is_not_drained_lets_no_row_by_timestamps_pass():
    def with_open(*accepted, places=BY_TIME, watermark=104):
        source, target, mirror = world()
        source.watermarks |= {T0: watermark, TopicPartition("t", 1): 104}
        policies = accepting("not-drained", *accepted)
        plan = planned(source, target, mirror, comparer=FakeComparer(places), policies=policies)
        return checks_of(plan, "open-transaction"), rows_of(plan)["g", "t", 0]

    # Nothing is passed over at the log's start.
    opened, decided = with_open()
    assert opened == ["g/t/0"] and decided[0] is Decision.BLOCK
    assert with_open("open-transaction:g/t/0")[1] == (Decision.SET, 50, "least-timestamp")
    # Rows that records place are not about timestamps.
    opened, decided = with_open(places={})
    assert opened == [] and decided[0] is Decision.SET
    # Where nobody tells whether one is open, it may be.
    assert with_open(watermark=Failure("_TIMED_OUT", "no answer"))[0] == ["g/t/0"]


@pytest.mark.parametrize(("tail", "verdict", "said"), [
    (Tail(0, foreign=7), (Level.WARN, Level.WARN), "none that was read of A: another client writes there"),
    (Tail(0, foreign=7, perhaps_copies=7), (Level.NOT_VISIBLE, Level.PASS), "; up to 7 may be copies"),
    (Tail(0, foreign=7, perhaps_copies=3), UNSEEN_WARN, "; up to 3 may be copies"),
])  # fmt: skip
def test_a_target_topic_that_others_write_to_is_named_unless_aborted_records_explain_all_of_it(tail, verdict, said):
    (told,) = found("target-topic-dedicated", comparison=compared(t0=tail))
    assert (told.subject, told.level, told.counts_as) == ("t", *verdict)
    assert told.seen.startswith("7 records near the end of A.t on B") and said in told.seen


def test_on_a_failback_unread_records_that_only_look_like_others_do_not_pass_where_no_timestamp_tells():
    def judged(*rows):
        return verdicts("unread-on-target-only", rows, failback=True)

    passed = {"1 row": PASS}
    for equality, verdict in ((Equality.WITHOUT_TIMESTAMP, {"g/t/0": UNSEEN_BLOCK}), (Equality.ALL, passed)):
        alike = answered(Matched(57, Why.LOOK_ALIKES, 9), equality=equality)
        assert judged(alike) == verdict and judged(at_end(alike)) == passed
    # A row without a translated commit is not asked for its unread records.
    for changed in ({"target_offset": None}, {"source_committed": None}, {"method": Method.EXPLICIT}):
        assert judged(PROVEN, row("h", "u")._replace(**changed)) == passed


NOT_COMPARED = {"answer": Unmatched(WhyUnmatched.MATCH_LIMIT)}


def test_a_rewind_an_offset_of_another_log_and_a_commit_beyond_the_log_end_are_named_by_row():
    rows = (row("g", "t", prior=Commit(90)), row("h", "u", commit=Commit(101)), row("k", "u", prior=Commit(4100)))
    for check, subject, way in (
        ("rewind", "g/t/0", "--rewind keep"),
        ("commit-beyond-log-end", "h/u/0", "--untranslatable commit-beyond-log-end=earliest"),
        ("inside-target-log", "k/u/0", "--rewind set"),
    ):
        (block,) = found(check, rows)
        assert (block.level, block.subject) == (Level.BLOCK, subject) and way in block.todo


def test_metadata_that_brokers_refuse_by_default_blocks_until_somebody_has_raised_their_limit():
    # Java counts UTF-16 units: 2,048 characters beyond the first plane are 4,096.
    fits, too_long = ((row(commit=Commit(50, text)),) for text in ("x" * 4096, "\U0001f600" * 2049))
    assert not found("metadata-too-long", fits)
    (block,) = found("metadata-too-long", too_long)
    assert (block.level, block.seen) == (Level.BLOCK, "4,098 characters")
    assert found("metadata-too-long", too_long, **waiving("metadata-too-long"))[0].accepted


def test_a_row_that_the_targets_retention_has_moved_is_named_where_nothing_was_compared():
    late = row("g", "t", target_log=LogRange(70, 100))
    assert levels("target-retention", (late,)) == {"g/t/0": Level.WARN}
    assert not found("target-retention", (late._replace(missing_on_target=0),))
    assert not found("target-retention")


def test_estimated_rows_are_counted_by_what_kept_them_from_being_compared_apart_from_those_at_the_log_start():
    rows = (row("g", "t", **NOT_COMPARED), row("h", "u"), row("h", "t", **NOT_COMPARED))
    reasons = "2 match-limit, 1 not-compared"
    assert found("estimated-rows", rows)[0].seen == f"3 rows rest on MM2's syncs alone: {reasons}"
    # Another replicator writes none.
    assert found("estimated-rows", rows, replicator=ANY)[0].seen == f"3 rows rest on no record: {reasons}"
    at_start = [each._replace(lower_kind="log-start") for each in rows[1:]]
    assert [result.seen for result in found("estimated-rows", (rows[0], *at_start))] == [
        "1 row rests on MM2's syncs alone: 1 match-limit",
        "2 rows rest on no record: 1 match-limit, 1 not-compared",
    ]
