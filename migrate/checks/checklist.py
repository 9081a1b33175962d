"""All checks, in the order in which they are listed; runs them, and says what their blocks touch. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from migrate.checks import clusters, group_kinds, group_names, groups, mm2, positions, topics
from migrate.checks import rows as row_checks
from migrate.checks.check import Check
from migrate.errors import UsageError
from migrate.model import CheckResult, Level, Scope
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, Waiver
from migrate.survey.survey import Survey
from migrate.text import capital

CHECKS: tuple[Check, ...] = (
    clusters.clusters_differ,
    clusters.listing_complete,
    clusters.checkpointed_groups_listed,
    clusters.listing_agrees,
    clusters.commit_undecodable,
    clusters.topics_visible,
    mm2.mm2_checkpoints_topic,
    mm2.mm2_offset_syncs_topic,
    group_names.named_groups_exist,
    group_names.group_name_unusable,
    group_names.group_name_shared,
    group_names.group_under_old_name,
    group_names.group_name_taken,
    groups.checkpointed_topics_listed,
    groups.source_down,
    groups.groups_unknown,
    topics.target_topic_exists,
    topics.target_partitions,
    topics.producers_stopped,
    topics.not_drained,
    topics.target_recreated,
    groups.target_group_empty,
    groups.source_group_stopped,
    groups.two_looks,
    groups.pending_transactions,
    groups.offsets_expiry,
    mm2.mm2_tasks,
    mm2.group_sync,
    group_kinds.share_group,
    group_kinds.streams_group,
    row_checks.inside_target_log,
    row_checks.rewind,
    row_checks.commit_beyond_log_end,
    row_checks.log_not_visible,
    row_checks.commit_of_another_log,
    row_checks.metadata_too_long,
    row_checks.topic_not_replicated,
    row_checks.target_partition_missing,
    row_checks.source_topic_missing,
    row_checks.source_gone_without_checkpoint,
    row_checks.commit_as_of_gone,
    row_checks.no_commit_as_of,
    topics.missing_on_target,
    topics.unread_on_target_only,
    topics.sync_unguarded,
    topics.timestamps_not_kept,
    topics.open_transaction,
    groups.reread_limit,
    groups.partitions_never_committed,
    groups.commits_moving,
    group_kinds.group_protocol,
    group_kinds.kafka_streams,
    group_kinds.connect_sink,
    group_kinds.connect_internal_topics,
    group_kinds.vendor_groups,
    mm2.mm2_group_filter,
    mm2.old_offset_syncs,
    mm2.old_checkpoints,
    topics.target_topic_dedicated,
    row_checks.target_retention,
    row_checks.estimated_rows,
    positions.spark_batch_open,
    positions.state_would_count_twice,
    positions.sink_remembers_batches,
    positions.position_moves,
    positions.positions_differ,
    positions.holder_partitions,
    groups.java_needed,
)
ACCEPTABLE_CHECKS = tuple(sorted(check.name for check in CHECKS if check.can_be_accepted))
NEVER_ACCEPTABLE = frozenset(check.name for check in CHECKS if check.can_be_accepted is False)


def parse_waiver(text: str) -> Waiver:
    """Read `CHECK[:SUBJECT]`; raises `UsageError` for a check that is unknown or cannot be waived."""
    check, colon, subject = text.partition(":")
    if check in NEVER_ACCEPTABLE:
        raise UsageError(
            f"--accept {text}: the check {check!r} can never be waived.",
            "Fix what it found, or leave the groups out with --exclude-group.",
        )
    if check not in ACCEPTABLE_CHECKS:
        raise UsageError(
            f"--accept {text}: there is no check {check!r} that can be waived.",
            f"Checks that can: {', '.join(ACCEPTABLE_CHECKS)}.",
        )
    return Waiver(check, subject if colon else None)


def run(survey: Survey, rows: PlanRows) -> tuple[CheckResult, ...]:
    """Run all checks on groups, and turn blocks that a waiver covers into accepted warnings."""
    of_groups = (check for check in CHECKS if check.scope is not Scope.HOLDER)
    return tuple(
        _waived(result, survey.request.policies) for check in of_groups for result in _judged(check, survey, rows)
    )


def _judged(check: Check, survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Return what a check says; of one that is about MM2 itself, where MM2 does not copy, that nobody asked."""
    is_asked = survey.flow.by_mm2 or not check.of_mm2
    return check.judge(survey, rows) if is_asked else (mm2.not_asked(check, survey),)


def run_on_positions(survey: Survey, held: PlanRows, of_groups: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
    """Return what the checks say of positions, beside what they have said of groups; `held` are their rows.

    What is said already of a topic or a cluster is not said again, unless another thing is seen of these: their rows
    may be others.
    """
    said = {(c.check, c.scope, c.subject, c.seen) for c in of_groups if c.level is not Level.PASS}
    results = []
    of_positions = (check for check in CHECKS if check.holds_for_positions)
    for check in of_positions if held else ():
        for result in check.judge(survey, held):
            if result.level is Level.PASS and result.scope is not Scope.HOLDER:
                results.append(replace(result, subject=f"{result.subject} of positions"))
            elif (result.check, result.scope, result.subject, result.seen) not in said:
                results.append(_waived(result, survey.request.policies))
    return tuple(results)


def blocked_groups(
    results: Iterable[CheckResult], rows: PlanRows, scope: Scope = Scope.GROUP
) -> dict[str, tuple[str, str]]:
    """Return the groups that blocking results touch, each with the first such (check, sentence).

    With the `scope` of holders and their rows, the holders. A cluster's block touches every group, a topic's the groups
    with a row on it, a group's itself; for a row's see `blocked_rows`.
    """
    blocking = [r for r in results if r.counts_as is Level.BLOCK and r.scope is not Scope.ROW]
    of_cluster = [r for r in blocking if r.scope is Scope.CLUSTER]
    of_topic = {r.subject: r for r in reversed(blocking) if r.scope is Scope.TOPIC}
    of_group = {r.subject: r for r in reversed(blocking) if r.scope is scope}
    blocked: dict[str, tuple[str, str]] = {}
    for group, own_rows in rows.groups().items():
        on_topics = (of_topic[topic] for topic in own_rows.column("source_topic") if topic in of_topic)
        block = of_cluster[0] if of_cluster else of_group.get(group) or next(on_topics, None)
        if block is not None:
            blocked[group] = (block.check, _sentence(block))
    return blocked


def blocked_rows(results: Iterable[CheckResult]) -> dict[str, tuple[str, str]]:
    """Return the rows, by subject, that blocking results name, each with the first such (check, sentence)."""
    blocking = [r for r in results if r.counts_as is Level.BLOCK and r.scope is Scope.ROW]
    return {r.subject: (r.check, _sentence(r)) for r in reversed(blocking)}


def _sentence(result: CheckResult) -> str:
    return f"{capital(result.seen)}; expected {result.expected}."


def _waived(result: CheckResult, policies: Policies) -> CheckResult:
    if result.counts_as is not Level.BLOCK or result.check in NEVER_ACCEPTABLE:
        return result
    if not policies.accepts(result.check, result.subject):
        return result
    return replace(result, level=Level.WARN, counts_as=Level.WARN, accepted=True)
