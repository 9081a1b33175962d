"""One line for each group, and its three forms: no 0 and no number for what is not known, no name that is obeyed."""

import csv
import json
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.commit_table import CommitTable
from migrate.described_group import ListedGroup
from migrate.extras.inventory.listing import (
    DAY_MS,
    GROUP_FACTS,
    GroupNotice,
    Inventory,
    activity_of,
    inventory_of,
    lag_of,
    listing_csv,
    listing_document,
    listing_lines,
)
from migrate.model import Commit, Failure, TopicPartition
from migrate.survey.cluster import BrokerSettings
from migrate.survey.expiry import OffsetClocks
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupKind, GroupRecord, PastCommit
from tests.extras.inventory.unit.inventoryscene import (
    DENIED,
    GOLDEN,
    NO_SHARE,
    RETENTION_MS,
    FakeGroups,
    commits,
    compare_form,
    read,
)
from tests.fakes import FakeClock
from tests.unit.describedgroups import group, member

GONE = Failure("UNKNOWN_TOPIC_OR_PARTITION", "not there")
NOW_MS = FakeClock().now_ms()
ends = st.one_of(st.integers(0, 50), st.just(GONE), st.none())


def listed(**parts) -> Inventory:
    return inventory_of(read(FakeGroups(**parts)))


def one(group_listed: ListedGroup, committed=None, name: str = "g", **parts):
    parts = {"partitions": {"orders": 3, "pay": 1}} | parts
    (summary,) = listed(consumers={name: group_listed}, committed={name: committed or {}}, **parts).groups
    return summary


@given(st.lists(st.tuples(st.integers(0, 50), ends), max_size=8))
def test_every_committed_partition_adds_its_lag_or_is_counted_as_not_known(pairs):
    places = [TopicPartition("t", number) for number in range(len(pairs))]
    found = {place: end for place, (_, end) in zip(places, pairs, strict=True) if end is not None}
    lag = lag_of(CommitTable(places, [offset for offset, _ in pairs]), found)
    known = [end - offset for offset, end in pairs if isinstance(end, int) and end >= offset]
    assert lag.records == (sum(known) if known else None)
    assert lag.unknown == len(pairs) - len(known)
    assert lag.beyond == sum(isinstance(end, int) and end < offset for offset, end in pairs)
    assert bool(lag.unread) == any(not isinstance(end, int) for _, end in pairs)
    assert lag == lag_of({p: Commit(o) for p, (o, _) in zip(places, pairs, strict=True)}, found)


def test_a_group_is_summed_up():
    summary = one(group(member(pay=(0,)), assignor="range"), commits(orders_0=90, orders_1=97))
    told = [str(summary.fact(fact)) for fact in GROUP_FACTS]
    assert told == ["classic", "consumer", "Stable", "1", "range", "kafka-1:9092 (1)"]
    assert summary.topics == ("orders", "pay")
    assert (summary.partitions_committed, summary.partitions_of_its_topics) == (2, 4)
    assert summary.lag.records == 13 and summary.not_visible() == {}
    assert summary.attention == (GroupNotice.ALIVE, GroupNotice.NEVER_COMMITTED)


def test_attention_is_drawn_by_what_the_checks_of_a_plan_know():
    pay = commits(pay_0=5)
    metadata = {TopicPartition("pay", 0): Commit(5, "AgAAAZMzM4AAAA==")}
    for listed_as, committed, name, notices in (
        (group(), pay, "g", ()),
        (group(), pay, "connect-sink", (GroupNotice.CONNECT_SINK,)),
        (group(protocol_type="connect"), {}, "connect-cluster", ()),
        (group(), pay, "_confluent", (GroupNotice.VENDOR,)),
        (group(), commits(pay_0=101), "g", (GroupNotice.BEYOND_END,)),
        (group(state="PreparingRebalance"), {}, "g", (GroupNotice.ALIVE,)),
        # Kafka Streams by its assignor, its protocol, and the metadata of its commits.
        (group(member(), assignor="stream"), {}, "g", (GroupNotice.ALIVE, GroupNotice.STREAMS)),
        (group(kind="streams"), {}, "g", (GroupNotice.STREAMS,)),
        (group(), metadata, "g", (GroupNotice.STREAMS,)),
    ):
        assert one(listed_as, committed, name).attention == notices


def test_streams_applications_are_known_by_internal_topics_with_the_whole_name_of_a_group():
    topics = ["shop-eu-store-changelog", "pay-x-repartition", "crm-changelog-old", "orders"]
    named = ["shop", "shop-eu", "sho", "pay", "crm", "orders"]
    found = listed(consumers=dict.fromkeys(named, group()), partitions=dict.fromkeys(topics, 1))
    streams = {each.group for each in found.groups if GroupNotice.STREAMS in each.attention}
    assert streams == {"shop-eu", "pay"}, "shop-eu's topic is not shop's"


def used(days_ago: float, **changes) -> GroupRecord:
    """The record of a simple group that committed so long ago."""
    made = {TopicPartition("pay", 0): NOW_MS - round(days_ago * DAY_MS)}
    return replace(GroupRecord(GroupKind.SIMPLE, committed_ms=made), **changes)


