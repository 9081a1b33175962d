"""By when consumers must be back: for every kind of group the clock that Kafka itself uses."""

import pytest

from migrate.expiry import Expiry, expiry_of, needs_record, span
from migrate.groupfacts import BrokerSettings
from migrate.grouprecords import GroupKind, GroupRecord
from migrate.model import Failure, GroupState, TopicPartition

NOW = 1_785_553_200_000  # 2026-08-01 03:00 UTC
HOUR = 3_600_000
WEEK = BrokerSettings(7 * 24 * HOUR, True)
FORBIDDEN = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")
PLACE = TopicPartition("A.t", 0)


def expiry(state="Empty", kind="classic", settings=WEEK, records=None, kept=()) -> Expiry:
    group_state = GroupState(state, kind=kind)
    return expiry_of("g", group_state, settings, {} if records is None else records, kept, NOW, "B")


def hours_left(found: Expiry) -> float | None:
    left = found.left_ms(NOW)
    return None if left is None else left / HOUR


@pytest.mark.parametrize("state", ["Absent", "Dead"])
def test_a_group_that_is_not_there_yet_has_the_full_time_from_apply_on(state):
    found = expiry(state, records=FORBIDDEN)
    assert hours_left(found) == 168 and found.from_apply
    assert "2026-08-08 03:00 UTC" in found.sentence and "7 days" in found.sentence


def test_so_has_a_group_that_never_had_a_member_and_one_of_kip_848():
    assert hours_left(expiry(records={"g": GroupRecord(GroupKind.SIMPLE)})) == 168
    assert hours_left(expiry(kind="consumer", records={"g": GroupRecord(GroupKind.CONSUMER)})) == 168


def test_a_classic_groups_clock_runs_since_it_lost_its_last_member_however_fresh_the_offsets_are():
    since = NOW - 167 * HOUR
    record = GroupRecord(GroupKind.CLASSIC, "consumer", since, {PLACE: NOW})
    found = expiry(records={"g": record})
    assert hours_left(found) == 1 and not found.from_apply
    assert "2026-08-01 04:00 UTC" in found.sentence and "2026-07-25 04:00 UTC" in found.sentence


def test_one_that_ran_out_already_is_in_the_past():
    record = GroupRecord(GroupKind.CLASSIC, "consumer", NOW - 200 * HOUR)
    assert hours_left(expiry(records={"g": record})) == -32


def test_where_the_records_are_forbidden_nobody_can_tell():
    found = expiry(records=FORBIDDEN)
    assert found.back_by_ms is None and "__consumer_offsets" in found.sentence and FORBIDDEN.code in found.sentence
    assert expiry(settings=FORBIDDEN).back_by_ms is None
    assert expiry(records={"g": GroupRecord(GroupKind.CLASSIC, "consumer", None)}).back_by_ms is None


def test_an_offset_that_is_kept_goes_by_the_time_of_its_commit():
    record = GroupRecord(GroupKind.SIMPLE, committed_ms={PLACE: NOW - 100 * HOUR})
    assert hours_left(expiry(records={"g": record}, kept={PLACE})) == 68
    assert expiry(records={"g": GroupRecord(GroupKind.SIMPLE)}, kept={PLACE}).back_by_ms is None
    assert expiry(kind="consumer", records=FORBIDDEN, kept={PLACE}).back_by_ms is None


def test_records_are_only_read_where_they_decide():
    assert needs_record(GroupState("Empty"), False)
    assert needs_record(GroupState("Empty", kind="consumer"), True)
    assert not needs_record(GroupState("Empty", kind="consumer"), False)
    for state in (GroupState("Absent"), GroupState("Dead"), GroupState("Stable", 1), FORBIDDEN, None):
        assert not needs_record(state, True)


@pytest.mark.parametrize(("minutes", "text"), [(10080, "7 days"), (1440, "1 day"), (90, "90 minutes"), (1, "1 minute")])
def test_lengths_are_told_in_the_largest_whole_unit(minutes, text):
    assert span(minutes * 60_000) == text
