"""Checks on MirrorMaker 2 itself: what it writes besides, what it leaves out, and whether it still emits."""

from collections.abc import Iterable, Set

from migrate.checks import registry as checks
from migrate.checks.check import CheckFacts, groups_of, judges
from migrate.checks.registry import Check
from migrate.clock import CLOCKS_APART_MS, minute
from migrate.mm2.connector_status import FAILED, PAUSED, RUNNING, STOPPED, UNASSIGNED
from migrate.mm2.connectors import Role
from migrate.mm2.flow import NOT_MM2
from migrate.model import CheckResult, Failure, Level
from migrate.row_table import PlanRows
from migrate.survey.expiry import MINUTE_MS, span
from migrate.survey.policies import Policies
from migrate.text import many

OLD_AFTER_MS = 60 * MINUTE_MS


def not_asked(of_mm2: Iterable[Check], facts: CheckFacts) -> Iterable[CheckResult]:
    """Say of checks on MM2 that another replicator copies; whether that sets groups' offsets matters all the same."""
    for check in of_mm2:
        expected = f"what MM2 would show on {facts.target.alias}"
        if check is checks.GROUP_SYNC:
            yield check.on_cluster.unseen(
                Level.WARN, facts.target.alias, f"nobody but apply sets offsets on {facts.target.alias}", NOT_MM2,
                "Make sure yourself that the replicator sets no offsets of groups while you cut over.",
            )  # fmt: skip
        else:
            yield check.on_cluster.unseen(Level.PASS, facts.target.alias, expected, NOT_MM2, "")