def idle_of(records, idle_ms=None, **groups: ListedGroup) -> dict[str, bool]:
    """Which of the groups are listed, and of these whether they are idle."""
    committed = dict.fromkeys(groups, commits(pay_0=5))
    cluster = FakeGroups(groups, committed=committed, partitions={"pay": 1}, records=records)
    found = inventory_of(read(cluster, with_records=True), idle_ms)
    assert found.not_idle == len(groups) - len(found.groups)
    return {g.group: GroupNotice.IDLE in g.attention for g in found.groups}


def test_a_group_is_idle_once_nobody_has_been_in_it_or_committed_for_three_days():
    left = {"kind": GroupKind.CLASSIC, "protocol_type": "consumer", "empty_since_ms": NOW_MS - DAY_MS}
    records = {"old": used(3), "young": used(2.9), "alive": used(30), "left": used(30, **left)}
    groups = dict.fromkeys(("old", "young", "left"), group()) | {"alive": group(member())}
    assert idle_of(records, **groups) == {"old": True, "young": False, "alive": False, "left": False}
    # By the brokers' clock where ours is behind.
    ahead = {"busy": used(-10), "old": used(-6.9)}
    assert idle_of(ahead, **dict.fromkeys(ahead, group())) == {"busy": False, "old": True}


def test_only_groups_that_are_idle_for_so_long_are_listed_and_those_of_which_nobody_can_tell():
    groups = dict.fromkeys(("old", "young", "untold"), group()) | {
        "alive": group(member()), "sharers": ListedGroup("share", "share", NO_SHARE),
        "kip-848": group(kind="consumer"), "young-kip-848": group(kind="consumer"), "moving": group(state="Dead"),
        "unseen": ListedGroup.unseen(DENIED), "unseen-but-used": ListedGroup.unseen(DENIED),
    }  # fmt: skip
    records = {name: used(8) for name in groups} | {"young": used(6.9), "young-kip-848": used(1)}
    records |= {"untold": used(8, committed_ms={}), "unseen-but-used": used(0.1)}
    assert idle_of(records, 7 * DAY_MS, **groups) == {
        "old": True, "untold": False, "sharers": False, "kip-848": False, "moving": False, "unseen": False,
    }  # fmt: skip
    assert idle_of(DENIED, 7 * DAY_MS, old=group(), alive=group(member())) == {"old": False}


def test_an_inventory_is_whole_only_if_every_group_is_and_none_may_be_missing():
    whole = {"consumers": {"a": group()}, "committed": {"a": commits(pay_0=1)}, "partitions": {"pay": 1}}
    assert listed(**whole).is_whole
    assert not listed(**whole, may_describe=False).is_whole
    # Brokers leave commits on a topic that a principal may not DESCRIBE out of their answer, without a word.
    hidden = one(group(member(orders=(0,), secret=(0,))), commits(orders_0=90))
    for value in (hidden.topics, hidden.partitions_committed, hidden.partitions_of_its_topics, hidden.lag):
        assert isinstance(value, Failure) and "secret" in value.message
    assert GroupNotice.NOT_VISIBLE in hidden.attention
    inventory = listed(consumers={"g": group(member(secret=(0,)))})
    assert not inventory.is_whole and inventory.lag == (None, 0, 1)


def test_a_sum_of_which_nothing_is_known_is_not_0():
    def lag(**offsets):
        committed = {name: commits(orders_0=offset) for name, offset in offsets.items()}
        return listed(consumers=dict.fromkeys(offsets, group()), committed=committed, partitions={"orders": 1}).lag

    assert lag(g=160) == (None, 1, 0) and lag(g=160, h=90) == (10, 1, 0) and lag() == (0, 0, 0)


def running(members=1, first=90, **changes) -> FakeGroups:
    """A group of so many members, which has committed `first` on its first partition; every log ends at 100."""
    alive = group(*(member(f"c-{n}", orders=(0, 1)) for n in range(members)))
    given = {"committed": {"g": commits(orders_0=first, orders_1=40)}, "partitions": {"orders": 2}}
    return FakeGroups({"g": alive}, **given | changes)


GREW = {TopicPartition("orders", 0): 500}
UNREAD = {TopicPartition("orders", p): GONE for p in (0, 1)}
ELSEWHERE = {"g": commits(orders_1=41)}


@pytest.mark.parametrize(("before", "after", "stalled"), [
    (running(), running(), 2),
    (running(), running(first=91), 1),
    (running(), running(first=80), 1),  # set back, which is a move
    (running(), running(committed=ELSEWHERE), 0),  # one has moved, and one is taken away
    (running(first=100), running(first=100, ends=GREW), 1),  # what has just come
    (running(0), running(), 0),
    (running(), running(0), 0),
    (FakeGroups(), running(), 0),
    (running(committed={"g": DENIED}), running(), DENIED),
    (replace(running(), consumers={"g": ListedGroup.unseen(DENIED)}), running(), DENIED),
    (running(ends=UNREAD), running(), GONE),
])  # fmt: skip
def test_a_group_stalls_where_its_members_commit_nothing_further_on_of_what_there_was_to_read(before, after, stalled):
    found = inventory_of(read(after), earlier=read(before))
    (summary,), is_told = found.groups, isinstance(stalled, int)
    assert summary.stalled_partitions == stalled
    assert (GroupNotice.STALLED in summary.attention) is (is_told and stalled > 0)
    assert summary.not_visible() == ({} if is_told else {"stalled_partitions": str(stalled)})
    assert found.is_whole is is_told


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


