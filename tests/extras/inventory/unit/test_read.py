"""What is read of a cluster's groups: all of it, in the order that lag needs, and nothing unseen passes for nothing."""

import re

import pytest

from migrate.described_group import ListedGroup
from migrate.extras.inventory.read import HIDDEN
from migrate.model import Failure
from migrate.survey.filters import Filters
from tests.extras.inventory.unit.inventoryscene import DENIED, NO_SHARE, FakeGroups, commits, read
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
