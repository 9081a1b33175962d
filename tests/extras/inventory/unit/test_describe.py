"""Partitions of groups, line by line: every one that is committed or assigned is there once for each member."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.commit_table import CommitTable
from migrate.described_group import ListedGroup
from migrate.extras.inventory.describe import describe_groups, description_document, description_lines
from migrate.model import Commit, Failure, TopicPartition
from tests.extras.inventory.unit.inventoryscene import DENIED, NO_SHARE, FakeGroups, commits, read
from tests.unit.describedgroups import group, member

partitions = st.frozensets(st.integers(0, 5), max_size=6)


def described(listed, committed, **parts):
    cluster = FakeGroups({"g": listed}, committed={"g": committed}, partitions={"t": 6, "orders": 3}, **parts)
    (found,) = describe_groups(read(cluster))
    return found


@given(st.lists(partitions, max_size=3), partitions)
def test_lines_are_the_assigned_partitions_by_member_and_then_the_committed_rest(assigned, committed):
    members = [member(f"c-{number}", t=tuple(some)) for number, some in enumerate(assigned)]
    offsets = {TopicPartition("t", partition): Commit(partition) for partition in committed}
    found = described(group(*members), offsets)
    with_member = [(line.member.consumer_id, line.partition.partition) for line in found.lines if line.member]
    assert sorted(with_member) == sorted((m.consumer_id, p.partition) for m in members for p in m.partitions())
    without = [line.partition.partition for line in found.lines if line.member is None]
    assert without == sorted(committed - frozenset().union(*assigned))
    assert all(line.committed == (line.partition.partition if line.partition.partition in committed else None)
               for line in found.lines)  # fmt: skip
    # As Kafka's tool: who has most comes first, and lines without a member come last.
    sizes = [len(assigned[int(consumer.removeprefix("c-"))]) for consumer, _ in with_member]
    assert sizes == sorted(sizes, reverse=True) and [line.member is None for line in found.lines] == sorted(
        line.member is None for line in found.lines
    )


@pytest.mark.parametrize("members", [(), (member(t=(1,)),)])
def test_a_commit_without_an_offset_is_a_line_as_in_kafkas_tool_and_named(members):
    """Whether a member has the partition or nobody."""
    answer = CommitTable([TopicPartition("t", 0)], [60], without_offset=[TopicPartition("t", 1)])
    cluster = FakeGroups({"g": group(*members)}, committed={"g": answer}, partitions={"t": 2})
    found = read(cluster)
    text = "\n".join(description_lines(found, describe_groups(found), 200, False))
    lines = {tuple(line.split()[1:6]) for line in text.splitlines() if line.split()[:2] == ["g", "t"]}
    assert lines == {("t", "0", "60", "100", "40"), ("t", "1", "-", "100", "-")}
    assert "lag 40; 1 commit without an offset (-1)" in text
    (document,) = json.loads("".join(description_document(found, describe_groups(found))))["groups"]
    offsets = {each["partition"]: each["current_offset"] for each in document["partitions"]}
    assert document["commits_without_offset"] == 1 and offsets == {0: 60, 1: None}


@pytest.mark.parametrize(("cluster", "said", "cells"), [
    (FakeGroups({"g": group()}, committed={"g": CommitTable((), (), without_offset=[TopicPartition("t", 1)])},
                partitions={"t": 2}), "1 commit without an offset (-1)", ["t", "1", "-", "100", "-"]),
    (FakeGroups({"g": group(member(secret=(0,)))}), "lag not visible", ["secret", "0", "?", "?", "?"]),
], ids=["without an offset", "on a topic that the cluster does not show"])  # fmt: skip
def test_a_group_of_which_nothing_is_told_has_not_committed_nothing(cluster, said, cells):
    found = read(cluster)
    text = "\n".join(description_lines(found, describe_groups(found), 200, False))
    assert said in text and "nothing committed" not in text
    assert ["g", *cells] in [line.split()[:6] for line in text.splitlines()]


def test_a_lag_of_which_part_is_hidden_is_no_lag():
    found = described(group(member(orders=(0,), secret=(0,))), commits(orders_0=5))
    assert isinstance(found.lag, Failure) and "secret" in found.lag.message and not found.is_whole
    assert found.lines[0].lag == 95 and isinstance(found.lines[1].lag, Failure)


def test_a_group_whose_commits_or_members_are_not_visible_is_not_whole():
    unread = described(group(member(orders=(1,))), DENIED)
    assert unread.commits_unread == DENIED and unread.lag == DENIED and len(unread.lines) == 1 and not unread.is_whole
    assert not described(ListedGroup("share", "share", NO_SHARE), {}).is_whole
    assert described(group(), commits(t_0=1)).is_whole


@pytest.mark.parametrize(
    "listed",
    [
        group(member("c-1"), member("c-2"), state="PreparingRebalance"),
        group(member("c-1", t=(0,)), member("c-2"), kind="consumer", state="Unknown"),  # of KIP-848: Reconciling
        group(member("w-1"), protocol_type="connect"),
        ListedGroup.unseen(DENIED),
    ],
    ids=["rebalancing", "reconciling", "a worker's", "not visible"],
)
def test_whose_assignments_are_not_shown_are_not_called_idle(listed):
    found = described(listed, {})
    assert found.idle_members is None
    assert " idle" not in "\n".join(description_lines(read(FakeGroups({"g": listed})), [found], 200, False))
