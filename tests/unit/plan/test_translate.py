"""Where a row stands by what comparing the records said, and Law 2 where it could say nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.match.protocol import Limits, Matched, Unmatched, Why, WhyUnmatched
from migrate.mm2.chain import Window
from migrate.model import Commit, Decision, Failure, Grade, LogRange, Method, OffsetSync
from migrate.plan.translate import Place, Rules, place
from migrate.survey.policies import Policies, Rewind
from tests.fakes import FakeComparer
from tests.unit.planscene import planned, world
from tests.unit.rowfacts import facts_with, row_of

BOUNDED = [why for why in Why if why is not Why.PROVEN]


def placed(answer, **changes) -> Place:
    found = place(facts_with(answer=answer, **changes), Rules(Policies()))
    assert isinstance(found, Place)
    return found


@pytest.mark.parametrize("why", BOUNDED)
def test_whatever_is_not_proven_is_bounded_states_its_bound_and_says_why(why):
    found = placed(Matched(160, why, 7))
    assert (found.grade, found.rereads_at_most, found.reason) == (Grade.BOUNDED, 7, str(why))
    assert found.sentence.endswith("At most 7 records are read twice.")


def test_every_reason_has_a_sentence_of_its_own_which_tells_of_re_reads_and_missing_records_where_they_are_known():
    by_reason = {why: placed(Matched(160, why, 7)) for why in Why}
    sentences = {found.sentence for found in by_reason.values()}
    assert len(sentences) == len(Why) and not [s for s in sentences if not s.endswith(".")]
    assert {w for w, found in by_reason.items() if found.missing is None} == {Why.NOT_ALL_READ, Why.LEAST_TIMESTAMP}
    by_time = by_reason[Why.LEAST_TIMESTAMP]
    assert (by_time.method, by_time.lower_kind) == (Method.TIMESTAMP, "timestamp")
    exact = placed(Matched(160, Why.PROVEN, 0, missing_on_target=1))
    assert exact.grade is Grade.EXACT and "twice" not in exact.sentence
    assert "1 record of those owed has no copy" in exact.sentence


@pytest.mark.parametrize(("by_timestamp", "stands"), [(True, 0), (False, 51)])
def test_by_timestamps_no_sync_places_what_was_not_read_for_nothing_would_guard_it(by_timestamp, stands):
    comparer = FakeComparer({("t", 0, 55): Unmatched(WhyUnmatched.MATCH_LIMIT)})
    plan = planned(*world(), comparer=comparer, limits=Limits(1_000_000, None, by_timestamp))
    (row,) = [row for row in plan.rows if row.key == ("g", "t", 0)]
    assert (row.target_offset, row.lower_kind) == (stands, "log-start" if by_timestamp else "sync")
    # None was asked for: one may well lie below.
    assert (
        "no sync counts with --by timestamp" in row.sentence.lower()
    ) == by_timestamp and "No sync lies" not in row.sentence


@pytest.mark.parametrize(
    ("offset", "lower", "method"),
    [
        (160, None, Method.MATCH),
        (160, (150, 160), Method.SYNC),
        (160, (150, 159), Method.MATCH),
        (160, (149, 160), Method.MATCH),
        (1100, None, Method.END),
        (1100, (140, 150), Method.END),
    ],
)
def test_the_method_says_what_stands_at_the_place(offset, lower, method):
    assert placed(Matched(offset, Why.PROVEN, 0, lower=lower)).method is method


def test_law_2_takes_the_window_where_the_timestamp_lies_above_it():
    found = placed(Unmatched(WhyUnmatched.MATCH_LIMIT, guard_offset=180))
    assert (found.target_offset, found.method, found.grade) == (111, Method.WINDOW, Grade.ESTIMATED)
    assert found.reason == found.why == "match-limit" and found.rereads_at_most is None


def test_law_2_takes_the_timestamp_where_it_lies_below_the_window():
    found = placed(Unmatched(WhyUnmatched.MATCH_LIMIT, guard_offset=90))
    assert (found.target_offset, found.method, found.lower_kind) == (90, Method.TIMESTAMP, "timestamp")
    assert found.rereads_estimate == 49 + 21
    passed = placed(Unmatched(WhyUnmatched.MATCH_LIMIT, guard_offset=3), target_log=LogRange(20, 1100))
    assert passed.target_offset == 20, "retention has passed the guard"


@pytest.mark.parametrize(("guard", "stands"), [(None, 0), (90, 90)])
def test_a_sync_whose_records_differ_bounds_nothing(guard, stands):
    found = placed(Unmatched(WhyUnmatched.MATCH_LIMIT, guard, refuted=True), target_log=LogRange(0, 1100))
    assert found.target_offset == min(stands, 0) and found.lower_kind == "log-start"
    assert "two records that differ" in found.sentence


def test_without_a_guard_the_window_stands_and_the_sentence_says_what_could_not_be_read():
    found = placed(Unmatched.not_readable("TOPIC_AUTHORIZATION_FAILED"))
    assert (found.target_offset, found.reason) == (111, "not-readable")
    assert found.sentence.startswith("The records could not be read (TOPIC_AUTHORIZATION_FAILED).")


@given(st.integers(0, 1100), st.integers(0, 149), st.integers(0, 1099))
def test_law_2_never_stands_beyond_the_timestamp_nor_beyond_the_sync(guard, u, d):
    around = Window(OffsetSync(1, u, d), None)
    found = placed(Unmatched(WhyUnmatched.MATCH_LIMIT, guard), around=around)
    assert found.target_offset == min(d + 1, guard)
    assert found.grade is Grade.ESTIMATED
    assert found.rereads_at_most is None and found.rereads_estimate is not None


def test_a_proven_sync_below_takes_the_place_of_the_nearest_unproven_one():
    found = placed(Unmatched(WhyUnmatched.MATCH_LIMIT, guard_offset=None, lower=(80, 70)))
    assert (found.target_offset, found.lower, found.lower_kind) == (71, (80, 70), "proven-sync")


def test_a_matched_row_is_subject_to_the_same_policies_as_any_other():
    ahead = row_of(answer=Matched(160, Why.PROVEN, 0), prior=Commit(170))
    assert (ahead.decision, ahead.reason, ahead.why, ahead.grade) == (
        Decision.BLOCK, "rewind", "proven", Grade.EXACT,
    )  # fmt: skip
    kept = row_of(Policies(rewind=Rewind.KEEP), answer=Matched(160, Why.PROVEN, 0), prior=Commit(170))
    assert (kept.decision, kept.reason) == (Decision.KEEP, "ahead-kept")


def test_what_no_law_translates_stays_so_whatever_was_compared():
    answer = Matched(160, Why.PROVEN, 0)
    row = row_of(answer=answer, source_log=Failure("X", "y"))
    assert (row.reason, row.why, row.missing_on_target, row.equality) == ("log-not-visible", "", None, "")
