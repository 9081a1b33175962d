"""Checks on consumer groups: stopped on both sides, whole, within limits, and what a rollback can restore."""

from collections.abc import Callable, Iterable
from functools import cache

from migrate.checks.check import Check, check, groups_of, is_without_members
from migrate.commit_table import partitions_by_group
from migrate.mm2 import checkpoint_table
from migrate.mm2.flow import Cluster
from migrate.model import (
    ABSENT,
    CheckResult,
    Decision,
    Failure,
    GroupState,
    Level,
    Row,
    Scope,
    Side,
    TopicPartition,
    rereads,
)
from migrate.row_table import PlanRows
from migrate.survey.expiry import (
    BLOCK_BELOW_MS,
    EXPIRY_EXPECTED,
    UNKNOWN_TODO,
    WARN_BELOW_MS,
    Expiry,
    OffsetClocks,
    expiry_of,
    remedy,
)
from migrate.survey.group_facts import cadence_text
from migrate.survey.offsets_topic import newest_ms
from migrate.survey.producers import LEAST_SECONDS
from migrate.survey.survey import Case, ClusterSurvey, Survey
from migrate.text import many, name, some


@check("checkpointed-topics-listed", Scope.GROUP, can_be_accepted=True, case=Case.SOURCE_READ)
def checkpointed_topics_listed(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups that MM2 checkpointed on topics the source does not show: brokers hide such commits in silence.

    Without DESCRIBE on a topic, OffsetFetch leaves its commits out and says nothing; a deleted topic looks alike.
    """
    for group, topics in sorted(_unlisted_topics_with_checkpoints(survey).items()):
        yield checkpointed_topics_listed.blocks(
            group, "every topic that MM2 checkpointed this group on, listed on the source",
            f"not listed: {some(sorted(topics))}",
            "Grant DESCRIBE on the topic, or if it was deleted, waive with --accept checkpointed-topics-listed:GROUP.",
        )  # fmt: skip


def _unlisted_topics_with_checkpoints(survey: Survey) -> dict[str, set[str]]:
    """Return, by group inside the filters, source topics that it has checkpoints on and that the source does not list.

    Also of a group that is listed and shows no commit: all of them may be on such topics.
    """
    unlisted: dict[str, set[str]] = {}
    source_topic = cache(survey.flow.policy.source_topic)
    there = survey.selected.groups_seen | survey.source.listed
    for group, target_topic in checkpoint_table.topics_with_checkpoints(survey.mm2.checkpoints.latest):
        topic = source_topic(target_topic)
        if topic is None or topic in survey.source.topics or group not in there:
            continue
        if survey.request.filters.verdict(group, topic) is None:
            unlisted.setdefault(group, set()).add(topic)
    return unlisted


@check("target-group-empty", Scope.GROUP, can_be_accepted=False)
def target_group_empty(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups that have members on the target."""
    todo = "Stop these consumers: the broker refuses to set offsets under a live group."
    on_target = survey.flow.target, survey.target
    return _stopped(target_group_empty, survey, on_target, rows, todo, lambda group: "")


@check("source-group-stopped", Scope.GROUP, can_be_accepted=True, case=Case.SOURCE_READ)
def source_group_stopped(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups that still have members on the source."""
    todo = "Stop these consumers, then plan again: what they commit from now on is not in the plan."

    def cadence(group: str) -> str:
        text = cadence_text(survey.group_facts.source_record(group))
        return f"; it {text}" if text else ""

    on_source = survey.flow.source, survey.source
    return _stopped(source_group_stopped, survey, on_source, rows, todo, cadence)


def _stopped(
    check: Check, survey: Survey, side: tuple[Cluster, ClusterSurvey], rows: PlanRows, todo: str,
    cadence: Callable[[str], str],
) -> Iterable[CheckResult]:  # fmt: skip
    """Judge the groups of one side; `cadence` says how often one that is alive commits, "" where nobody can tell."""
    cluster, read = side
    alias = cluster.alias
    fine = 0
    expected = f"no member on {alias}"
    for group in groups_of(rows):
        state = read.states.get(group)
        if state is None or isinstance(state, Failure):
            why = "no answer" if state is None else str(state)
            yield check.unseen(
                Level.BLOCK, group, expected, f"its state could not be read ({why})",
                f"Grant DESCRIBE on the group, or try again when {alias} is well.",
            )  # fmt: skip
        elif is_without_members(state):
            fine += 1
        else:
            who = f": {state.some_members()}" if state.members else ""
            kind = " (KIP-848)" if state.kind == "consumer" else ""
            members = many(state.member_count, "member")
            seen = f"{state.state} on {_where(survey, cluster, group)}{kind} with {members}{who}{cadence(group)}"
            yield check.blocks(group, expected, seen, todo)
    if fine:
        yield check.passes(many(fine, "group"), expected, "Empty, Dead or absent")


def _where(survey: Survey, cluster: Cluster, group: str) -> str:
    """Return the cluster, and what the group is called there if that is not its name on the source."""
    called = survey.target_names.renamed.get(group)
    return cluster.alias if cluster.side is Side.SOURCE or called is None else f"{cluster.alias} as {name(called)}"


@check("two-looks", Scope.CLUSTER, can_be_accepted=True)
def two_looks(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block where groups count as absent by what is one listing: they vanish from listings while they rebalance."""
    groups = groups_of(rows)
    for cluster, read in survey.clusters_read:
        alias, states = cluster.alias, (read.states.get(group) for group in groups)
        absent = sum(isinstance(state, GroupState) and state.state == ABSENT for state in states)
        if not absent:
            continue
        expected = f"two listings of the groups, at least {LEAST_SECONDS:.0f} s apart"
        if read.seconds_apart >= LEAST_SECONDS:
            seen = f"{many(absent, 'group')} in neither"
            yield two_looks.passes(alias, expected, seen)
        else:
            yield two_looks.unseen(
                Level.BLOCK, alias, expected,
                f"two at about the same time, {many(absent, 'group')} in neither: one that rebalances is not listed",
                f"Set --settle to some seconds, or waive with --accept {two_looks}:{alias}.",
            )  # fmt: skip


@check("pending-transactions", Scope.GROUP, can_be_accepted=True)
def pending_transactions(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups with transactional offsets pending (KIP-447): they may still commit."""
    for group in sorted(survey.unstable):
        yield pending_transactions.blocks(
            group, "no transaction open on its offsets",
            "a transaction has offsets of this group pending: they may still commit",
            "Stop the transactional producer; the coordinator aborts it after transaction.timeout.ms.",
        )  # fmt: skip


@check("offsets-expiry", Scope.GROUP, can_be_accepted=True)
def offsets_expiry(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Say by when consumers must be back on the target; block groups whose offsets would be gone within 2 hours."""
    kept: dict[str, set[TopicPartition]] = {}
    setting = set()
    for group, table in rows.groups().items():
        facts_of_rows = zip(table.target_partitions(), table.values("target_offset", "decision"), strict=True)
        for partition, (offset, decision) in facts_of_rows:
            if offset is not None and decision is not Decision.SKIP:
                mine = kept.setdefault(group, set())
                if decision is Decision.KEEP:
                    mine.add(partition)
                else:
                    setting.add(group)
    fine: list[Expiry] = []
    # A clock of ours that is behind would promise time that the brokers do not give.
    now_ms = max(survey.taken_at_ms, _newest_seen_ms(survey))
    read, alias = survey.group_facts, survey.flow.target.alias
    clocks = OffsetClocks(alias, read.target_settings, read.target_records, now_ms)
    for group, partitions in kept.items():
        state = survey.target.states.get(group)
        if not isinstance(state, GroupState) or not is_without_members(state):
            continue  # alive there, or unknown: a check of its own blocks it
        expiry = expiry_of(group, state, partitions, group in setting, clocks)
        result = _expiry_result(group, expiry, now_ms, alias)
        if result is None:
            fine.append(expiry)
        else:
            yield result
    if fine:
        first = min(fine, key=lambda expiry: expiry.back_by_ms or 0)
        yield offsets_expiry.passes(many(len(fine), "group"), EXPIRY_EXPECTED, first.sentence)


def _newest_seen_ms(survey: Survey) -> int:
    """The newest time of what MM2 or the target's brokers have written, which their clocks have passed; else 0."""
    mm2_times = (checkpoint_table.newest_ms(survey.mm2.checkpoints.latest), survey.group_facts.newest_sync_ms)
    times = (time for time in mm2_times if isinstance(time, int))
    return max([newest_ms(survey.group_facts.target_records), *times])


def _expiry_result(group: str, expiry: Expiry, now_ms: int, alias: str) -> CheckResult | None:
    """Return the result for a group whose offsets may be gone too soon; None where there is time."""
    left = expiry.left_ms(now_ms)
    if left is None:
        seen = f"unknown: {expiry.sentence}"
        return offsets_expiry.unseen(Level.WARN, group, EXPIRY_EXPECTED, seen, UNKNOWN_TODO)
    if left >= WARN_BELOW_MS:
        return None
    level = Level.BLOCK if left < BLOCK_BELOW_MS else Level.WARN
    todo = remedy(expiry, alias) + ("; or waive with --accept offsets-expiry:GROUP." if level is Level.BLOCK else ".")
    return offsets_expiry.result(level, group, EXPIRY_EXPECTED, expiry.at(now_ms), todo)


@check("commits-moving", Scope.GROUP)
def commits_moving(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name groups without members whose commits moved between two readings: readers that assign() never join."""
    flow, again = survey.flow, survey.group_facts
    for cluster, states, moving, unread in (
        (flow.source, survey.source.states, again.moving_on_source, again.unread_on_source),
        (flow.target, survey.target.states, again.moving_on_target, again.unread_on_target),
    ):
        expected = f"commits on {cluster.alias} that do not move"
        for group, why in sorted(unread.items()):
            yield commits_moving.unseen(
                Level.WARN, group, expected, f"they could not be read a second time ({why})",
                "Make sure yourself that nothing commits for the group, or plan again.",
            )  # fmt: skip
        for group, partitions in sorted(moving.items()):
            if is_without_members(states.get(group)):
                where = _where(survey, cluster, group)
                yield commits_moving.warns(
                    group, expected,
                    f"it has no member on {where}, and yet its commits moved: {some(partitions, 3)}",
                    "Something commits without joining the group: a reader that uses assign() (Flink, Spark), MM2's "
                    "group sync, or a tool that sets offsets, mm2-migrate among them. Stop it, then plan again.",
                )  # fmt: skip


@check("re-read-limit", Scope.GROUP, can_be_accepted=True, needs_records=True)
def reread_limit(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups that would read more records twice than `--max-rereads` allows."""
    totals: dict[str, int] = {}
    guessed, unknown = set(), 0
    for group, table in rows.groups().items():
        bounds = table.column("rereads_at_most")
        if set(table.column("decision")) == {Decision.SET} and None not in bounds:
            totals[group] = sum(table.whole("rereads_at_most"))
            continue
        for row in table:
            if row.decision is not Decision.SKIP:
                unknown += row.target_offset is not None and rereads(row) is None
                if row.rereads_at_most is None:
                    guessed.add(group)
                totals[group] = totals.get(group, 0) + (rereads(row) or 0)
    limit = survey.request.policies.max_rereads
    expected = f"at most {many(limit, 'record')} read twice per group"
    for group, total in sorted(totals.items()):
        if total > limit:
            seen = f"{'about' if group in guessed else 'at most'} {many(total, 'record')}"
            todo = "Raise --max-rereads, or waive with --accept re-read-limit:GROUP."
            yield reread_limit.blocks(group, expected, seen, todo)
    if unknown:
        yield reread_limit.on_cluster.unseen(
            Level.WARN, survey.flow.target.alias, expected,
            f"how many records {many(unknown, 'row')} will read twice is not known",
            "Compare the target offsets with the target's log ends: at most that many.",
        )  # fmt: skip
    elif totals and max(totals.values()) <= limit:
        about = "about " if guessed else ""
        seen = f"{about}{max(totals.values())} at most, {about}{sum(totals.values())} in all"
        yield reread_limit.passes(many(len(totals), "group"), expected, seen)


@check("source-down", Scope.GROUP, can_be_accepted=True, case=Case.SOURCE_DOWN)
def source_down(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block every group planned without the source until a reviewer accepts it by name."""
    for group in groups_of(rows):
        yield source_down.blocks(
            group, "the group's live commits, read on the source",
            "planned from MM2's checkpoints on the target alone, which nothing here can refute; a commit after them, "
            "even a reset backwards, is unknown",
            "If the source is lost for good, accept with --accept source-down or source-down:GROUP.",
        )  # fmt: skip


@check("groups-unknown", Scope.GROUP, case=Case.SOURCE_DOWN)
def groups_unknown(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name groups that nobody can know of while the source is down: MM2 keeps no checkpoints of them."""
    group_filter = survey.flow.group_filter
    excluded = (group_filter.exclude if group_filter else ()) or ("groups.exclude",)
    for pattern in excluded:
        yield groups_unknown.unseen(
            Level.WARN, pattern, "every group of the source",
            "MM2 leaves these groups out and writes no checkpoints of them: whether there are any is unknown",
            "Find their last offsets by other means before their consumers start on the target.",
        )  # fmt: skip


@check("partitions-never-committed", Scope.GROUP)
def partitions_never_committed(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name partitions of a group's topics where `auto.offset.reset` will decide."""
    never, without = _never_committed(survey), survey.selected.without_offset
    for group in sorted(never.keys() | without.keys()):
        seen = [f"none on {some(never[group])}"] if group in never else []
        seen += [f"a commit without an offset (-1) on {some(map(str, without[group]))}"] if group in without else []
        yield partitions_never_committed.warns(
            group, "a commit on every partition of its topics", ", ".join(seen),
            "There auto.offset.reset decides on the target: set it to earliest, or use --uncommitted earliest. Once "
            "consumers have committed there, a rollback removes the planned offsets one by one, which takes Java.",
        )  # fmt: skip


def _never_committed(survey: Survey) -> dict[str, list[str]]:
    """Return, by group, the partitions of its topics that it has no commit for."""
    missing: dict[str, list[str]] = {}
    for group, partitions in sorted(partitions_by_group(survey.keys).items()):
        committed = {*partitions, *survey.selected.without_offset.get(group, ())}
        absent = [
            f"{topic}-{partition}"
            for topic in sorted({place.topic for place in partitions})
            for partition in range(survey.source.topics.get(topic, 0))
            if (topic, partition) not in committed
        ]
        if absent:
            missing[group] = absent
    return missing


def _set(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.decision is Decision.SET]


@check("java-needed", Scope.CLUSTER)
def java_needed(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Say, before anything is written, what only Kafka's Java client can write, bring back or compare."""
    with_prior = (table for table in rows.groups().values() if {*table.column("target_prior")} - {None})
    alone = (row for table in with_prior for row in table if row.target_prior is None)
    kept = rows.where("decision", lambda decision: decision is Decision.KEEP)
    needs = {
        "commits with metadata": _set(rows.where("target_metadata", bool)),
        "prior commits with metadata": _set(rows.where("target_prior_metadata", bool)),
        "kept commits with metadata to compare": [r for r in kept if r.target_prior_metadata or r.source_metadata],
        "offsets that a rollback removes while others of their group stay": _set(alone),
    }
    seen = [f"{len(needing)} {what}" for what, needing in needs.items() if needing]
    if seen:
        groups = {row.group for needing in needs.values() for row in needing}
        yield java_needed.warns(
            survey.flow.target.alias, "offsets that every client can write, bring back and compare",
            f"{', '.join(seen)} in {many(len(groups), 'group')}",
            "apply and rollback use Kafka's Java client for these: run them where Java is, as plan was. They try it "
            "before the first write.",
        )  # fmt: skip
