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
SIMPLE = GroupRecord(GroupKind.SIMPLE, committed_ms={PAY: NOW_MS - 5_000, ORDERS: NOW_MS - 9_000})
CLASSIC = replace(SIMPLE, kind=GroupKind.CLASSIC, protocol_type="consumer", empty_since_ms=NOW_MS - 1_000)
OLD_MS = NOW_MS - 10 * DAY_MS
OLD = replace(CLASSIC, committed_ms={PAY: OLD_MS}, empty_since_ms=OLD_MS)
BROKERS = BrokerSettings(RETENTION_MS, takes_kip848=True)
ONE = {PAY: Commit(5)}


def activity(record=SIMPLE, described=None, commits=None, settings=BROKERS):
    commits = {PAY: Commit(5), ORDERS: Commit(7)} if commits is None else commits
    clocks = OffsetClocks("A", settings, {"g": record} if record else {}, NOW_MS)
    return activity_of("g", (described or group()).description, commits, clocks)


def test_the_last_commit_is_the_newest_of_any_partition():
    assert activity().last_commit_ms == NOW_MS - 5_000
    assert activity(replace(SIMPLE, committed_ms={}), commits={}).last_commit_ms is None
    assert activity(OLD, commits=ONE).last_commit_ms == OLD_MS


def test_what_nobody_can_tell_is_no_date():
    for found, words in (
        (activity(OLD), "orders-1"),  # it may be the newest
        (activity(None), "open transaction"), (activity(GroupRecord(GroupKind.SHARE), commits={}), "share groups"),
        (activity(settings=DENIED).expires_ms, "offsets.retention.minutes"),
    ):  # fmt: skip
        assert isinstance(found, Failure) and words in found.message
    assert activity(commits=DENIED).expires_ms == DENIED


def test_offsets_expire_with_the_oldest_commit_or_of_a_classic_group_after_its_last_member_left():
    assert activity().expires_ms == NOW_MS - 9_000 + RETENTION_MS
    assert activity(CLASSIC).expires_ms == NOW_MS - 1_000 + RETENTION_MS
    assert activity(replace(SIMPLE, expires_ms={PAY: NOW_MS + 60})).expires_ms == NOW_MS + 60
    # Neither under consumers nor where there are none.
    assert activity(CLASSIC, group(member())).expires_ms is activity(CLASSIC, commits={}).expires_ms is None
