"""Checks on MirrorMaker 2: its two topics, its tasks, what it writes besides, what it leaves out, if it still emits."""

from collections.abc import Iterable, Mapping

from migrate.checks.check import Check, check, groups_of
from migrate.clock import CLOCKS_APART_MS, minute
from migrate.mm2.checkpoint_table import newest_ms
from migrate.mm2.connector_status import FAILED, RUNNING
from migrate.mm2.connectors import Role
from migrate.mm2.flow import NOT_MM2
from migrate.mm2.wire import RecordKind
from migrate.model import CheckResult, Failure, Level, Scope, Side
from migrate.row_table import PlanRows
from migrate.survey.expiry import MINUTE_MS, span
from migrate.survey.survey import Case, Mm2Topic, Survey
from migrate.text import many

OLD_AFTER_MS = 60 * MINUTE_MS
NOT_RUNNING_TODO = (
    "What does not run copies and checkpoints nothing. Paused or stopped: PUT /connectors/NAME/resume, unless you "
    "stopped it. Unassigned: it needs a live worker. Else look at GET /connectors/NAME/status again in a moment."
)


@check("mm2-checkpoints-topic", Scope.CLUSTER, can_be_accepted=True, case=Case.BY_MM2 | Case.WAY_THERE)
def mm2_checkpoints_topic(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Judge MM2's checkpoints topic by the records found there; they say nothing of the way back."""
    read, option = survey.mm2.checkpoints_topic, "--checkpoints-topic"
    return _of_topic(mm2_checkpoints_topic, survey, read, "checkpoint", survey.mm2.checkpoints.counts, option)


@check("mm2-offset-syncs-topic", Scope.CLUSTER, can_be_accepted=True, case=Case.BY_MM2)
def mm2_offset_syncs_topic(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Judge MM2's offset-syncs topic by the records found there."""
    read, option = survey.mm2.syncs_topic, "--offset-syncs-topic"
    return _of_topic(mm2_offset_syncs_topic, survey, read, "offset-sync", survey.mm2.syncs.counts, option)


def _of_topic(
    check: Check, survey: Survey, read: Mm2Topic, kind: str, counts: Mapping[str, int], option: str
) -> Iterable[CheckResult]:
    """Judge a topic that should hold records of this kind; a wrong topic is named by what it holds.

    `counts` are its records by kind ("undecodable:<reason>" for those of no kind).
    """
    flow, topic = survey.flow, read.topic
    named, why = topic in flow.named, flow.why_not_emitted(topic)
    alias = (flow.source if read.side is Side.SOURCE else flow.target).alias
    expected = f"topic {topic} on {alias}, holding MM2's {kind} records"
    right = counts.get(kind, 0)
    wrong = {k: n for k, n in counts.items() if k not in (kind, "tombstone") and n}
    kinds = ", ".join(f"{n} {k}" for k, n in sorted(wrong.items()))
    if read.found is None:
        yield check.unseen(
            Level.WARN, topic, expected, "the source is down: not checked", "The plan goes on without it."
        )
    elif not read.found:
        todo = [] if why and not named else [f"Check the aliases, the policy's separator and {option}."]
        todo += [] if named else ["The plan goes on without it."]
        level = Level.BLOCK if named else Level.WARN
        yield check.result(level, topic, expected, f"there is no such topic{f': {why}' if why else ''}", " ".join(todo))
    elif not right and wrong:
        seen = f"none of its records is one; it holds {kinds}"
        way = f"Name the right topic with {option}."
        if any(found.endswith(RecordKind.CONNECT_JSON) for found in wrong):
            way = f"They went through a JSON converter: MM2's connectors need ByteArrayConverter. Else: {way}"
        yield check.blocks(topic, expected, seen, way)
    elif not right:
        yield check.warns(
            topic, expected, f"it holds no such record{f': {why}' if why else ''}",
            "" if why else "MM2 has not written there yet, or writes elsewhere.",
        )  # fmt: skip
    elif wrong:
        yield check.warns(
            topic,
            expected,
            f"{many(right, 'record')} read, {kinds} left aside",
            "Find out who else writes to this topic.",
        )
    else:
        yield check.passes(topic, expected, f"{many(right, 'record')} read")


@check("mm2-tasks", Scope.CLUSTER, can_be_accepted=True, case=Case.BY_MM2)
def mm2_tasks(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block on a failed task of MM2's source connector: MM2 silently stops copying its partitions.

    A checkpoint connector that failed, and one that is paused or stopped, warn: rows do not rest on checkpoints, and
    whether everything was copied is `not_drained`'s to say. While the source is down its tasks fail, and that warns.
    """
    expected = "every connector of MM2's, and every task of it, RUNNING"
    fine = []
    for connector, tasks in sorted(survey.mm2.tasks.items()):
        if isinstance(tasks, Failure):
            yield mm2_tasks.unseen(
                Level.WARN, connector, expected, f"the worker did not return its state: {tasks.message}",
                "Look at GET /connectors/NAME/status yourself.",
            )  # fmt: skip
            continue
        failed = [part for part in tasks.parts if part.state == FAILED]
        others = [part for part in tasks.parts if part.state not in (RUNNING, FAILED)]
        seen = "; ".join(str(part) for part in (*failed, *others))
        if failed:
            is_block = tasks.role is Role.SOURCE and Case.SOURCE_READ in survey.case
            todo = "Remove its cause, and restart it: POST /connectors/NAME/restart?includeTasks=true&onlyFailed=true."
            if is_block:
                todo += " Or, where all is copied (not-drained passes), waive with --accept mm2-tasks:NAME."
            yield mm2_tasks.result(Level.BLOCK if is_block else Level.WARN, connector, expected, seen, todo)
        elif others:
            yield mm2_tasks.warns(connector, expected, seen, NOT_RUNNING_TODO)
        elif len(tasks.parts) == 1:
            yield mm2_tasks.warns(
                connector, expected, "it is RUNNING, and has no task",
                "It found nothing to do: do its topics and groups (or their excludes) match anything?",
            )  # fmt: skip
        else:
            fine.append(connector)
    if fine:
        yield mm2_tasks.passes(", ".join(fine), expected, "all of them are")


@check("group-sync", Scope.GROUP, can_be_accepted=True, case=Case.BY_MM2)
def group_sync(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups whose offsets MM2 writes on the target as well: it may overwrite what `apply` sets.

    KAFKA-19794: a group that was alive when MM2 looked and empty when it wrote is set back. Groups that MM2's own
    filter leaves out are not touched.
    """
    flow, source, target = survey.flow, survey.flow.source.alias, survey.flow.target.alias
    expected = f"sync.group.offsets.enabled=false: only apply sets offsets on {target}"
    todo = (
        "Set it to false for this flow and restart MM2, or stop its checkpoint connector, then plan again; or waive "
        "with --accept group-sync:GROUP."
    )
    groups, synced, names = set(groups_of(rows)), flow.synced(survey.groups), _synced_names(survey)
    if synced is None:
        other_way = f"whether an MM2 copies from {source} to {target} as well, and sets offsets, is not known"
        yield group_sync.on_cluster.unseen(
            Level.WARN, target, expected,
            other_way if flow.failback
            else "no MM2 configuration that has a checkpoint connector of this flow was given",
            "Look there yourself: MM2's default is false.",
        )  # fmt: skip
    elif synced or names:
        for group in sorted(groups & names.keys()):
            yield group_sync.blocks(
                group, expected,
                f"sync.group.offsets.enabled is true, and {source} has a group {names[group]} as well, which MM2's "
                f"group filter takes: MM2 writes that one's offsets to {names[group]} on {target}, which is this "
                "group's name there", todo,
            )  # fmt: skip
        perhaps = flow.perhaps_synced(survey.groups)
        for group in sorted(synced & groups - names.keys()):
            takes = "takes"
            if group in perhaps:
                takes = "may take, as groups.blacklist counts before Kafka 4.0 alone and its version is not known,"
            yield group_sync.blocks(
                group, expected,
                f"sync.group.offsets.enabled is true, and MM2's group filter {takes} this group (KAFKA-19794)"
                + (f", on {target} under its old name" if group in survey.target_names.renamed else ""), todo,
            )  # fmt: skip
    elif groups:
        yield group_sync.on_cluster.passes(target, expected, "MM2 sets none of these groups")


def _synced_names(survey: Survey) -> dict[str, str]:
    """Return, by group, its new name on the target where another group of the source has it, which MM2 syncs."""
    there = survey.selected.groups_seen | survey.source.listed
    renamed = survey.target_names.renamed
    synced = survey.flow.synced(renamed.values()) or frozenset()
    return {group: name for group, name in renamed.items() if name in there & synced}


@check("mm2-group-filter", Scope.GROUP, case=Case.BY_MM2)
def mm2_group_filter(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name groups of the plan that MM2's own filter leaves out."""
    for group in survey.flow.left_out(survey.groups):
        yield mm2_group_filter.warns(
            group, "a group that MM2's own filter takes", "its groups and groups.exclude leave it out",
            "It has no checkpoints; it is translated from the records and the offset syncs all the same.",
        )  # fmt: skip


@check("old-offset-syncs", Scope.CLUSTER, case=Case.BY_MM2 | Case.WAY_THERE)
def old_offset_syncs(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Warn where MM2's newest offset sync is old: a task of its source connector may have stopped."""
    task = "source connector (MirrorSourceConnector)"
    return _still_emits(old_offset_syncs, survey, "an offset sync", survey.group_facts.newest_sync_ms, task)


@check("old-checkpoints", Scope.CLUSTER, case=Case.BY_MM2 | Case.WAY_THERE)
def old_checkpoints(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Warn where MM2's newest checkpoint is old: its checkpoint connector may have stopped."""
    newest = newest_ms(survey.mm2.checkpoints.latest)
    return _still_emits(old_checkpoints, survey, "a checkpoint", newest, "checkpoint connector")


def _still_emits(
    check: Check, survey: Survey, what: str, when: int | None | Failure, task: str
) -> Iterable[CheckResult]:
    """Judge the age of MM2's newest record of a kind.

    MM2 writes none while nothing is copied or committed, so that it is no proof.
    """
    if when is None:
        return
    target, now_ms = survey.flow.target.alias, survey.taken_at_ms
    expected = f"{what} not older than {span(OLD_AFTER_MS)}"
    if isinstance(when, Failure):
        if Case.SOURCE_READ in survey.case:
            yield check.unseen(
                Level.WARN, target, expected, f"the time of the newest one could not be read ({when.code})",
                "Look at MM2's log or its REST status.",
            )  # fmt: skip
        return
    age = now_ms - when
    if age < -CLOCKS_APART_MS:
        yield check.unseen(
            Level.WARN, target, expected,
            f"the newest is of {minute(when)}, and by this machine's clock it is {minute(now_ms)}: how old it is "
            "cannot be told", "Set this machine's clock right, then plan again.",
        )  # fmt: skip
    elif age > OLD_AFTER_MS:
        yield check.warns(
            target, expected,
            f"the newest is of {minute(when)}, {many(age // (60 * MINUTE_MS), 'hour')} before this plan by this "
            "machine's clock", f"Fine if nothing was copied or committed since. Else look whether MM2's {task} runs.",
        )  # fmt: skip
    else:
        yield check.passes(target, expected, f"the newest is of {minute(when)}")


def not_asked(of_mm2: Check, survey: Survey) -> CheckResult:
    """Say of a check on MM2 that another replicator copies; whether that sets groups' offsets matters all the same."""
    target = survey.flow.target.alias
    if of_mm2 is group_sync:
        return group_sync.on_cluster.unseen(
            Level.WARN, target, f"only apply sets offsets on {target}", NOT_MM2,
            "Make sure yourself that the replicator sets no offsets of groups while you cut over.",
        )  # fmt: skip
    return of_mm2.on_cluster.unseen(Level.PASS, target, f"what MM2 would show on {target}", NOT_MM2, "")