@judges(checks.GROUP_SYNC)
def group_sync(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block groups whose offsets MM2 writes on the target as well: it may overwrite what `apply` sets.

    KAFKA-19794: a group that was alive when MM2 looked and empty when it wrote is set back. Groups that MM2's own
    filter leaves out are not touched.
    """
    expected = f"sync.group.offsets.enabled=false: nobody but apply sets offsets on {facts.target.alias}"
    other_way = f"whether an MM2 copies from {facts.source.alias} to {facts.target.alias} as well, and sets offsets"
    groups = groups_of(rows)
    synced, names = facts.mm2.synced_groups, facts.mm2.synced_names
    if synced is None:
        yield checks.GROUP_SYNC.on_cluster.unseen(
            Level.WARN, facts.target.alias, expected,
            f"{other_way}, is not known" if facts.failback
            else "no MM2 configuration that has a checkpoint connector of this flow was given",
            "Look there yourself: MM2's default is false.",
        )  # fmt: skip
    elif synced or names:
        for group in sorted(names.keys() & set(groups)):
            name = names[group]
            yield checks.GROUP_SYNC.blocks(
                group, expected,
                f"sync.group.offsets.enabled is true, and {facts.source.alias} has a group {name} as well, which MM2's "
                f"group filter takes: MM2 writes that one's offsets to {name} on {facts.target.alias}, which is this "
                "group's name there",
                "Set it to false for this flow and restart MM2, or stop its checkpoint connector, then plan again; or "
                "waive with --accept group-sync:GROUP.",
            )  # fmt: skip
        for group in sorted(synced & set(groups) - names.keys()):
            takes = "takes"
            if group in facts.mm2.perhaps_synced:
                takes = "may take, as groups.blacklist counts before Kafka 4.0 alone and its version is not known,"
            yield checks.GROUP_SYNC.blocks(
                group, expected,
                f"sync.group.offsets.enabled is true, and MM2's group filter {takes} this group (KAFKA-19794)"
                + (f", on {facts.target.alias} under its old name" if group in facts.target.names else ""),
                "Set it to false for this flow and restart MM2, or stop its checkpoint connector, then plan again; or "
                "waive with --accept group-sync:GROUP.",
            )  # fmt: skip
    elif groups:
        yield checks.GROUP_SYNC.on_cluster.passes(facts.target.alias, expected, "MM2 sets none of these groups")


@judges(checks.MM2_TASKS)
def tasks_run(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block on a failed task of MM2's source connector: MM2 silently stops copying its partitions.

    A checkpoint connector that failed, and one that is paused or stopped, warn: rows do not rest on checkpoints, and
    whether everything was copied is `not_drained`'s to say. While the source is down its tasks fail, and that warns.
    """
    expected = "every connector of MM2's, and every task of it, RUNNING"
    fine = []
    for connector, tasks in sorted(facts.mm2.tasks.items()):
        if isinstance(tasks, Failure):
            yield checks.MM2_TASKS.unseen(
                Level.WARN, connector, expected, f"the worker did not tell its state: {tasks.message}",
                "Look at GET /connectors/NAME/status yourself.",
            )  # fmt: skip
            continue
        failed = tasks.in_state(FAILED)
        others = [part for part in tasks.parts if part.state not in (RUNNING, FAILED)]
        seen = "; ".join(str(part) for part in (*failed, *others))
        if failed:
            is_block = tasks.role is Role.SOURCE and not facts.source_down
            todo = "Remove its cause, and restart it: POST /connectors/NAME/restart?includeTasks=true&onlyFailed=true."
            if is_block:
                todo += " Or, where all is copied (not-drained passes), waive with --accept mm2-tasks:NAME."
            yield checks.MM2_TASKS.result(Level.BLOCK if is_block else Level.WARN, connector, expected, seen, todo)
        elif others:
            yield checks.MM2_TASKS.warns(connector, expected, seen, _to_run_again({part.state for part in others}))
        elif len(tasks.parts) == 1:
            yield checks.MM2_TASKS.warns(
                connector, expected, "it is RUNNING, and has no task",
                "It found nothing to do: do its topics and groups (or their excludes) match anything?",
            )  # fmt: skip
        else:
            fine.append(connector)
    if fine:
        yield checks.MM2_TASKS.passes(", ".join(fine), expected, "all of them are")


def _to_run_again(states: Set[str]) -> str:
    """Return what to do about parts in these states: a resume starts only what was paused or stopped."""
    todo = ["What does not run copies and checkpoints nothing."]
    if not {PAUSED, STOPPED}.isdisjoint(states):
        todo.append("Paused or stopped: PUT /connectors/NAME/resume, unless you stopped it.")
    if UNASSIGNED in states:
        todo.append("Unassigned: it needs a live worker; look whether the Connect cluster has one, and rebalances.")
    if not states <= {PAUSED, STOPPED, UNASSIGNED}:
        todo.append("Look at GET /connectors/NAME/status again in a moment.")
    return " ".join(todo)


@judges(checks.MM2_GROUP_FILTER)
def left_out_by_mm2(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Name groups of the plan that MM2's own filter leaves out."""
    for group in facts.mm2.left_out_groups:
        yield checks.MM2_GROUP_FILTER.warns(
            group, "a group that MM2's own filter takes", "its groups and groups.exclude leave it out",
            "It has no checkpoints; it is translated from the records and the offset syncs all the same.",
        )  # fmt: skip


@judges(checks.OLD_OFFSET_SYNCS, checks.OLD_CHECKPOINTS)
def still_emits(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Warn where MM2's newest offset sync or checkpoint is old: a task of it may have stopped.

    MM2 writes none while nothing is copied or committed, so that it is no proof.
    """
    if facts.failback:
        return
    syncs_ms, checkpoint_ms = facts.group_facts.newest_sync_ms, facts.mm2.newest_checkpoint_ms
    for check, what, when, task in (
        (checks.OLD_OFFSET_SYNCS, "an offset sync", syncs_ms, "source connector (MirrorSourceConnector)"),
        (checks.OLD_CHECKPOINTS, "a checkpoint", checkpoint_ms, "checkpoint connector"),
    ):
        expected = f"{what} not older than {span(OLD_AFTER_MS)}"
        if isinstance(when, Failure):
            if facts.source_down:
                continue
            yield check.unseen(
                Level.WARN, facts.target.alias, expected, f"the time of the newest one was not told ({when.code})",
                "Look at MM2's log or its REST status.",
            )  # fmt: skip
        elif when is not None:
            age = facts.now_ms - when
            if age < -CLOCKS_APART_MS:
                yield check.unseen(
                    Level.WARN, facts.target.alias, expected,
                    f"the newest is of {minute(when)}, and by this machine's clock it is {minute(facts.now_ms)}: how "
                    "old it is cannot be told", "Set this machine's clock right, then plan again.",
                )  # fmt: skip
            elif age > OLD_AFTER_MS:
                yield check.warns(
                    facts.target.alias, expected,
                    f"the newest is of {minute(when)}, {many(age // (60 * MINUTE_MS), 'hour')} before this plan by "
                    "this machine's clock",
                    f"Fine if nothing was copied or committed since. Else look whether MM2's {task} runs.",
                )  # fmt: skip
            else:
                yield check.passes(facts.target.alias, expected, f"the newest is of {minute(when)}")
