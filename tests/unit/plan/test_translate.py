"""Where a row stands by what comparing the records said, and Law 2 where it could say nothing."""

import pytest

from migrate.match.protocol import Limits, Matched, Unmatched, Why, WhyUnmatched
from migrate.model import Commit, Decision, Failure, Grade, LogRange, Method
from migrate.plan.translate import Place, Rules, place
from migrate.survey.policies import Policies, Rewind
from tests.fakes import FakeComparer
from tests.unit.planscene import planned, world
from tests.unit.rowfacts import facts_with, row_of

PROVEN = Matched(160, Why.PROVEN, 0)


def placed(answer, **changes) -> Place:
    found = place(facts_with(answer=answer, **changes), Rules(Policies()))
    assert isinstance(found, Place)
    return found


def unread(guard=None, **more) -> Unmatched:
    return Unmatched(WhyUnmatched.MATCH_LIMIT, guard, **more)


def test_what_is_not_proven_is_bounded_and_every_reason_has_a_sentence_which_tells_of_re_reads_and_missing_records():
    by_reason = {why: placed(Matched(160, why, 7)) for why in Why}
    for why, found in by_reason.items():
        grade = Grade.EXACT if why is Why.PROVEN else Grade.BOUNDED
        bound = "7 records from there on" if grade is Grade.EXACT else "At most 7 records"
        assert (found.grade, found.rereads_at_most, found.reason) == (grade, 7, str(why))
        assert found.sentence.endswith(f". {bound} are read twice.")
    assert len({found.sentence for found in by_reason.values()}) == len(Why)
    assert {w for w, found in by_reason.items() if found.missing is None} == {Why.NOT_ALL_READ, Why.LEAST_TIMESTAMP}
    by_time = by_reason[Why.LEAST_TIMESTAMP]
    assert (by_time.method, by_time.lower_kind) == (Method.TIMESTAMP, "timestamp")
    exact = placed(Matched(160, Why.PROVEN, 0, missing_on_target=1))
    assert "twice" not in exact.sentence and "1 record of those owed has no copy" in exact.sentence


@pytest.mark.parametrize(("by_timestamp", "stands"), [(True, 0), (False, 51)])
def test_by_timestamps_no_sync_places_what_was_not_read_for_nothing_would_guard_it(by_timestamp, stands):
    comparer, limits = FakeComparer({("t", 0, 55): unread()}), Limits(1_000_000, None, by_timestamp)
    row = planned(*world(), comparer=comparer, limits=limits).groups()["g"][0]
    assert (row.target_offset, row.lower_kind) == (stands, "log-start" if by_timestamp else "sync")
    # None was asked for: one may well lie below.
    assert ("no sync counts with --by timestamp" in row.sentence.lower()) == by_timestamp
    assert "No sync lies" not in row.sentence


def test_the_method_says_what_stands_at_the_place():
    for offset, lower, method in (
        (160, None, Method.MATCH),
        (160, (150, 160), Method.SYNC),
        (160, (150, 159), Method.MATCH),
        (160, (149, 160), Method.MATCH),
        (1100, (140, 150), Method.END),
    ):
        assert placed(Matched(offset, Why.PROVEN, 0, lower=lower)).method is method


def test_law_2_takes_the_smaller_of_the_window_and_the_timestamp():
    above, below = placed(unread(180)), placed(unread(90))
    assert (above.target_offset, above.method, above.grade) == (111, Method.WINDOW, Grade.ESTIMATED)
    assert above.reason == above.why == "match-limit" and above.rereads_at_most is None
    assert (below.target_offset, below.method, below.lower_kind) == (90, Method.TIMESTAMP, "timestamp")
    assert below.rereads_estimate == 49 + 21
    assert placed(unread(3), target_log=LogRange(20, 1100)).target_offset == 20, "retention has passed the guard"
    dark = placed(Unmatched.not_readable("TOPIC_AUTHORIZATION_FAILED"))
    assert (dark.target_offset, dark.reason) == (111, "not-readable"), "without a guard the window stands"
    assert dark.sentence.startswith("The records could not be read (TOPIC_AUTHORIZATION_FAILED).")


def test_a_sync_whose_records_differ_bounds_nothing_and_a_proven_one_takes_the_place_of_the_nearest():
    for guard in (None, 90):
        found = placed(unread(guard, refuted=True), target_log=LogRange(0, 1100))
        assert (found.target_offset, found.lower_kind) == (0, "log-start")
        assert "two records that differ" in found.sentence
    found = placed(unread(lower=(80, 70)))
    assert (found.target_offset, found.lower, found.lower_kind) == (71, (80, 70), "proven-sync")


def test_a_matched_row_is_subject_to_the_same_policies_as_any_other_and_what_no_law_translates_stays_so():
    ahead = row_of(answer=PROVEN, prior=Commit(170))
    assert (ahead.decision, ahead.reason) == (Decision.BLOCK, "rewind")
    assert (ahead.why, ahead.grade) == ("proven", Grade.EXACT)
    kept = row_of(Policies(rewind=Rewind.KEEP), answer=PROVEN, prior=Commit(170))
    assert (kept.decision, kept.reason) == (Decision.KEEP, "ahead-kept")
    row = row_of(answer=PROVEN, source_log=Failure("X", "y"))
    assert (row.reason, row.why, row.missing_on_target, row.equality) == ("log-not-visible", "", None, "")