COLUMNS = (GOLDEN / "list.csv").read_text().splitlines()[0].split(",")
FIELDS, ACTIVITY_FIELDS = COLUMNS[:13], COLUMNS[13:18]
EVIL = "evil\x1b[2J,=cmd"


def seen(filters=None, with_records=False, **changes):
    committed = {
        "billing": commits(orders_0=90, orders_1=97), "never": {}, EVIL: commits(orders_0=150),
        "partly": commits(orders_0=99, gone_0=1),
    }  # fmt: skip
    others = {"sharers": ListedGroup("share", "share", NO_SHARE)}
    consumers = dict.fromkeys([EVIL, "partly", "console-consumer-1"], group())
    consumers |= {"billing": group(member(orders=(0, 1)), assignor="range"), "never": group(protocol_type="")}
    cluster = FakeGroups(consumers, committed=committed, partitions={"orders": 2}, **{"others": others} | changes)
    return read(cluster, filters or Filters(), with_records=with_records)


def seen_with_records():
    made = {TopicPartition("orders", 0): NOW_MS - 90 * DAY_MS}
    billing = {TopicPartition("orders", p): NOW_MS - 5_000 for p in (0, 1)}
    newest = {TopicPartition("orders", 0): (PastCommit(NOW_MS - 10_200, 0), PastCommit(NOW_MS - 5_000, 312))}
    records = {
        "billing": GroupRecord(GroupKind.CLASSIC, "consumer", None, billing, newest=newest),
        "partly": GroupRecord(GroupKind.SIMPLE, committed_ms=made | {TopicPartition("gone", 0): NOW_MS}),
        EVIL: GroupRecord(GroupKind.SIMPLE, committed_ms=made),
    }  # fmt: skip
    return seen(with_records=True, records=records)


def text_of(found, width=200):
    return "\n".join(listing_lines(found, width, False))


def documents(found):
    return {told["group"]: told for told in json.loads("\n".join(listing_document(found)))["groups"]}


FORMS = {
    "60.txt": lambda found: listing_lines(found, 60, False),
    "240.txt": lambda found: listing_lines(found, 240, False),
    "json": listing_document,
    "csv": listing_csv,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_golden_one_and_has_no_character_that_a_terminal_obeys(form):
    first = seen_with_records()
    found = inventory_of(replace(first, time_ms=first.time_ms + 30_000), earlier=first)
    compare_form("list", form, FORMS[form](found))


def test_colours_are_the_only_control_characters():
    assert any("\x1b[" in line for line in listing_lines(inventory_of(seen()), 80, True))


def test_of_what_was_not_asked_nothing_is_said():
    for found, more in (
        (inventory_of(seen()), []), (inventory_of(seen_with_records()), ACTIVITY_FIELDS),
        # New columns come last: scripts take places.
        (inventory_of(seen(), earlier=seen()), ["stalled_partitions"]),
    ):  # fmt: skip
        assert next(listing_csv(found)).split(",") == FIELDS + more
        assert all(set(told) == {*FIELDS, *more, "not_visible"} for told in documents(found).values())
        assert ("Stalled" in text_of(found)) is (more == ["stalled_partitions"])
    none = text_of(inventory_of(read(FakeGroups())), 80)
    assert "Groups       0 groups" in none.splitlines() and "COORDINATOR" not in none


def test_what_the_list_may_lack_is_said_and_so_are_names_that_are_not_there():
    text = text_of(inventory_of(seen(may_describe=False, others=DENIED)))
    assert "NOT VISIBLE" in text and "brokers leave them out" in text and "GROUP_AUTHORIZATION_FAILED" in text
    missing = inventory_of(seen(Filters(groups_file=frozenset({"bilinng\x1b"}))))
    assert r"bilinng\x1b: no group on A has this name" in text_of(missing)
    unread = inventory_of(seen(with_records=True, records=DENIED))
    (line,) = (line for line in listing_lines(unread, 240, False) if line.startswith("billing"))
    assert line.split()[8:11] == ["?", "?", "?"] and all(each["not_visible"] for each in documents(unread).values())
    cells = next(csv.DictReader(StringIO("\r\n".join(listing_csv(unread)))))
    assert {cells[field] for field in ACTIVITY_FIELDS} == {"not-visible"}


def test_with_idle_the_table_counts_what_it_leaves_out():
    found = inventory_of(seen_with_records(), 30 * DAY_MS)
    assert [g.group for g in found.groups] == [EVIL, "never", "sharers"]
    assert "2 groups in use, or used since (--idle)" in text_of(found)
    assert json.loads("\n".join(listing_document(found)))["totals"]["not_idle"] == 2
