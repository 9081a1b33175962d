"""What is read of a cluster's groups and of their records: nothing unseen passes for nothing, and failures are said."""

import re
from contextlib import nullcontext

import pytest

from migrate.described_group import ListedGroup
from migrate.errors import ClusterError, EnvironmentLacks, Refused
from migrate.extras.inventory.group_records import RecordsOfAnyLength
from migrate.extras.inventory.read import HIDDEN
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_pin import ATTEMPTS, CompactedMeanwhileError
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupKind, GroupRecord, partition_of
from tests.extras.inventory.unit.inventoryscene import DENIED, NO_SHARE, FakeGroups, commits, read
from tests.fakes import FakeClock, FakeCluster, FakeGroupFacts, NoProgress
from tests.unit.describedgroups import group, member

UNTOLD = ListedGroup.unseen(Failure("TOPIC_AUTHORIZATION_FAILED", "its kind is not told"))


@pytest.fixture
def asked():
    return FakeGroups(
        {"billing": group(member(orders=(0, 1))), "crm": group(), "console-consumer-7": group()},
        {"sharers": ListedGroup("share", "share", NO_SHARE), "workers": group(protocol_type="connect")},
        {"billing": commits(orders_0=5), "crm": commits(orders_0=1, pay_0=2)},
        {"orders": 2, "pay": 1},
    )


def test_commits_are_read_before_log_ends_or_a_group_that_reads_on_would_be_beyond_them(asked):
    read(asked)
    assert asked.calls.index("commits") < asked.calls.index("high_watermarks")
    assert asked.stable == [False]  # as kafka-consumer-groups: an open transaction hides no group


def test_groups_of_every_kind_are_there_and_positions_that_nobody_tells_are_never_none(asked):
    asked.others |= {"odd": UNTOLD, "odd-with-some": UNTOLD, "crm": group(member(pay=(0,)))}
    asked.committed["odd-with-some"] = commits(pay_0=1)
    found = read(asked)
    assert list(found.groups) == ["billing", "console-consumer-7", "crm", "odd", "odd-with-some", "sharers", "workers"]
    assert "sharers" not in asked.asked and found.commits["sharers"] == NO_SHARE
    assert found.commits["workers"] == {}
    assert found.commits["odd"] == UNTOLD.kind and found.commits["odd-with-some"] == commits(pay_0=1)
    # What the listing of every kind describes is not described again.
    assert sorted(asked.described) == ["billing", "console-consumer-7"]
    assert found.groups["crm"] == group(member(pay=(0,))) and "crm" in asked.asked


def test_filters_on_topics_take_commits_assignments_and_groups_that_have_no_others(asked):
    asked.consumers |= {"broken": group(), "moving": group(member(), state="PreparingRebalance")}
    asked.committed |= {"broken": DENIED, "moving": commits(pay_0=3)}
    found = read(asked, Filters.from_options(topics=["orders"], exclude_groups=["console.*"]))
    assert found.commits["crm"] == commits(orders_0=1)
    # Nobody knows what these have committed on, or may read.
    assert list(found.groups) == ["billing", "broken", "crm", "moving", "sharers"] and found.commits["moving"] == {}
    assert found.filtered == {"exclude-group": 1, "topic": 1}
    none = read(asked, Filters.from_options(exclude_topics=["orders"]))
    assert "billing" not in none.groups and none.commits["crm"] == commits(pay_0=2) and "workers" in none.groups
    described = read(asked, Filters.from_options(topics=["pay"])).groups["crm"].description
    assert not isinstance(described, Failure) and described.members == ()


def test_the_listing_of_every_kind_is_asked_for_only_where_a_group_may_be_on_it(asked):
    read(asked, Filters(groups_file=frozenset({"crm"})))
    assert "other_groups" not in asked.calls
    assert list(read(asked, Filters(groups_file=frozenset({"sharers"}))).groups) == ["sharers"]


@pytest.mark.parametrize("may_describe", [False, None])
def test_a_list_that_may_be_short_says_so(asked, may_describe):
    assert read(asked).unseen == ()
    asked.may_describe, asked.others = may_describe, DENIED
    found = read(asked)
    assert found.unseen[0] == HIDDEN and re.search("share groups.*GROUP_AUTHORIZATION_FAILED", found.unseen[1])
    # Whoever named groups and got all of them misses none.
    assert read(asked, Filters(groups_file=frozenset({"crm"}))).unseen == ()
    assert read(asked, Filters(groups_file=frozenset({"crm", "cmr"}))).unseen == found.unseen


GROUPS = ["billing", "stock"]
BILLING, STOCK = (partition_of(group, 3) for group in GROUPS)
PLAIN, LONG = ({group: GroupRecord(kind) for group in GROUPS} for kind in (GroupKind.CLASSIC, GroupKind.SIMPLE))
RANGES = {n: LogRange(5, end) for n, end in enumerate((10, 20, 30))}
LENGTH = sum(RANGES[n].end - RANGES[n].start for n in {BILLING, STOCK})


def told(most, *answers, ranges=RANGES, max_fetch=None, **more):
    """What is told where Spark gives these answers, each returned or raised; and what it was asked."""
    left, asked = list(answers), []

    def read(pin, groups):
        asked.append((set(pin.logs), groups))
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    places = {TopicPartition(OFFSETS_TOPIC, n): log for n, log in ranges.items()}
    held = FakeCluster(ranges=places, told=FakeGroupFacts(records=PLAIN), **more)
    found = RecordsOfAnyLength(held, lambda: nullcontext(read), NoProgress(), FakeClock(), max_fetch, most)
    return found(GROUPS), asked


def test_what_a_consumer_may_read_is_left_to_it_and_what_is_beyond_is_not():
    assert told(LENGTH) == (PLAIN, [])
    assert told(LENGTH - 1, LONG) == (LONG, [({BILLING, STOCK}, GROUPS)])
    assert told(0, ranges={}) == (PLAIN, []), "a topic that is not shown is told as the consumer tells it"


def test_a_topic_that_was_compacted_meanwhile_is_pinned_and_read_anew():
    found, asked = told(0, CompactedMeanwhileError(OFFSETS_TOPIC), LONG)
    assert found == LONG and len(asked) == 2
    failure, _ = told(0, *(CompactedMeanwhileError(OFFSETS_TOPIC) for _ in range(ATTEMPTS)))
    assert isinstance(failure, Failure) and "compacted while it was read" in failure.message


def test_what_cannot_be_read_is_said_and_without_java_what_to_do():
    assert told(0, ClusterError("no leader", "wait"))[0] == Failure("_FAIL", "no leader")
    failure, _ = told(0, EnvironmentLacks("Java was not found.", "Install a JDK."))
    assert failure.code == "NO_SPARK"
    for words in (f"{LENGTH} records", "Java was not found.", "Install a JDK.", "--group", "--records"):
        assert words in failure.message


def test_groups_behind_an_open_transaction_are_left_out():
    _, asked = told(0, {}, watermarks={TopicPartition(OFFSETS_TOPIC, STOCK): 99})
    assert BILLING != STOCK and asked == [({BILLING}, ["billing"])]


@pytest.mark.parametrize(("most", "passes", "expected"), [(1000, 1, PLAIN), (0, 2, LONG)])
def test_no_more_is_fetched_than_is_allowed(most, passes, expected):
    size = LENGTH * 110 * passes
    assert told(most, LONG, max_fetch=size)[0] == expected
    with pytest.raises(Refused, match="--max-fetch allows"):
        told(most, LONG, max_fetch=size - 1)
