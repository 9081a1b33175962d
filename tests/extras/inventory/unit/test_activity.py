"""What a group's own records tell of its use, and nothing that they do not tell."""

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.described_group import ListedGroup
from migrate.extras.inventory.listing import DAY_MS, GroupSummary, activity_of
from migrate.model import Commit, Failure, TopicPartition
from migrate.survey.cluster import BrokerSettings
from migrate.survey.expiry import OffsetClocks
from migrate.survey.offsets_topic import GroupKind, GroupRecord, PastCommit
from tests.extras.inventory.unit.inventoryscene import DENIED, RETENTION_MS
from tests.unit.describedgroups import group, member

NOW_MS = 1_700_000_000_000
PAY, ORDERS = TopicPartition("pay", 0), TopicPartition("orders", 1)
COMMITS = {PAY: Commit(5), ORDERS: Commit(7)}
SIMPLE = GroupRecord(GroupKind.SIMPLE, committed_ms={PAY: NOW_MS - 5_000, ORDERS: NOW_MS - 9_000})
CLASSIC = replace(SIMPLE, kind=GroupKind.CLASSIC, protocol_type="consumer", empty_since_ms=NOW_MS - 1_000)


BROKERS = BrokerSettings(RETENTION_MS, takes_kip848=True)


def activity(record=SIMPLE, described=None, commits=COMMITS, settings=BROKERS):
    records = record if isinstance(record, Failure) else {} if record is None else {"g": record}
    clocks = OffsetClocks("A", settings, records, NOW_MS)
    return activity_of("g", (described or group()).description, commits, clocks)


def idle(kind, described, activity, now_ms, limit_ms):
    """Whether a group is idle, by what is known of it; its topics, commits and lag do not matter."""
    return GroupSummary(
        group="g",
        listed=ListedGroup(kind, "consumer", described),
        lag=DENIED,
        topics=(),
        partitions_committed=0,
        partitions_of_its_topics=0,
        activity=activity,
    ).is_idle(now_ms, limit_ms)


def test_the_last_commit_is_the_newest_of_any_partition():
    assert activity().last_commit_ms == NOW_MS - 5_000
    assert activity(replace(SIMPLE, committed_ms={}), commits={}).last_commit_ms is None


def test_a_commit_of_which_no_record_tells_may_be_the_newest_so_that_the_group_is_not_called_idle():
    old = replace(CLASSIC, committed_ms={PAY: NOW_MS - 10 * DAY_MS}, empty_since_ms=NOW_MS - 10 * DAY_MS)
    found = activity(old)
    assert isinstance(found, Failure) and "orders-1" in found.message
    assert idle("classic", group().description, found, NOW_MS, 3 * DAY_MS) == found
    assert idle("classic", group().description, activity(old, commits={PAY: Commit(5)}), NOW_MS, 3 * DAY_MS) is True


def test_records_that_could_not_be_read_tell_nothing():
    assert activity(DENIED) == DENIED


def test_offsets_expire_with_the_oldest_commit_or_of_a_classic_group_after_its_last_member_left():
    assert activity().expires_ms == NOW_MS - 9_000 + RETENTION_MS
    assert activity(CLASSIC).expires_ms == NOW_MS - 1_000 + RETENTION_MS
    assert activity(replace(SIMPLE, expires_ms={PAY: NOW_MS + 60})).expires_ms == NOW_MS + 60


def test_offsets_expire_neither_under_consumers_nor_where_there_are_none():
    assert activity(CLASSIC, group(member())).expires_ms is None
    assert activity(CLASSIC, commits={}).expires_ms is None


def test_an_expiry_that_nobody_can_tell_is_no_date():
    unset = activity(settings=DENIED).expires_ms
    assert isinstance(unset, Failure) and "offsets.retention.minutes" in unset.message
    assert activity(commits=DENIED).expires_ms == DENIED


def committed(*steps):
    """Commits of one partition, so many ms and offsets from one to the next."""
    made = accumulate(steps, lambda before, step: (before[0] + step[0], before[1] + step[1]), initial=(0, 0))
    return {TopicPartition("t", 0): tuple(PastCommit(*commit) for commit in made)}


@given(st.lists(st.tuples(st.integers(-5, 99_999), st.integers(-5, 99)), max_size=9))
def test_the_pace_is_a_median_of_steps_forward(steps):
    found = activity(replace(SIMPLE, newest=committed(*steps)))
    forward = [step for step in steps if min(step) >= 0]
    assert (found.seconds_between_commits is None) == (found.records_between_commits is None) == (not forward)
    if forward:
        assert min(ms for ms, _ in forward) <= 1000 * found.seconds_between_commits + 50
        assert 1000 * found.seconds_between_commits - 50 <= max(ms for ms, _ in forward)
        assert (
            min(offsets for _, offsets in forward)
            <= found.records_between_commits
            <= max(offsets for _, offsets in forward)
        )


def test_a_pace_is_the_middle_one_of_three():
    found = activity(replace(SIMPLE, newest=committed((9_000, 1), (2_000, 70), (3_000, 8))))
    assert (found.seconds_between_commits, found.records_between_commits) == (3.0, 8)


def test_commits_whose_records_were_not_seen_and_share_groups_have_no_activity():
    unseen = activity(None)
    assert isinstance(unseen, Failure) and "open transaction" in unseen.message
    assert isinstance(activity(GroupRecord(GroupKind.SHARE), commits={}), Failure)


def test_a_group_is_unused_since_its_last_commit_or_its_last_member_whichever_is_later():
    assert activity().unused_ms(NOW_MS) == 5_000
    assert activity(CLASSIC).unused_ms(NOW_MS) == 1_000
    # The brokers' clock may be ahead of ours.
    assert activity().unused_ms(NOW_MS - 60_000) == 0


@pytest.mark.parametrize(("state", "kind"), [("Dead", "classic"), ("Empty", "consumer"), ("Empty", "streams")])
def test_nobody_can_tell_whether_a_group_is_idle_whose_last_member_is_not_told_of(state, kind):
    described = group(state=state).description
    assert isinstance(idle(kind, described, activity(), NOW_MS, 5_000), Failure)
    assert idle(kind, described, activity(), NOW_MS, 5_001) is False
    assert idle("classic", group().description, activity(), NOW_MS, 5_000) is True
