"""By when consumers must be back: for every kind of group the clock that Kafka itself uses."""

from dataclasses import replace

import pytest

from migrate.checks.groups import offsets_expiry
from migrate.model import Commit, Decision, Failure, GroupState, Level, TopicPartition
from migrate.progress import Timer
from migrate.row_table import PlanRows
from migrate.survey.expiry import Expiry, OffsetClocks, expiry_of, needs_record, remedy, span
from migrate.survey.group_facts import BrokerSettings, GroupFacts
from migrate.survey.groups import ExpiryWatch
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from tests.builders import make_row
from tests.fakes import FakeClock, FakeCluster, FakeGroupFacts, NoProgress
from tests.unit.checkscene import surveyed

NOW = 1_785_553_200_000  # 2026-08-01 03:00 UTC
HOUR = 3_600_000
WEEK = BrokerSettings(7 * 24 * HOUR, True)
FORBIDDEN = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")
PLACE = TopicPartition("A.t", 0)


def expiry(state="Empty", kind="classic", settings=WEEK, records=None, kept=(), sets=None) -> Expiry:
    """Of a group that keeps these offsets, and sets others if it keeps none or `sets` is True."""
    group_state = GroupState(state, kind=kind)
    sets = not kept if sets is None else sets
    clocks = OffsetClocks("B", settings, {} if records is None else records, NOW)
    return expiry_of("g", group_state, kept, sets, clocks)


def hours_left(found: Expiry) -> float | None:
    left = found.left_ms(NOW)
    return None if left is None else left / HOUR


@pytest.mark.parametrize(
    "known",
    [
        {"state": "Absent", "records": FORBIDDEN},
        {"state": "Dead", "records": FORBIDDEN},
        {"records": {"g": GroupRecord(GroupKind.SIMPLE)}},
        {"kind": "consumer", "records": {"g": GroupRecord(GroupKind.CONSUMER)}},
    ],
)
def test_a_group_that_is_not_there_yet_or_has_no_classic_members_has_the_full_time_from_apply_on(known):
    found = expiry(**known)
    assert hours_left(found) == 168 and found.from_apply
    assert "2026-08-08 03:00 UTC" in found.sentence and "7 days" in found.sentence


def test_a_classic_groups_clock_runs_since_it_lost_its_last_member_however_fresh_the_offsets_are():
    since = NOW - 167 * HOUR
    record = GroupRecord(GroupKind.CLASSIC, "consumer", since, {PLACE: NOW})
    found = expiry(records={"g": record})
    assert hours_left(found) == 1 and not found.from_apply
    assert "2026-08-01 04:00 UTC" in found.sentence and "2026-07-25 04:00 UTC" in found.sentence


def test_where_the_records_are_forbidden_nobody_can_tell():
    found = expiry(records=FORBIDDEN)
    assert found.back_by_ms is None and "__consumer_offsets" in found.sentence and FORBIDDEN.code in found.sentence
    assert expiry(settings=FORBIDDEN).back_by_ms is None
    # But what is set goes within a short retention, whatever else is unknown.
    short = BrokerSettings(HOUR, True)
    assert hours_left(expiry(settings=short, records=FORBIDDEN)) == 1
    assert hours_left(expiry(settings=short, kept={PLACE}, sets=True)) == 1
    assert expiry(settings=short, kept={PLACE}).back_by_ms is None
    assert expiry(records={"g": GroupRecord(GroupKind.CLASSIC, "consumer", None)}).back_by_ms is None


def test_an_offset_that_is_kept_goes_by_the_time_of_its_commit():
    record = GroupRecord(GroupKind.SIMPLE, committed_ms={PLACE: NOW - 100 * HOUR})
    assert hours_left(expiry(records={"g": record}, kept={PLACE})) == 68
    assert expiry(records={"g": GroupRecord(GroupKind.SIMPLE)}, kept={PLACE}).back_by_ms is None
    assert expiry(kind="consumer", records=FORBIDDEN, kept={PLACE}).back_by_ms is None


OTHER = TopicPartition("A.t", 1)


def test_an_end_that_a_commit_carries_itself_comes_before_anything_else():
    expires = {PLACE: NOW + HOUR}
    for record in (
        GroupRecord(GroupKind.SIMPLE, committed_ms={PLACE: NOW}, expires_ms=expires),
        GroupRecord(GroupKind.CONSUMER, committed_ms={PLACE: NOW}, expires_ms=expires),
        GroupRecord(GroupKind.CLASSIC, "consumer", NOW, {PLACE: NOW}, expires),
    ):
        found = expiry(records={"g": record}, kept={PLACE})
        assert hours_left(found) == 1 and not found.from_apply
        assert "2026-08-01 04:00 UTC" in found.sentence and "A.t-0" in found.sentence
        # A consumer that only joins does not take that end away: only a new commit does.
        assert "Start a consumer" not in remedy(found, "B") and "Delete the empty group" in remedy(found, "B")


