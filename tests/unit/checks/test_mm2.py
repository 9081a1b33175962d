"""Checks on MirrorMaker 2: its topics, its tasks, its group sync, its filter, and whether it still emits."""

import re

import pytest

from migrate.checks import checklist
from migrate.checks.checklist import CHECKS
from migrate.mm2.connector_status import ConnectorPart, ConnectorTasks
from migrate.mm2.connectors import Role
from migrate.mm2.flow import ANY, FlowFilter, TopicFilter
from migrate.mm2.topics import CheckpointReading
from migrate.model import Failure, Level, Side
from migrate.survey.renamed import TargetNames
from migrate.survey.survey import Case, Mm2Topic
from tests.unit.checkscene import FLOW, HOUR, NOW, ROWS, blocked, checkpointed_at, found, levels, surveyed, waiving

FORBIDDEN = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")
TOPIC, SYNCS = FLOW.checkpoints_topic, FLOW.offset_syncs_topic
EMPTIED = {"checkpoints": CheckpointReading({}, {})}
MISSING = {"checkpoints_topic": Mm2Topic(Side.TARGET, TOPIC, False, None)} | EMPTIED
NAMED = {"named": frozenset({TOPIC})}


def test_a_missing_mm2_topic_warns_unless_it_was_named_and_one_that_nobody_looked_for_is_not_visible():
    assert levels("mm2-checkpoints-topic", **MISSING) == {TOPIC: Level.WARN}
    assert levels("mm2-checkpoints-topic", **NAMED, **MISSING) == {TOPIC: Level.BLOCK}
    # Whatever lets MM2 write none.
    (told,) = found("mm2-checkpoints-topic", emits_checkpoints=False, **NAMED, **MISSING)
    assert told.level is Level.BLOCK and "--checkpoints-topic" in told.todo and "goes on" not in told.todo
    for changes in (MISSING, EMPTIED):
        (told,) = found("mm2-checkpoints-topic", emits_checkpoints=False, **changes)
        assert told.level is Level.WARN and "emit.checkpoints.enabled" in told.seen and "alias" not in told.todo
    nobody = {"syncs_topic": Mm2Topic(Side.SOURCE, SYNCS, None, None), "source_down": True}
    assert levels("mm2-offset-syncs-topic", **nobody) == {SYNCS: Level.NOT_VISIBLE}
    assert not found("mm2-checkpoints-topic", failback=True, **MISSING), "they say nothing of the way back"
    assert levels("mm2-offset-syncs-topic", failback=True) == {SYNCS: Level.PASS}


@pytest.mark.parametrize(("counts", "level", "seen", "todo"), [
    ({"offset-sync": 70, "tombstone": 2}, Level.BLOCK, "70 offset-sync", "--checkpoints-topic"),
    ({"undecodable:connect-json": 3}, Level.BLOCK, "", "ByteArrayConverter"),
    ({"checkpoint": 9, "undecodable:bad-length": 1}, Level.WARN, "1 undecodable:bad-length", ""),
])  # fmt: skip
def test_what_is_no_checkpoint_is_told_by_its_kind_with_what_to_do(counts, level, seen, todo):
    (result,) = found("mm2-checkpoints-topic", checkpoints=CheckpointReading({}, counts))
    assert result.level is level and seen in result.seen and todo in result.todo


def mm2(role, *states, itself="RUNNING"):
    """A connector in a state, with tasks in these."""
    tasks = (ConnectorPart(n, state, "x.Boom: gone" * (state == "FAILED")) for n, state in enumerate(states))
    return ConnectorTasks(role, (ConnectorPart(None, itself), *tasks))


def test_a_failed_task_of_mm2s_source_connector_blocks_with_the_first_line_of_its_trace():
    failed = {"tasks": {"src": mm2(Role.SOURCE, "RUNNING", "FAILED")}}
    (told,) = found("mm2-tasks", **failed)
    assert (told.level, told.subject) == (Level.BLOCK, "src")
    assert "task 1 is FAILED: x.Boom: gone" in told.seen and "task 0" not in told.seen
    assert blocked(**failed) == {"g", "h"} and blocked(**failed, **waiving("mm2-tasks", "src")) == set()
    (untold,) = found("mm2-tasks", tasks={"src": Failure("NOT_TOLD", "it is rebalancing")})
    assert (untold.level, untold.counts_as) == (Level.NOT_VISIBLE, Level.WARN) and "rebalancing" in untold.seen
    assert found("mm2-tasks") == [], "without a worker nothing is said"
    assert levels("mm2-tasks", **failed, source_down=True) == {"src": Level.WARN}, "while it is down its tasks fail"
    several = {
        "a": mm2(Role.SOURCE, "RUNNING"), "b": mm2(Role.SOURCE, "FAILED"), "c": mm2(Role.CHECKPOINT, "RUNNING"),
        "d": mm2(Role.SOURCE, itself="FAILED"),
    }  # fmt: skip
    assert levels("mm2-tasks", tasks=several) == {"b": Level.BLOCK, "d": Level.BLOCK, "a, c": Level.PASS}


