"""All checks, in the order in which they are told, and what their blocks touch.

To add a check: write it in the module of its subject, name it in `CHECKS`, and list it in docs and tests.
"""

from collections.abc import Iterable
from dataclasses import replace

from migrate.checks import clusters as clusterchecks
from migrate.checks import group_kinds as kindchecks
from migrate.checks import groups as groupchecks
from migrate.checks import mm2 as mm2checks
from migrate.checks import rows as rowchecks
from migrate.checks import topics as topicchecks
from migrate.checks.check import Check, CheckFacts
from migrate.model import CheckResult, Level, Row, Scope
from migrate.survey.policies import NEVER_ACCEPTABLE, Policies
from migrate.text import capital


def run(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> tuple[CheckResult, ...]:
    """Run all checks, and turn blocks that a waiver covers into accepted warnings."""
    results = [result for check in CHECKS for result in check(facts, rows, policies)]
    return tuple(_waived(result, policies) for result in results)


def blocked_groups(results: Iterable[CheckResult], rows: Iterable[Row]) -> dict[str, tuple[str, str]]:
    """Return the groups that blocking results touch, each with the first such (check, sentence).

    A cluster's block touches every group, a topic's the groups with a row on it, a group's itself; a row's is told
    by `blocked_rows`.
    """
    blocking = [r for r in results if r.counts_as is Level.BLOCK and r.scope is not Scope.ROW]
    of_cluster = [r for r in blocking if r.scope is Scope.CLUSTER]
    of_topic = {r.subject: r for r in reversed(blocking) if r.scope is Scope.TOPIC}
    of_group = {r.subject: r for r in reversed(blocking) if r.scope is Scope.GROUP}
    blocked: dict[str, tuple[str, str]] = {}
    for row in rows:
        if row.group in blocked:
            continue
        found = of_cluster[0] if of_cluster else of_group.get(row.group) or of_topic.get(row.source_topic)
        if found is not None:
            blocked[row.group] = (found.check, _sentence(found))
    return blocked


def blocked_rows(results: Iterable[CheckResult]) -> dict[str, tuple[str, str]]:
    """Return the rows, by subject, that blocking results name, each with the first such (check, sentence)."""
    blocking = [r for r in results if r.counts_as is Level.BLOCK and r.scope is Scope.ROW]
    return {r.subject: (r.check, _sentence(r)) for r in reversed(blocking)}


def _sentence(found: CheckResult) -> str:
    return f"{capital(found.seen)}; expected {found.expected}."


def _waived(result: CheckResult, policies: Policies) -> CheckResult:
    if result.counts_as is not Level.BLOCK or result.check in NEVER_ACCEPTABLE:
        return result
    if not policies.accepts(result.check, result.subject):
        return result
    return replace(result, level=Level.WARN, counts_as=Level.WARN, accepted=True)


CHECKS: tuple[Check, ...] = (
    clusterchecks.clusters_differ,
    clusterchecks.listing_complete,
    clusterchecks.topics_visible,
    clusterchecks.mm2_topics,
    groupchecks.named_groups_exist,
    groupchecks.checkpointed_topics_listed,
    groupchecks.source_down,
    clusterchecks.target_topics,
    topicchecks.producers_stopped,
    topicchecks.not_drained,
    groupchecks.target_group_empty,
    groupchecks.source_group_stopped,
    groupchecks.two_looks,
    groupchecks.pending_transactions,
    groupchecks.offsets_expiry,
    mm2checks.tasks_run,
    mm2checks.group_sync,
    kindchecks.other_kinds,
    rowchecks.row_blocks,
    rowchecks.commit_of_another_log,
    rowchecks.metadata_too_long,
    rowchecks.untranslatable_rows,
    topicchecks.missing_on_target,
    topicchecks.unread_on_target_only,
    topicchecks.timestamps_not_kept,
    groupchecks.reread_limit,
    groupchecks.never_committed,
    groupchecks.commits_moving,
    kindchecks.group_protocol,
    kindchecks.kafka_streams,
    kindchecks.connect_sinks,
    kindchecks.connect_internal_topics,
    kindchecks.vendor_groups,
    mm2checks.left_out_by_mm2,
    mm2checks.still_emits,
    topicchecks.dedicated,
    rowchecks.target_retention,
    rowchecks.estimated,
    groupchecks.java_needed,
)
