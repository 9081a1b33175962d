"""From a survey to a plan: rows, checks, header. Pure: the same survey gives the same bytes."""

from itertools import chain

from migrate import __version__
from migrate.checks import checklist
from migrate.commit_table import GroupCommits
from migrate.model import CheckResult, Scope
from migrate.plan.decide import decide, decide_positions
from migrate.plan.header import flow_names, pinned_ranges, planned_activity, planned_states, reading_cost
from migrate.plan.held import counts_of_copies, origins, position_row, with_open_batches
from migrate.plan.plan import CUTOVER, FORMAT_VERSION, Header, Plan
from migrate.plan.rows import with_blocks
from migrate.plan.totals import sums_of
from migrate.row_table import PlanRows
from migrate.survey.survey import Survey


def plan_of(survey: Survey) -> Plan:
    """Translate every commit of the survey, run the checks, and lay their blocks over the rows."""
    request, flow = survey.request, survey.flow
    rows, of_groups = checked(survey)
    held, of_holders = _checked_positions(survey, of_groups)
    results = (*of_groups, *of_holders)
    keys = survey.keys
    committed = len(keys) if isinstance(keys, GroupCommits) else sum(commit is not None for commit in keys.values())
    header = Header(
        format_version=FORMAT_VERSION,
        tool_version=__version__,
        kind=CUTOVER,
        created_at_ms=survey.taken_at_ms,
        source_alias=flow.source.alias,
        target_alias=flow.target.alias,
        source_cluster_id=survey.source.facts.cluster_id,
        target_cluster_id=survey.target.facts.cluster_id,
        source_down=request.source_down,
        flow=flow_names(flow),
        settings=request.settings,
        waivers=tuple(str(w) for w in request.policies.waivers),
        target_topic_ids=survey.target.topic_ids,
        source_topic_ids=survey.source.topic_ids,
        pinned=pinned_ranges(survey),
        group_states=planned_states(survey),
        activity=planned_activity(survey),
        checks=results,
        counts={
            "commits_read": survey.selected.commits_read,
            "rows": len(rows),
            "uncommitted_added": len(survey.keys) - committed,
            **{f"filtered:{name}": count for name, count in sorted(survey.selected.filtered.items())},
            **counts_of_copies(survey),
        },
        mm2_counts={
            **{f"checkpoints topic: {kind}": n for kind, n in sorted(survey.mm2.checkpoints.counts.items())},
            **{f"offset-syncs topic: {kind}": n for kind, n in sorted(survey.mm2.syncs.counts.items())},
        },
        timings=survey.timings,
        undoes="",
        undoes_events=0,
        undoes_digest="",
        failback=flow.failback,
        comparison=reading_cost(survey.comparison) if request.limits.match_records else {},
        sums=sums_of(rows),
        positions=origins(survey.held),
        mandate=None,
    )
    blocked_rows = checklist.blocked_rows(results)
    return Plan(
        header,
        with_blocks(rows, checklist.blocked_groups(results, rows), blocked_rows),
        with_blocks(held, checklist.blocked_groups(results, held, Scope.HOLDER), blocked_rows),
    )


def checked(survey: Survey) -> tuple[PlanRows, tuple[CheckResult, ...]]:
    """Return the rows before blocks are laid over them, and what the checks say."""
    rows = PlanRows(decide(survey))
    return rows, checklist.run(survey, rows)


def _checked_positions(survey: Survey, of_groups: tuple[CheckResult, ...]) -> tuple[PlanRows, tuple[CheckResult, ...]]:
    """Return the positions before blocks are laid over them, and what the checks say beside what they say of groups."""
    held = survey.held
    translated, ends = (chain.from_iterable(decide_positions(survey, offsets)) for offsets in held.every)
    rows = PlanRows.of(position_row(row, held) for row in translated)
    results = checklist.run_on_positions(survey, rows, of_groups)
    # After the checks: a state is not of the batch that was not finished.
    return with_open_batches(rows, ends, held), results