def test_an_end_of_its_own_also_outlasts_the_clock_of_the_others():
    late = {PLACE: NOW + 1000 * HOUR}
    record = GroupRecord(GroupKind.SIMPLE, committed_ms={PLACE: NOW - 160 * HOUR}, expires_ms=late)
    assert hours_left(expiry(records={"g": record}, kept={PLACE})) == 1000
    both = GroupRecord(GroupKind.SIMPLE, committed_ms={PLACE: NOW, OTHER: NOW - 100 * HOUR}, expires_ms=late)
    assert hours_left(expiry(records={"g": both}, kept={PLACE, OTHER})) == 68
    # The group's other offsets are set, and go by when it became empty.
    classic = GroupRecord(GroupKind.CLASSIC, "consumer", NOW - 100 * HOUR, {PLACE: NOW}, late)
    assert hours_left(expiry(records={"g": classic}, kept={PLACE}, sets=True)) == 68


def test_plan_and_apply_both_look_at_what_is_set_beside_what_is_kept():
    rows = (
        make_row("g", "t", 0, decision=Decision.KEEP, target_prior=650),
        make_row("g", "t", 1),
    )
    records = {"g": GroupRecord(GroupKind.SIMPLE, "", None, {PLACE: NOW - HOUR}, {PLACE: NOW + 720 * HOUR})}
    state, settings = {"g": GroupState("Empty")}, BrokerSettings(HOUR, True)
    seen = surveyed(group_facts=GroupFacts({}, settings, records, NOW), target_states=state)
    assert [told.level for told in offsets_expiry.judge(seen, PlanRows.of(rows))] == [Level.BLOCK]
    assert [told.level for told in offsets_expiry.judge(seen, PlanRows.of(rows[:1]))] == [Level.PASS]
    target = FakeCluster(told=FakeGroupFacts(brokers=settings, records=records))
    watch = ExpiryWatch(target, Timer(FakeClock(), NoProgress()), NOW)
    assert hours_left(watch.look({"g": rows}, {"g"}, state, {"g": {PLACE: Commit(650)}})[0]["g"]) == 1


def test_a_classic_groups_clock_takes_nothing_where_every_kept_offset_has_an_end_of_its_own_and_none_is_set():
    since, late = NOW - 200 * HOUR, NOW + 500 * HOUR
    record = GroupRecord(GroupKind.CLASSIC, "consumer", since, {PLACE: since}, {PLACE: late, OTHER: late})
    assert hours_left(expiry(records={"g": record}, kept={PLACE, OTHER})) == 500
    assert hours_left(expiry(records={"g": record}, kept={PLACE, OTHER}, sets=True)) == -32
    third = TopicPartition("A.t", 2)
    assert hours_left(expiry(records={"g": record}, kept={PLACE, OTHER, third})) == -32


def test_an_end_that_is_near_is_reported_even_where_the_other_clocks_are_unknown():
    near, far = {PLACE: NOW + HOUR}, {PLACE: NOW + 100 * HOUR}
    soon = GroupRecord(GroupKind.CLASSIC, "consumer", None, {}, near)
    assert hours_left(expiry(records={"g": soon}, kept={PLACE})) == 1
    for record in (
        GroupRecord(GroupKind.CLASSIC, "consumer", None, {}, far),
        GroupRecord(GroupKind.SIMPLE, expires_ms=far),
    ):
        assert expiry(records={"g": record}, kept={PLACE, OTHER}).back_by_ms is None


@pytest.mark.parametrize("kind", [GroupKind.SIMPLE, GroupKind.CONSUMER, GroupKind.CLASSIC])
def test_an_end_that_is_near_is_reported_even_where_the_brokers_settings_are_not_known(kind):
    minutes = HOUR // 6
    record = GroupRecord(kind, "consumer", NOW, {PLACE: NOW}, {PLACE: NOW + minutes})
    for sets in (False, True):
        found = expiry(settings=FORBIDDEN, records={"g": record}, kept={PLACE}, sets=sets)
        assert found.left_ms(NOW) == minutes and found.of_commit
    late = replace(record, expires_ms={PLACE: NOW + 3 * HOUR})
    assert expiry(settings=FORBIDDEN, records={"g": late}, kept={PLACE}, sets=True).back_by_ms is None
    # Who is not there has no commits any more.
    assert expiry("Absent", settings=FORBIDDEN, records={"g": record}, kept={PLACE}).back_by_ms is None


def test_records_are_only_read_where_they_decide():
    assert needs_record(GroupState("Empty"), False)
    assert needs_record(GroupState("Empty", kind="consumer"), True)
    assert not needs_record(GroupState("Empty", kind="consumer"), False)
    for state in (GroupState("Absent"), GroupState("Dead"), GroupState("Stable", 1), FORBIDDEN, None):
        assert not needs_record(state, True)


def test_lengths_are_told_in_the_largest_whole_unit():
    told = {10080: "7 days", 1440: "1 day", 90: "90 minutes", 1: "1 minute"}
    assert {minutes: span(minutes * 60_000) for minutes in told} == told


def test_an_end_that_is_no_date_is_told_as_a_number_and_ends_no_command():
    far = GroupRecord(GroupKind.SIMPLE, committed_ms={PLACE: NOW}, expires_ms={PLACE: 2**53})
    found = expiry(records={"g": far}, kept={PLACE})
    assert f"by {2**53} ms since 1970" in found.sentence and found.back_by_ms == 2**53
