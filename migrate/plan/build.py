"""From a survey to a plan: rows, checks, header. Pure: the same survey gives the same bytes."""

from migrate import __version__
from migrate.checks import checklist
from migrate.commit_table import GroupCommits
from migrate.match.protocol import Comparison
from migrate.mm2.flow import Flow
from migrate.model import CheckResult, Failure, GroupState, LogRange, Side
from migrate.plan.plan import CUTOVER, FORMAT_VERSION, Header, PinnedRange, Plan, PlannedActivity, PlannedGroupState
from migrate.plan.rows import decide, with_blocks
from migrate.row_table import PlanRows
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from migrate.survey.survey import Survey


def plan_of(survey: Survey) -> Plan:
    """Translate every commit of the survey, run the checks, and lay their blocks over the rows."""
    request, flow = survey.request, survey.flow
    rows, results = checked(survey)
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
        source_down=not request.commits.asks_source,
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
            "commits_read": sum(map(len, survey.selected.read.values())),
            "rows": len(rows),
            "uncommitted_added": len(survey.keys) - committed,
            **{f"filtered:{name}": count for name, count in sorted(survey.selected.filtered.items())},
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
    )
    blocked = checklist.blocked_groups(results, rows), checklist.blocked_rows(results)
    return Plan(header, with_blocks(rows, *blocked))


def checked(survey: Survey) -> tuple[PlanRows, tuple[CheckResult, ...]]:
    """Return the rows before blocks are laid over them, and what the checks say."""
    rows = PlanRows(decide(survey))
    return rows, checklist.run(survey, rows)


def flow_names(flow: Flow) -> dict[str, str]:
    """Return the names that were used: policy, MM2's topics, brokers, MM2's own filter."""
    side = flow.syncs_side
    return {
        "replication_policy": str(flow.policy.kind),
        "separator": flow.policy.separator,
        "offset_syncs_location": str(flow.turned(side, side.other)[0]) if flow.offset_syncs_topic else "",
        "checkpoints_topic": flow.checkpoints_topic,
        "offset_syncs_topic": flow.offset_syncs_topic,
        "source_bootstrap": flow.source.bootstrap,
        "target_bootstrap": flow.target.bootstrap,
        "topics": ",".join(flow.topic_filter.include) if flow.topic_filter else "",
        "topics_exclude": ",".join(flow.topic_filter.exclude) if flow.topic_filter else "",
        **flow.runtime_words(),
    }


def reading_cost(compared: Comparison | None) -> dict[str, int]:
    """Return what comparing was expected to read and did read."""
    if compared is None:
        return {}
    answers = compared.answers.values()
    return {
        "partitions": compared.estimate.partitions,
        "left_out": compared.estimate.left_out,
        "source_bytes_estimated": compared.estimate.source_bytes,
        "source_bytes_fetched": compared.source_bytes,
        "source_records_estimated": compared.estimate.source_records,
        "source_records_read": sum(a.source_read for a in answers),
        "target_bytes_estimated": compared.estimate.target_bytes,
        "target_bytes_fetched": compared.target_bytes,
        "target_records_estimated": compared.estimate.target_records,
        "target_records_read": sum(a.target_read for a in answers),
    }


def pinned_ranges(survey: Survey) -> tuple[PinnedRange, ...]:
    """Return every log range that the plan was made from, sorted."""
    ranges = [
        PinnedRange(str(side), tp.topic, tp.partition, log.start, log.end)
        for side, logs in ((Side.SOURCE, survey.logs.source), (Side.TARGET, survey.logs.target))
        for tp, log in logs.items()
        if isinstance(log, LogRange)
    ]
    ranges += [
        PinnedRange(str(read.side), read.topic, 0, read.pinned.start, read.pinned.end)
        for read in (survey.mm2.checkpoints_topic, survey.mm2.syncs_topic)
        if read.pinned
    ]
    if survey.selected.topic_seen is not None:
        read = survey.selected.topic_seen.pin.logs
        ranges += [PinnedRange(str(Side.SOURCE), OFFSETS_TOPIC, p, log.start, log.end) for p, log in read.items()]
    ranges += [
        PinnedRange(str(Side.TARGET), place.topic, place.partition, log.start, log.end)
        for place, log in survey.mm2.positions.pinned.items()
    ]
    return tuple(sorted(ranges, key=lambda r: (r.side, r.topic, r.partition)))


def planned_states(survey: Survey) -> tuple[PlannedGroupState, ...]:
    """Return the groups' states, those of the source first."""
    return tuple(
        PlannedGroupState(str(side), group, state.state, state.member_count, state.kind)
        for side, states in ((Side.SOURCE, survey.source.states), (Side.TARGET, survey.target.states))
        for group, state in sorted(states.items())
        if isinstance(state, GroupState)
    )


def planned_activity(survey: Survey) -> tuple[PlannedActivity, ...]:
    """Return when groups committed last on the source, and how often: those of the plan whose records could be read."""
    records = survey.group_facts.source_records
    known = {} if isinstance(records, Failure) else {g: r for g, r in records.items() if g in survey.groups}
    return tuple(
        PlannedActivity(group, last, _ms(record.seconds_between_commits), record.records_between_commits)
        for group, record in sorted(known.items())
        if (last := record.last_commit_ms) is not None
    )


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
