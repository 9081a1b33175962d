"""What a group's own records tell of its use, and nothing that they do not tell."""

from dataclasses import replace

from migrate.extras.inventory.listing import DAY_MS, activity_of
from migrate.model import Commit, Failure, TopicPartition
from migrate.survey.cluster import BrokerSettings
from migrate.survey.expiry import OffsetClocks
from migrate.survey.offsets_topic import GroupKind, GroupRecord
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


def test_the_last_commit_is_the_newest_of_any_partition():
    assert activity().last_commit_ms == NOW_MS - 5_000
    assert activity(replace(SIMPLE, committed_ms={}), commits={}).last_commit_ms is None


def test_a_commit_of_which_no_record_tells_may_be_the_newest():
    old = replace(CLASSIC, committed_ms={PAY: NOW_MS - 10 * DAY_MS}, empty_since_ms=NOW_MS - 10 * DAY_MS)
    found = activity(old)
    assert isinstance(found, Failure) and "orders-1" in found.message
    assert activity(old, commits={PAY: Commit(5)}).last_commit_ms == NOW_MS - 10 * DAY_MS


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


def test_commits_whose_records_were_not_seen_and_share_groups_have_no_activity():
    unseen = activity(None)
    assert isinstance(unseen, Failure) and "open transaction" in unseen.message
    assert isinstance(activity(GroupRecord(GroupKind.SHARE), commits={}), Failure)
