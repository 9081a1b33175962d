"""Runs all checks, in the order in which they are listed, and says what their blocks touch. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from migrate.checks import clusters, group_kinds, groups, mm2, positions, topics
from migrate.checks import rows as row_checks
from migrate.checks.check import CheckFacts, Judge, Judged
from migrate.checks.registry import CHECKS, NEVER_ACCEPTABLE
from migrate.model import CheckResult, Level, Scope
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies
from migrate.text import capital

JUDGES: tuple[Judged, ...] = tuple(
    sorted(
        (
            value
            for module in (clusters, groups, group_kinds, mm2, row_checks, topics, positions)
            for value in vars(module).values()
            if isinstance(value, Judged)
        ),
        key=lambda judged: CHECKS.index(judged.checks[0]),
    )
)


def run(facts: CheckFacts, rows: PlanRows, policies: Policies) -> tuple[CheckResult, ...]:
    """Run all checks on groups, and turn blocks that a waiver covers into accepted warnings."""
    of_groups = (judged for judged in JUDGES if judged.checks[0].scope is not Scope.HOLDER)
    return tuple(_waived(result, policies) for judged in of_groups for result in _judge(judged)(facts, rows, policies))


def _judge(judged: Judged) -> Judge:
    """Return what judges; of what is about MM2 itself, where it does not copy, that nobody asked."""
    if not all(check.of_mm2 for check in judged.checks):
        return judged.judge

    def judge(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
        return judged.judge(facts, rows, policies) if facts.mm2.copies else mm2.not_asked(judged.checks, facts)

    return judge


def run_on_positions(
    facts: CheckFacts, held: PlanRows, policies: Policies, of_groups: Iterable[CheckResult]
) -> tuple[CheckResult, ...]:
    """Return what the checks say of positions, beside what they have said of groups; `facts` are of these alone.

    What is said already of a topic or a cluster is not said again, unless another thing is seen of these: their rows
    may be others.
    """
    said = {(c.check, c.scope, c.subject, c.seen) for c in of_groups if c.level is not Level.PASS}
    results = []
    of_positions = (judged for judged in JUDGES if all(check.holds_for_positions for check in judged.checks))
    for judged in of_positions if held else ():
        for result in judged.judge(facts, held, policies):
            if result.level is Level.PASS and result.scope is not Scope.HOLDER:
                results.append(replace(result, subject=f"{result.subject} of positions"))
            elif (result.check, result.scope, result.subject, result.seen) not in said:
                results.append(_waived(result, policies))
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
