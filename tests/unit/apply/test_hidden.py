"""What the target does not show is not taken for removed."""

from migrate.apply.drift import SideWorld, World
from migrate.apply.hidden import hidden, seem_gone
from migrate.apply.history import REMOVED, GroupTrace
from migrate.model import Commit, Decision, Failure, TopicPartition
from migrate.row_table import GroupRows
from tests.unit.plans import row

P0, P1 = (TopicPartition("A.orders", p) for p in (0, 1))
ROWS = [row("g", partition=p, offset=None, decision=Decision.REMOVE, target_prior=60) for p in (0, 1)]


def told(commits, topics, trace=None):
    world = World(SideWorld("id", {}, {}, {"g": commits}), None, {}, target_topics=topics)
    return [drift.subject for drift in hidden("g", GroupRows.of_rows(ROWS), world, trace)]


def test_a_topic_that_is_not_listed_is_named_where_one_of_its_offsets_seems_to_be_gone():
    assert told({}, frozenset()) == told({P0: Commit(60)}, frozenset()) == ["A.orders"]
    assert told({P0: Commit(60), P1: Commit(60)}, frozenset()) == []


def test_a_topic_that_is_listed_hides_nothing_and_nobody_knows_where_nobody_asked():
    assert told({}, frozenset({"A.orders"})) == told({}, None) == []


def test_what_was_removed_and_read_back_needs_no_topic():
    results = dict.fromkeys((P0, P1), REMOVED)
    assert told({}, frozenset(), GroupTrace({}, results, read_back=True)) == []
    assert told({}, frozenset(), GroupTrace({}, results, read_back=False)) == ["A.orders"]


def test_only_rows_to_remove_can_seem_to_be_gone_and_none_of_a_group_that_was_not_read():
    assert seem_gone(GroupRows.of_rows([*ROWS, row("g", partition=2)]), {P0: Commit(60)}) == [ROWS[1]]
    assert seem_gone(GroupRows.of_rows(ROWS), Failure("NO_ANSWER", "silent")) == ()
