"""Checks on MirrorMaker 2 itself: its tasks, its group sync, its filter, and whether it still emits."""

from dataclasses import replace

from migrate.checks import checklist
from migrate.checks.check import Mm2Facts
from migrate.checks.registry import CHECKS
from migrate.mm2.connector_status import ConnectorPart, ConnectorTasks
from migrate.mm2.connectors import Role
from migrate.model import Failure, Level
from migrate.survey.policies import Policies, Waiver
from tests.unit.checkscene import FACTS, HOUR, NOW, ROWS, asked, blocked, found, levels

FORBIDDEN = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")


def mm2(role, *states, trace=""):
    """A connector that runs itself, with tasks in these states."""
    tasks = (ConnectorPart(number, state, trace if state == "FAILED" else "") for number, state in enumerate(states))
    return ConnectorTasks(role, (ConnectorPart(None, "RUNNING"), *tasks))


def test_a_failed_task_of_mm2s_source_connector_blocks_with_the_first_line_of_its_trace():
    failed = {"src": mm2(Role.SOURCE, "RUNNING", "FAILED", trace="x.Boom: gone")}
    (told,) = found("mm2-tasks", tasks=failed)
    assert (told.level, told.subject) == (Level.BLOCK, "src")
    assert "task 1 is FAILED: x.Boom: gone" in told.seen and "task 0" not in told.seen
    assert blocked(tasks=failed) == {"g", "h"}
    waiver = Policies(waivers=(Waiver("mm2-tasks", "src"),))
    assert blocked(tasks=failed, policies=waiver) == set()


def test_a_source_connector_that_failed_itself_blocks_and_so_does_one_of_several():
    itself = {"src": ConnectorTasks(Role.SOURCE, (ConnectorPart(None, "FAILED", "x.Boom: no"),))}
    assert levels("mm2-tasks", tasks=itself) == {"src": Level.BLOCK}
    several = {"a": mm2(Role.SOURCE, "RUNNING"), "b": mm2(Role.SOURCE, "FAILED"), "c": mm2(Role.CHECKPOINT, "RUNNING")}
    assert levels("mm2-tasks", tasks=several) == {"b": Level.BLOCK, "a, c": Level.PASS}


def test_a_failed_checkpoint_task_and_whatever_else_does_not_run_warn_and_are_never_a_pass():
    for connector in (
        mm2(Role.CHECKPOINT, "FAILED"),
        mm2(Role.SOURCE, "PAUSED"),
        mm2(Role.CHECKPOINT, "RUNNING", "PAUSED"),
        mm2(Role.SOURCE, "UNASSIGNED"),
        mm2(Role.SOURCE, "RESTARTING"),
        mm2(Role.SOURCE, "in an unknown state"),
        mm2(Role.SOURCE),
        ConnectorTasks(Role.SOURCE, (ConnectorPart(None, "STOPPED"),)),
        ConnectorTasks(Role.SOURCE, (ConnectorPart(None, "PAUSED"), ConnectorPart(0, "RUNNING"))),
    ):
        assert levels("mm2-tasks", tasks={"c": connector}) == {"c": Level.WARN}, connector
    assert blocked(tasks={"c": mm2(Role.SOURCE, "PAUSED")}) == set()


def test_what_to_do_about_a_connector_that_does_not_run_goes_by_its_state():
    def todo(*states: str) -> str:
        parts = (ConnectorPart(None, "RUNNING"), *(ConnectorPart(n, state) for n, state in enumerate(states)))
        (told,) = found("mm2-tasks", tasks={"c": ConnectorTasks(Role.SOURCE, parts)})
        return told.todo

    for stopped in ("PAUSED", "STOPPED"):
        assert "/resume" in todo(stopped) and "live worker" not in todo(stopped)
    assert "live worker" in todo("UNASSIGNED") and "/resume" not in todo("UNASSIGNED")
    assert "/resume" in todo("PAUSED", "UNASSIGNED") and "live worker" in todo("PAUSED", "UNASSIGNED")
    for other in ("RESTARTING", "in an unknown state"):
        assert "/resume" not in todo(other) and "live worker" not in todo(other) and "again" in todo(other)


