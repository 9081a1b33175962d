"""A table of commits is the dictionary that it was made of."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.commit_table import (
    CommitTable,
    GroupCommits,
    committed_offsets,
    has_metadata,
    has_same_offsets,
    offsets_at,
    partitions_by_group,
)
from migrate.model import Commit, GroupPartition, TopicPartition

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["orders", "t\n,\x00"]), st.integers(0, 30))
COMMITS = st.builds(
    Commit,
    st.integers(0, 2**63 - 1),
    st.sampled_from(["", "m\x00é"]),
    st.none() | st.integers(0, 2**31 - 1),
)


@given(st.dictionaries(PARTITIONS, COMMITS))
def test_a_table_holds_what_the_dictionary_held(commits: dict[TopicPartition, Commit]) -> None:
    table = CommitTable.of(commits)
    assert table == commits and commits == table and list(table.items()) == list(commits.items())
    assert pickle.loads(pickle.dumps(table)) == commits and CommitTable.of(table) is table
    assert has_metadata(table) == has_metadata(commits) == any(c.metadata for c in commits.values())


@given(st.dictionaries(PARTITIONS, COMMITS), st.lists(PARTITIONS))
def test_offsets_are_asked_for_in_any_order_and_are_none_where_nothing_is_committed(
    commits: dict[TopicPartition, Commit], asked: list[TopicPartition]
) -> None:
    expected = [commits[p].offset if p in commits else None for p in asked]
    assert offsets_at(CommitTable.of(commits), asked) == offsets_at(commits, asked) == expected
    assert [p in CommitTable.of(commits) for p in asked] == [p in commits for p in asked]


@given(st.dictionaries(PARTITIONS, COMMITS, max_size=3), st.dictionaries(PARTITIONS, COMMITS, max_size=3))
def test_offsets_are_the_same_only_if_each_partition_has_its_own_whatever_else_is_committed_with_it(
    one: dict[TopicPartition, Commit], other: dict[TopicPartition, Commit]
) -> None:
    offsets, others = ({p: c.offset for p, c in commits.items()} for commits in (one, other))
    table, other_table = CommitTable.of(one), CommitTable.of(other)
    assert has_same_offsets(one, other) == has_same_offsets(table, other_table) == (offsets == others)
    assert has_same_offsets(table, CommitTable.of({p: Commit(o) for p, o in offsets.items()}))
    moved = CommitTable.of({p: Commit(o ^ 1) for p, o in offsets.items()})
    assert has_same_offsets(table, moved) == (not offsets)


def test_tables_with_other_commits_are_not_equal() -> None:
    here = TopicPartition("orders", 0)
    assert CommitTable.of({here: Commit(7)}) != CommitTable.of({here: Commit(7, "", 0)})
    assert CommitTable.of({here: Commit(7)}) != {TopicPartition("orders", 1): Commit(7)}


@pytest.mark.parametrize("columns", [([7],), ([7, 8], ["m"]), ([7, 8], [], [1])])
def test_columns_of_other_lengths_are_refused(columns: tuple[list[int], ...]) -> None:
    with pytest.raises(ValueError, match="differ in length"):
        CommitTable([TopicPartition("orders", 0), TopicPartition("orders", 1)], *columns)
    with pytest.raises(ValueError, match="comes twice"):
        CommitTable([TopicPartition("orders", 0)] * 2, [7, 8])


GROUPS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.dictionaries(PARTITIONS, COMMITS))


@given(GROUPS, st.sampled_from(["a", "z"]), PARTITIONS)
def test_the_commits_of_groups_are_walked_in_order_and_looked_up_as_in_a_dictionary(
    by_group: dict[str, dict[TopicPartition, Commit]], group: str, partition: TopicPartition
) -> None:
    plain = {GroupPartition(g, *place): commit for g, commits in by_group.items() for place, commit in commits.items()}
    held, asked = GroupCommits(by_group), GroupPartition(group, *partition)
    expected = [(key.group, key.source_partition, plain[key].offset) for key in sorted(plain)]
    uncommitted = {} if asked in plain else {asked: None}
    assert list(committed_offsets(dict(held) | uncommitted)) == list(committed_offsets(held)) == expected
    by = {name: list(partitions) for name, partitions in partitions_by_group(held).items()}
    assert by == partitions_by_group(dict(held))
    assert held == plain and len(held) == len(plain) and list(held) == sorted(plain)
    assert list(held.items()) == [(key, plain[key]) for key in sorted(plain)]
    assert held.get(asked) == plain.get(asked) and (asked in held) == (asked in plain)
    assert held.groups() == {g: commits for g, commits in by_group.items() if commits}
