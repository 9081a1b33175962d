"""All checks, in the order in which they are listed; runs them, and says what their blocks touch. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from migrate.checks import clusters, group_kinds, group_names, groups, mm2, topics
from migrate.checks import rows as row_checks
from migrate.checks.check import Check
from migrate.errors import UsageError
from migrate.model import CheckResult, Level, Scope
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, Waiver
from migrate.survey.survey import Case, Survey
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
    *row_checks.UNTRANSLATABLE,
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
    groups.java_needed,
)
NEVER_ACCEPTABLE = frozenset(check.name for check in CHECKS if check.can_be_accepted is False)


def acceptable(checks: Sequence[Check]) -> tuple[str, ...]:
    """Return the names of those checks of which a waiver covers the blocks."""
    return tuple(sorted(check.name for check in checks if check.can_be_accepted))


def parse_waiver(text: str, checks: Sequence[Check] = CHECKS) -> Waiver:
    """Read `CHECK[:SUBJECT]` of these checks; raises `UsageError` for one that is unknown or cannot be waived."""
    check, colon, subject = text.partition(":")
    if check in NEVER_ACCEPTABLE:
        raise UsageError(
            f"--accept {text}: the check {check!r} can never be waived.",
            "Fix what it found, or leave out what it blocks: a group with --exclude-group.",
        )
    if check not in (known := acceptable(checks)):
        raise UsageError(
            f"--accept {text}: there is no check {check!r} that can be waived.",
            f"Checks that can: {', '.join(known)}.",
        )
    return Waiver(check, subject if colon else None)


def run(survey: Survey, rows: PlanRows, checks: Sequence[Check] = CHECKS) -> tuple[CheckResult, ...]:
    """Run checks, and turn blocks that a waiver covers into accepted warnings."""
    return tuple(waived(result, survey.request.policies) for check in checks for result in _judged(check, survey, rows))


def _judged(check: Check, survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Return what a check says of a survey that it is about; of one on MM2, where another copies, that nobody asked."""
    other = check.case & ~survey.case
    if Case.BY_MM2 in other:
        return (mm2.not_asked(check, survey),)
    return () if other else check.judge(survey, rows)


def blocked_groups(results: Iterable[CheckResult], rows: PlanRows) -> dict[str, tuple[str, str]]:
    """Return the groups that blocking results touch, each with the first such (check, sentence).

    A cluster's block touches every group, a topic's the groups
    with a row on it, a group's itself; for a row's see `blocked_rows`.
    """
    blocking = [r for r in results if r.counts_as is Level.BLOCK and r.scope is not Scope.ROW]
    of_cluster = [r for r in blocking if r.scope is Scope.CLUSTER]
    of_topic = {r.subject: r for r in reversed(blocking) if r.scope is Scope.TOPIC}
    of_group = {r.subject: r for r in reversed(blocking) if r.scope is Scope.GROUP}
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


def waived(result: CheckResult, policies: Policies) -> CheckResult:
    """Return a result, or where a waiver covers its block an accepted warning."""
    if result.counts_as is not Level.BLOCK or result.check in NEVER_ACCEPTABLE:
        return result
    if not policies.accepts(result.check, result.subject):
        return result
    return replace(result, level=Level.WARN, counts_as=Level.WARN, accepted=True)