def test_a_failed_checkpoint_task_and_whatever_else_does_not_run_warn_and_are_never_a_pass():
    for connector in (
        mm2(Role.CHECKPOINT, "FAILED"),
        mm2(Role.CHECKPOINT, "RUNNING", "PAUSED"),
        mm2(Role.SOURCE, "in an unknown state"),
        mm2(Role.SOURCE),
        mm2(Role.SOURCE, "RUNNING", itself="PAUSED"),
    ):
        assert levels("mm2-tasks", tasks={"c": connector}) == {"c": Level.WARN}, connector
    assert blocked(tasks={"c": mm2(Role.SOURCE, "PAUSED")}) == set()


def test_behind_another_replicator_every_check_on_mm2_says_that_nobody_asked_and_none_passes():
    results = {r.check: r for r in checklist.run(surveyed(replicator=ANY), ROWS)}
    of_mm2 = [check.name for check in CHECKS if Case.BY_MM2 in check.case]
    assert len(of_mm2) == 8
    for name in of_mm2:
        assert (results[name].level, results[name].seen) == (Level.NOT_VISIBLE, "not asked: another replicator"), name
    # That one may set groups' offsets, whoever it is.
    assert [name for name in of_mm2 if results[name].counts_as is Level.WARN] == ["group-sync"]


def leaving_out(*names, unless_its_version=False):
    """MM2's group filter; `unless_its_version` leaves out in one of two readings, between which its version decides."""
    everything = (re.compile(".*"),)
    excludes = [tuple(map(re.compile, names)), ()]
    return FlowFilter((tuple(TopicFilter(everything, out) for out in excludes[: 1 + unless_its_version]),))


def test_groups_that_mm2_leaves_out_are_named_its_group_sync_blocks_those_that_it_touches_and_unknown_is_no_pass():
    assert levels("mm2-group-filter", group_filter=leaving_out("h")) == {"h": Level.WARN}
    assert not found("mm2-group-filter")
    assert levels("group-sync", group_sync=True) == {"g": Level.BLOCK, "h": Level.BLOCK}
    assert blocked(group_sync=True, sync_filter=leaving_out("h")) == {"g"}
    assert blocked(group_sync=True, **waiving("group-sync")) == set()
    (unknown,) = found("group-sync", group_sync=None)
    assert (unknown.level, unknown.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    assert "checkpoint connector" in unknown.seen, "one may be given that lacks it"
    (passed,) = found("group-sync")
    # The setting itself may be true, where MM2 makes no checkpoints, or takes other groups.
    assert (passed.level, passed.seen) == (Level.PASS, "MM2 sets none of these groups")
    assert found("group-sync", group_sync=True, sync_filter=leaving_out("g", "h")) == [passed]


def test_group_sync_says_where_mm2s_version_decides_and_whose_offsets_it_writes_under_a_new_name():
    unsure = found("group-sync", group_sync=True, sync_filter=leaving_out("h", unless_its_version=True))
    assert ["may take" in result.seen for result in unsure] == [False, True]
    names = {"target_names": TargetNames({"g": "h"}), "group_sync": True}
    of_g, _ = found("group-sync", **names)
    assert "MM2 writes that one's offsets to h on B" in of_g.seen
    (alone,) = found("group-sync", sync_filter=leaving_out("h"), **names)
    assert alone.seen.endswith("on B under its old name")


def test_an_mm2_that_has_not_emitted_for_more_than_an_hour_is_named_unless_this_machines_clock_has_not_come_to_it():
    assert levels("old-offset-syncs") == levels("old-checkpoints") == {"B": Level.PASS}
    for newest, level in (
        (NOW - 3 * HOUR, Level.WARN),
        (NOW + HOUR // 60, Level.PASS),
        (NOW + HOUR, Level.NOT_VISIBLE),
        (FORBIDDEN, Level.NOT_VISIBLE),
    ):
        assert levels("old-offset-syncs", newest_sync_ms=newest) == {"B": level}
    assert not found("old-offset-syncs", newest_sync_ms=None)
    assert not found("old-offset-syncs", source_down=True, newest_sync_ms=FORBIDDEN)
    (old,) = found("old-checkpoints", checkpoints=checkpointed_at(NOW - 25 * HOUR))
    assert old.level is Level.WARN and "2026-07-31 02:00 UTC" in old.seen and "25 hours" in old.seen
    (ahead,) = found("old-checkpoints", checkpoints=checkpointed_at(NOW + 2 * HOUR))
    assert ahead.level is Level.NOT_VISIBLE and ahead.counts_as is Level.WARN
    assert "of 2026-08-01 05:00 UTC, and by this machine's clock it is 2026-08-01 03:00 UTC" in ahead.seen
