"""The values that all steps share: who is stopped, what a row is about, and what its numbers mean."""

from dataclasses import replace

import pytest

from migrate.described_group import Coordinator, GroupDescription
from migrate.model import (
    CheckResult,
    Commit,
    Decision,
    Failure,
    GroupState,
    Level,
    LogRange,
    Scope,
    lag,
    may_skip,
    rereads,
    rewinds,
)
from tests.unit.describedgroups import COORDINATOR, member
from tests.unit.plans import row

ROW = row("g")


@pytest.mark.parametrize(
    ("state", "stopped"),
    [("Empty", True), ("Dead", True), ("Stable", False), ("Unknown", False)],
)
def test_a_group_is_stopped_only_where_its_coordinator_says_so_and_nobody_is_in_it(state, stopped):
    assert GroupState(state).is_stopped is GroupDescription(state, (), "", COORDINATOR).is_stopped is stopped
    assert not GroupState(state, 1).is_stopped and not GroupDescription(state, (member(),), "", COORDINATOR).is_stopped


def test_a_described_member_has_its_partitions_and_a_coordinator_is_printed_as_kafkas_own_tool_prints_it():
    assert [str(place) for place in member(orders=(2, 0), pay=(1,)).partitions()] == ["orders-2", "orders-0", "pay-1"]
    assert str(Coordinator(3, "kafka-3", 9093)) == "kafka-3:9093 (3)"
    assert str(Coordinator(3, "::1", 9093)) == "[::1]:9093 (3)"


def test_of_many_members_some_are_named_and_all_are_counted():
    state = GroupState("Stable", 5, ("a@1", "b@2", "c@3"))
    assert state.some_members(2) == "a@1, b@2 and 3 more" and state.some_members() == "a@1, b@2, c@3 and 2 more"
    assert GroupState("Stable", 1, ("a@1",)).some_members() == "a@1" and GroupState("Empty").some_members() == ""


def test_what_a_row_commits_is_its_offset_with_its_metadata_or_nothing():
    assert ROW._replace(target_offset=7, target_metadata="m").target_commit == Commit(7, "m")
    assert ROW._replace(target_offset=None).target_commit is None


@pytest.mark.parametrize(
    ("number", "facts", "expected"),
    [
        (lag, {"source_committed": 60, "source_log_end": 100}, 40),
        (lag, {"source_committed": None}, None),
        (lag, {"source_log_end": None}, None),
        # A proven bound goes before an estimate.
        (rereads, {"rereads_at_most": 0, "rereads_estimate": 9}, 0),
        (rereads, {"rereads_at_most": None, "rereads_estimate": 9}, 9),
        (rereads, {"rereads_at_most": None, "rereads_estimate": None}, None),
        (may_skip, {"decision": Decision.SKIP}, True),
        (may_skip, {"decision": Decision.KEEP, "reason": "ahead-kept"}, True),
        (may_skip, {"decision": Decision.SET, "lower_kind": "log-latest"}, True),
        (may_skip, {"decision": Decision.KEEP, "reason": "already-there"}, False),
        (may_skip, {"decision": Decision.SET, "lower_kind": "proven-sync"}, False),
    ],
)
def test_what_a_row_lags_reads_again_and_may_skip(number, facts, expected):
    assert number(ROW._replace(**facts)) == expected


def test_only_a_row_that_is_set_below_what_was_committed_rewinds():
    below = ROW._replace(decision=Decision.SET, target_offset=5, target_prior=6)
    assert rewinds(below)
    for other in ({"decision": Decision.KEEP}, {"target_prior": None}, {"target_prior": 5}, {"target_offset": None}):
        assert not rewinds(below._replace(**other))


def test_log_ranges_are_the_same_log_whoever_leads_it_now_and_a_failure_reads_as_its_code_and_its_message():
    assert LogRange(0, 5, 1) == LogRange(0, 5, 2) != LogRange(0, 6, 1)
    assert str(Failure("X", "not so")) == "X: not so"


def test_a_check_that_can_only_refute_says_nothing_where_it_found_nothing():
    unseen = CheckResult("c", Level.NOT_VISIBLE, Scope.ROW, "s", "e", "seen")
    assert unseen.says_nothing and not replace(unseen, counts_as=Level.WARN).says_nothing
    assert not replace(unseen, level=Level.PASS).says_nothing