def test_a_state_that_the_worker_does_not_tell_is_not_visible():
    (told,) = found("mm2-tasks", tasks={"src": Failure("NOT_TOLD", "it is rebalancing")})
    assert (told.level, told.counts_as) == (Level.NOT_VISIBLE, Level.WARN) and "rebalancing" in told.seen


def test_while_the_source_is_down_its_tasks_fail_and_that_is_a_warning():
    down = {"tasks": {"src": mm2(Role.SOURCE, "FAILED")}, "source_down": True}
    assert levels("mm2-tasks", **down) == {"src": Level.WARN}


def test_without_a_worker_nothing_is_said_of_tasks():
    assert found("mm2-tasks") == []


def test_behind_another_replicator_every_check_on_mm2_says_that_nobody_asked_and_none_passes():
    facts = replace(FACTS, mm2=Mm2Facts((), copies=False))
    results = {r.check: r for r in checklist.run(facts, ROWS, Policies())}
    of_mm2 = [check.name for check in CHECKS if check.of_mm2]
    assert len(of_mm2) == 8
    for name in of_mm2:
        assert (results[name].level, results[name].seen) == (Level.NOT_VISIBLE, "not asked: another replicator"), name
    # That one may set groups' offsets, whoever it is.
    assert [name for name in of_mm2 if results[name].counts_as is Level.WARN] == ["group-sync"]


def test_groups_that_mm2_leaves_out_are_named():
    assert levels("mm2-group-filter", left_out_groups=("connect-s3",)) == {"connect-s3": Level.WARN}


def test_mm2s_group_sync_blocks_the_groups_that_it_touches_and_unknown_is_no_pass():
    assert levels("group-sync", synced_groups={"g", "h"}) == {"g": Level.BLOCK, "h": Level.BLOCK}
    assert blocked(synced_groups={"g"}) == {"g"}
    assert blocked(synced_groups={"g"}, policies=Policies(waivers=(Waiver("group-sync"),))) == set()
    unknown = found("group-sync", synced_groups=None)[0]
    assert (unknown.level, unknown.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    assert "checkpoint connector" in unknown.seen, "one may be given that lacks it"
    (passed,) = found("group-sync")
    # The setting itself may be true, where MM2 makes no checkpoints, or takes other groups.
    assert (passed.level, passed.seen) == (Level.PASS, "MM2 sets none of these groups")


def test_an_mm2_that_has_not_emitted_for_more_than_an_hour_is_named():
    assert levels("old-offset-syncs") == levels("old-checkpoints") == {"B": Level.PASS}
    assert levels("old-offset-syncs", **asked(newest_sync_ms=NOW - 3 * HOUR)) == {"B": Level.WARN}
    assert levels("old-offset-syncs", **asked(newest_sync_ms=FORBIDDEN)) == {"B": Level.NOT_VISIBLE}
    assert not found("old-offset-syncs", **asked(newest_sync_ms=None))
    assert not found("old-offset-syncs", source_down=True, **asked(newest_sync_ms=FORBIDDEN))
    (old,) = found("old-checkpoints", newest_checkpoint_ms=NOW - 25 * HOUR)
    assert old.level is Level.WARN and "2026-07-31 02:00 UTC" in old.seen and "25 hours" in old.seen


def test_what_this_machines_clock_has_not_come_to_is_neither_old_nor_new():
    (ahead,) = found("old-checkpoints", newest_checkpoint_ms=NOW + 2 * HOUR)
    assert ahead.level is Level.NOT_VISIBLE and ahead.counts_as is Level.WARN
    assert "of 2026-08-01 05:00 UTC, and by this machine's clock it is 2026-08-01 03:00 UTC" in ahead.seen
    assert levels("old-offset-syncs", **asked(newest_sync_ms=NOW + HOUR)) == {"B": Level.NOT_VISIBLE}
    assert levels("old-offset-syncs", **asked(newest_sync_ms=NOW + HOUR // 60)) == {"B": Level.PASS}
