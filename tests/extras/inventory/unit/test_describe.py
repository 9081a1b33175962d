"""`groups describe`: every partition that is committed or assigned once for each member, in its three forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.commit_table import CommitTable
from migrate.described_group import ListedGroup
from migrate.extras.inventory.describe import (
    describe_groups,
    description_csv,
    description_document,
    description_lines,
    lines_beside_csv,
)
from migrate.model import Commit, Failure, TopicPartition
from tests.extras.inventory.unit.inventoryscene import DENIED, NO_SHARE, FakeGroups, commits, compare_form, read
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
    lines = described(group(*members), offsets).lines
    with_member = [(line.member.consumer_id, line.partition.partition) for line in lines if line.member]
    assert sorted(with_member) == sorted((m.consumer_id, p.partition) for m in members for p in m.partitions())
    without = [line.partition.partition for line in lines if line.member is None]
    assert without == sorted(committed - frozenset().union(*assigned))
    for line in lines:
        number = line.partition.partition
        assert line.committed == (number if number in committed else None)
    # As Kafka's tool: who has most comes first, and lines without a member come last.
    sizes = [len(assigned[int(consumer.removeprefix("c-"))]) for consumer, _ in with_member]
    assert sizes == sorted(sizes, reverse=True)
    assert [line.member for line in lines[len(with_member) :]] == [None] * len(without)


def test_a_group_of_which_something_is_not_visible_is_not_whole_and_part_of_a_lag_is_none():
    assert described(group(), commits(t_0=1)).is_whole
    unread = described(group(member(orders=(1,))), DENIED)
    assert unread.commits_unread == DENIED and unread.lag == DENIED and len(unread.lines) == 1 and not unread.is_whole
    assert not described(ListedGroup("share", "share", NO_SHARE), {}).is_whole
    hidden = described(group(member(orders=(0,), secret=(0,))), commits(orders_0=5))
    assert isinstance(hidden.lag, Failure) and "secret" in hidden.lag.message and not hidden.is_whole
    assert hidden.lines[0].lag == 95 and isinstance(hidden.lines[1].lag, Failure)
    text = "\n".join(description_lines(read(FakeGroups()), [hidden], 200, False))
    assert "lag not visible" in text and "nothing committed" not in text
    assert ["g", "secret", "0", "?", "?", "?"] in [line.split()[:6] for line in text.splitlines()]


@pytest.mark.parametrize("listed", [
    group(member("c-1"), member("c-2"), state="PreparingRebalance"),
    group(member("w-1"), protocol_type="connect"),
    ListedGroup.unseen(DENIED),
], ids=["rebalancing", "a worker's", "not visible"])  # fmt: skip
def test_whose_assignments_are_not_shown_are_not_called_idle(listed):
    found = described(listed, {})
    assert found.idle_members is None
    assert " idle" not in "\n".join(description_lines(read(FakeGroups({"g": listed})), [found], 200, False))


LONG = "rdkafka-8c3fcd8d-e2e9-4724-848b-1e8995b294dc"
FORMS = {
    "80.txt": lambda *seen: description_lines(*seen, 80, False),
    "200.txt": lambda *seen: description_lines(*seen, 200, False),
    "json": description_document,
    "csv": lambda read, groups: description_csv(groups),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_golden_one_and_has_no_character_that_a_terminal_obeys(form):
    crowded = group(member("c-1", orders=(0,)), member("c-2", orders=(1,)), member("c-3\x1b"))
    half = CommitTable([TopicPartition("pay", 0)], [60], without_offset=[TopicPartition("orders", 1)])
    none = CommitTable((), (), without_offset=[TopicPartition("orders", 1)])
    found = read(FakeGroups(
        {"live": group(member(LONG, orders=(0, 1))), "denied": group(member(pay=(0,))), "beyond\x1b": group(),
         "crowded": crowded, "half": group(member(orders=(1,))), "none": group()},
        {"sharers": ListedGroup("share", "share", NO_SHARE)},
        {"live": commits(orders_0=90, pay_0=1, lost_3=4), "denied": DENIED, "beyond\x1b": commits(pay_0=160),
         "crowded": commits(orders_0=90), "half": half, "none": none},
        {"orders": 2, "pay": 1},
    ))  # fmt: skip
    compare_form("describe", form, FORMS[form](found, describe_groups(found)))


def test_no_groups_are_said_to_be_none():
    assert "No groups." in list(description_lines(read(FakeGroups()), (), 80, False))


def test_beside_csv_groups_that_have_no_line_are_counted_and_named_unless_they_are_not_visible_and_idle_members():
    names = [f"idle-{number:02}" for number in range(25)]
    members = (member("c", pay=(0,)), member("d\x1b"))
    cluster = FakeGroups(
        {"busy": group(*members), **dict.fromkeys(["denied", *names], group())},
        committed={"busy": commits(pay_0=1), "denied": DENIED},
        partitions={"pay": 1},
    )
    found = describe_groups(read(cluster))
    none = "no line: nothing committed or assigned."
    idle = r"busy: 1 of 2 members is idle, with no partition assigned: d\x1b"
    assert list(lines_beside_csv(found)) == [f"25 groups have {none} {', '.join(names[:20])} and 5 more", idle]
    assert list(lines_beside_csv(found[1:3])) == [f"1 group has {none} idle-00"]
    assert not list(lines_beside_csv(found[1:2]))
