"""What all checks share: who counts as stopped, and the newest time that a clock has passed."""

import pytest

from migrate.checks.check import groups_of, is_without_members
from migrate.model import Failure, GroupState
from migrate.row_table import PlanRows
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from tests.unit.checkscene import NOW, asked, facts, row


@pytest.mark.parametrize(
    ("state", "stopped"),
    [
        (GroupState("Empty"), True),
        (GroupState("Dead"), True),
        (GroupState("Absent"), True),
        (GroupState("Stable", 1), False),
        (GroupState("Unknown"), False),
        (Failure("GROUP_AUTHORIZATION_FAILED", "no"), False),
        (None, False),
    ],
)
def test_a_group_is_without_members_only_where_that_was_seen(state, stopped):
    assert is_without_members(state) is stopped


def test_groups_of_rows_come_once_and_in_order():
    assert groups_of(PlanRows.of([row("h"), row("h", "u"), row("g")])) == ["g", "h"]


def test_the_newest_time_seen_is_that_of_mm2_or_of_the_targets_brokers_and_a_failure_is_none():
    failed, record = Failure("X", "no"), GroupRecord(GroupKind.CLASSIC, "consumer", NOW + 5)
    nothing = facts(newest_checkpoint_ms=None, **asked(newest_sync_ms=failed, target_records={}))
    assert nothing.newest_seen_ms == 0
    assert facts(newest_checkpoint_ms=NOW + 1, **asked(newest_sync_ms=NOW)).newest_seen_ms == NOW + 1
    assert facts(**asked(target_records={"g": record})).newest_seen_ms == NOW + 5


def test_while_the_source_is_down_only_the_target_was_read():
    assert [side.alias for side in facts().up] == ["A", "B"]
    assert [side.alias for side in facts(source_down=True).up] == ["B"]
