"""From a survey to a plan: rows, checks, header. Pure: the same survey and time give the same bytes."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import chain

from migrate import __version__
from migrate.checks import checklist
from migrate.checks.check import CheckFacts, ClusterSide, GroupNames, HiddenTopics, Mm2Facts, TopicFacts, TopicShape
from migrate.checks.rights import is_infrastructure
from migrate.commit_table import GroupCommits, has_epochs, partitions_by_group, partitions_of_keys
from migrate.errors import UsageError
from migrate.mm2.checkpoint_table import newest_ms, topics_with_checkpoints
from migrate.mm2.flow import Cluster, Flow
from migrate.model import CheckResult, Failure, GroupState, LogRange, Scope, Side, TopicPartition
from migrate.plan.decide import decide, decide_positions
from migrate.plan.header import flow_names, pinned_ranges, planned_activity, planned_states, reading_cost
from migrate.plan.held import (
    counts_of_copies,
    facts_of_positions,
    origins,
    partition_counts,
    position_row,
    with_open_batches,
)
from migrate.plan.plan import CUTOVER, FORMAT_VERSION, Header, Plan
from migrate.plan.rows import with_blocks
from migrate.plan.totals import sums_of
from migrate.row_table import PlanRows
from migrate.survey.connect_topics import ConnectTopic, without_copy
from migrate.survey.drain import Drained, DrainFacts, drained
from migrate.survey.filters import EXCLUDED
from migrate.survey.groups import other_kinds
from migrate.survey.other_log import LogProofs, log_proofs, other_log
from migrate.survey.streams import Application, application, applications_of, internal_topics
from migrate.survey.survey import ClusterSurvey, Mm2Records, PlanRequest, Survey, copy_of


def plan_of(request: PlanRequest, survey: Survey, now_ms: int) -> Plan:
    """Translate every commit of the survey, run the checks, and lay their blocks over the rows."""
    flow = request.flow
    facts, rows, of_groups = judged(request, survey, now_ms)
    held, of_holders = _judged_positions(request, survey, facts, of_groups)
    results = (*of_groups, *of_holders)
    keys = survey.keys
    committed = len(keys) if isinstance(keys, GroupCommits) else sum(commit is not None for commit in keys.values())
    header = Header(
        format_version=FORMAT_VERSION,
        tool_version=__version__,
        kind=CUTOVER,
        created_at_ms=now_ms,
        source_alias=flow.source.alias,
        target_alias=flow.target.alias,
        source_cluster_id=facts.source.cluster_id,
        target_cluster_id=facts.target.cluster_id,
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
            **counts_of_copies(flow, survey),
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


def judged(request: PlanRequest, survey: Survey, now_ms: int) -> tuple[CheckFacts, PlanRows, tuple[CheckResult, ...]]:
    """Return the facts for the checks, the rows before blocks are laid over them, and what the checks say."""
    rows = PlanRows(decide(request, survey))
    facts = _check_facts(request, survey, now_ms)
    return facts, rows, checklist.run(facts, rows, request.policies)


def _judged_positions(
    request: PlanRequest, survey: Survey, facts: CheckFacts, of_groups: tuple[CheckResult, ...]
) -> tuple[PlanRows, tuple[CheckResult, ...]]:
    """Return the positions before blocks are laid over them, and what the checks say beside what they say of groups."""
    held = survey.held
    translated, ends = (chain.from_iterable(decide_positions(request, survey, offsets)) for offsets in held.every)
    rows = PlanRows.of(position_row(row, held) for row in translated)
    own = facts_of_positions(facts, request.flow, survey)
    results = checklist.run_on_positions(own, rows, request.policies, of_groups)
    # After the checks: a state is not of the batch that was not finished.
    return with_open_batches(rows, ends, held), results


def _check_facts(request: PlanRequest, survey: Survey, now_ms: int) -> CheckFacts:
    flow, down = request.flow, request.source_down
    topics = {partition.topic for partition in partitions_of_keys(survey.keys)}
    return CheckFacts(
        source=_side(request, flow.source, survey.source, LogProofs() if down else _logs_on_source(survey), {}),
        target=_side(request, flow.target, survey.target, _logs_on_target(flow, survey), survey.target_names.renamed),
        topics=TopicFacts(
            partitions=partition_counts(flow, survey, topics),
            drains={} if down or flow.failback else _drains(flow, survey),
            growth=survey.growth,
            foreign_records={} if flow.failback else _foreign_records(survey),
            copy_ends=survey.copy_ends,
            unread_tails=frozenset() if down or flow.failback else _unread_tails(flow, survey),
            of_connect=_not_copied(flow, survey),
            # What is missing on the way back is the original, which MM2 does not make.
            why_perhaps_missing={}
            if flow.failback or not flow.by_mm2
            else {topic: flow.why_perhaps_not_replicated(topic) for topic in topics},
            unread_ends=frozenset(
                source
                for source, log in survey.logs.source.items()
                if isinstance(log, LogRange) and survey.watermarks.is_open(source, log)
            ),
        ),
        groups=_group_names(request, survey),
        mm2=Mm2Facts(
            shapes=_shapes(flow, survey.mm2) if flow.by_mm2 else (),
            copies=flow.by_mm2,
            newest_checkpoint_ms=newest_ms(survey.mm2.checkpoints.latest),
            tasks=survey.mm2.tasks,
            left_out_groups=flow.left_out(survey.groups),
            synced_groups=flow.synced(survey.groups),
            perhaps_synced=flow.perhaps_synced(survey.groups),
            synced_names=_synced_names(flow, survey),
            positions_unknown=survey.mm2.positions.unknown,
        ),
        group_facts=survey.group_facts,
        source_down=down,
        failback=flow.failback,
        now_ms=now_ms,
        is_as_of=survey.selected.as_of is not None,
    )


def _side(
    request: PlanRequest, cluster: Cluster, read: ClusterSurvey, logs: LogProofs, names: Mapping[str, str]
) -> ClusterSide:
    hidden = None if read.hidden is None else _hidden(request, cluster.side, read.hidden)
    facts = read.facts
    return ClusterSide(
        cluster.alias, facts.cluster_id, facts.may_describe, read.states, read.seconds_apart, hidden, logs, names
    )


def _group_names(request: PlanRequest, survey: Survey) -> GroupNames:
    flow, down = request.flow, request.source_down
    excluded = flow.group_filter.exclude if flow.group_filter else ()
    only_checkpointed = (
        {group for group, _ in topics_with_checkpoints(survey.mm2.checkpoints.latest)}
        - survey.source.listed
        - set(survey.target_names.renamed.values())
    )
    return GroupNames(
        never_committed=_never_committed(survey),
        without_offset={g: tuple(map(str, p)) for g, p in survey.selected.without_offset.items()},
        unseen_topics={} if down else _unseen_topics(request, survey),
        unstable=survey.unstable,
        checkpointed_only=() if down else tuple(sorted(only_checkpointed)),
        unknown_names=request.filters.unknown_names(survey.selected.groups_seen),
        unknown_when_down=(excluded or ("groups.exclude",)) if down else (),
        other_kinds=other_kinds(survey.group_facts.source_kinds, request.filters),
        applications=_applications(flow, survey),
        witness=survey.selected.witness,
        idle_map_lines=request.group_map.idle_lines(survey.selected.groups_seen),
        under_old_names=survey.under_old_names,
        shared_names=_shared_names(request, survey),
        checkpointed_under_new_name=_checkpointed_under_new_name(survey) if down else (),
        taken_names={} if flow.failback else _taken_names(request, survey),
    )


def _taken_names(request: PlanRequest, survey: Survey) -> dict[str, tuple[str, ...]]:
    """Return, by renamed group, where the group with its new name has committed on topics that are none of its own."""
    renamed, policy = survey.target_names.renamed, request.flow.policy
    own: dict[str, set[str]] = {}
    for key in survey.keys if renamed else ():
        if key.group in renamed:
            own.setdefault(key.group, set()).add(policy.target_topic(key.topic))

    def is_of_another_wave(topic: str) -> bool:
        source_topic = policy.source_topic(topic)
        return source_topic is not None and request.filters.topic_verdict(source_topic) is not None

    others = {
        group: tuple(
            str(place)
            for place in sorted(survey.priors.get(group, {}))
            if place.topic not in own.get(group, ()) and not is_of_another_wave(place.topic)
        )
        for group in renamed
    }
    return {group: places for group, places in others.items() if places}


def _synced_names(flow: Flow, survey: Survey) -> dict[str, str]:
    """Return, by group, its new name on the target where another group of the source has it, which MM2 syncs."""
    there = survey.selected.groups_seen | survey.source.listed
    renamed = survey.target_names.renamed
    synced = flow.synced(renamed.values()) or frozenset()
    return {group: name for group, name in renamed.items() if name in there & synced}


def _shared_names(request: PlanRequest, survey: Survey) -> dict[str, str]:
    """Return, by group of the plan, a group of the source that is not in it and would have its name on the target.

    Two of the plan itself are refused before (`TargetNames.of`); without a map no two groups share a name.
    """
    if not request.group_map:
        return {}
    planned = {survey.target_names.on_target(group): group for group in survey.groups}
    # What is excluded stays; what a wave does not name moves with another.
    others = sorted(
        group
        for group in survey.selected.groups_seen.difference(survey.groups)
        if request.filters.group_verdict(group) not in EXCLUDED
    )
    shared = {}
    for other in others:
        # One that would be left without a name is refused once it is to move.
        with suppress(UsageError):
            if (group := planned.get(request.group_map.mapped(other))) is not None:
                shared[group] = other
    return shared


def _checkpointed_under_new_name(survey: Survey) -> tuple[str, ...]:
    """Return the renamed groups that have checkpoints under the target's name and none under their own."""
    checkpointed = {group for group, _ in topics_with_checkpoints(survey.mm2.checkpoints.latest)}
    renamed = survey.target_names.renamed.items()
    return tuple(sorted(group for group, name in renamed if name in checkpointed and group not in checkpointed))


def _logs_on_source(survey: Survey) -> LogProofs:
    """Return what is proven of the logs that the commits on the source were made on."""
    records, as_of = survey.group_facts.source_records, survey.selected.as_of
    if as_of is not None:
        # Of an earlier commit the newest records say nothing, not even where its offset is the same.
        made_on = as_of.made_on
    else:
        made_on = {} if isinstance(records, Failure) else {group: record.made_on for group, record in records.items()}
    return log_proofs(survey.keys, survey.logs.source, made_on, survey.source.topic_ids)


def _logs_on_target(flow: Flow, survey: Survey) -> LogProofs:
    """Return the places, by their names on the source, whose commit on the target is of another log than it has now."""
    if not any(map(has_epochs, survey.priors.values())):
        return LogProofs()
    copies = {source: copy_of(flow, source) for source in partitions_of_keys(survey.keys)}
    committed = ((key, survey.priors.get(key.group, {}).get(copies[key.source_partition])) for key in survey.keys)
    proofs = (
        (key, other_log(prior, survey.logs.target.get(copies[key.source_partition])))
        for key, prior in committed
        if prior is not None
    )
    return LogProofs({key: proof for key, proof in proofs if proof is not None})


def _hidden(request: PlanRequest, side: Side, topics: frozenset[str] | Failure) -> HiddenTopics:
    """Sort the topics that a cluster hides by whether this plan may be about them."""
    if isinstance(topics, Failure):
        return HiddenTopics(unknown=f"{topics.code} ({topics.message})")
    flow = request.flow
    own = {flow.checkpoints_topic, flow.offset_syncs_topic, *flow.connect_offsets_topics} - {""}

    def concerned(topic: str) -> bool:
        source_topic = topic if side is Side.SOURCE else flow.policy.source_topic(topic)
        if topic in own:
            return True
        if source_topic is None or topic.startswith("__") or flow.why_not_replicated(source_topic):
            return False
        return request.filters.topic_verdict(source_topic) is None

    return HiddenTopics(
        tuple(sorted(filter(concerned, topics))),
        tuple(sorted(t for t in topics if not (concerned(t) or is_infrastructure(t)))),
    )


def _not_copied(flow: Flow, survey: Survey) -> tuple[ConnectTopic, ...]:
    """Return Connect's own topics on the source that the target lacks under their names, hidden ones included."""
    hidden = survey.target.hidden
    on_target = survey.target.topics.keys() | (hidden if isinstance(hidden, frozenset) else frozenset())
    missing = without_copy(survey.connect_topics, on_target)
    # What a failback leaves may hold copies of what is where it goes.
    return tuple(m for m in missing if not (flow.failback and flow.policy.target_topic(m.topic) in on_target))


def _applications(flow: Flow, survey: Survey) -> dict[str, Application]:
    """Return the groups of the plan that look like Kafka Streams."""
    metadata: dict[str, set[str]] = {}
    keys = survey.keys
    has_some = not isinstance(keys, GroupCommits) or any(table.has_metadata for table in keys.groups().values())
    for key, commit in keys.items() if has_some else ():
        if commit is not None and commit.metadata:
            metadata.setdefault(key.group, set()).add(commit.metadata)
    topics_of = applications_of(survey.source.topics, survey.source.listed.union(survey.groups))
    applications = {}
    for group in survey.groups:
        state = survey.source.states.get(group)
        assignor = state.assignor if isinstance(state, GroupState) else ""
        internal = internal_topics(topics_of.get(group, ()), survey.target.topics, flow.policy)
        app = application(assignor, metadata.get(group, ()), internal)
        if app is not None:
            applications[group] = app
    return applications


def _foreign_records(survey: Survey) -> dict[str, tuple[int, int]]:
    """Count, by source topic, records on the target that equal none of the source, and those that may be copies."""
    foreign, perhaps_copies = Counter[str](), Counter[str]()
    for source, answer in survey.answers.items():
        foreign[source.topic] += answer.tail.foreign
        perhaps_copies[source.topic] += answer.tail.perhaps_copies
    return {topic: (count, perhaps_copies[topic]) for topic, count in foreign.items() if count}


def _unread_tails(flow: Flow, survey: Survey) -> frozenset[str]:
    """Return the source's topics with records on both sides whose ends no comparing has judged."""
    unread = set()
    for source, log in survey.logs.source.items():
        copy, answer = survey.logs.target.get(copy_of(flow, source)), survey.answers.get(source)
        if answer is None:
            is_told = survey.comparison is not None  # it has no commit that could be placed
        else:
            is_told = answer.tail.uncopied is not None or answer.tail.foreign > 0
        if not is_told and all(isinstance(each, LogRange) and each.start < each.end for each in (log, copy)):
            unread.add(source.topic)
    return frozenset(unread)


def _drains(flow: Flow, survey: Survey) -> dict[TopicPartition, Drained]:
    """Judge every partition of the plan of which both logs are pinned."""
    drains = {}
    for source, source_log in survey.logs.source.items():
        target = copy_of(flow, source)
        target_log, answer = survey.logs.target.get(target), survey.answers.get(source)
        if isinstance(source_log, LogRange) and isinstance(target_log, LogRange):
            facts = DrainFacts(
                source_log,
                target_log,
                survey.watermarks.source.get(source),
                survey.watermarks.target.get(target),
                survey.mm2.positions.last_copied_offset.get(source),
                answer.tail if answer else None,
                flow.by_mm2,
            )
            drains[source] = drained(facts, flow.source.alias, flow.target.alias)
    return drains


def _unseen_topics(request: PlanRequest, survey: Survey) -> dict[str, tuple[str, ...]]:
    """Return, by group inside the filters, source topics that it has checkpoints on and that the source does not list.

    Also of a group that is listed and shows no commit: all of them may be on such topics.
    """
    unseen: dict[str, set[str]] = {}
    source_topic = cache(request.flow.policy.source_topic)
    there = survey.selected.groups_seen | survey.source.listed
    for group, target_topic in topics_with_checkpoints(survey.mm2.checkpoints.latest):
        topic = source_topic(target_topic)
        if topic is None or topic in survey.source.topics or group not in there:
            continue
        if request.filters.verdict(group, topic) is None:
            unseen.setdefault(group, set()).add(topic)
    return {group: tuple(sorted(topics)) for group, topics in unseen.items()}


def _shapes(flow: Flow, mm2: Mm2Records) -> tuple[TopicShape, ...]:
    aliases = {Side.SOURCE: flow.source.alias, Side.TARGET: flow.target.alias}
    checkpoints = (mm2.checkpoints_topic, "checkpoint", mm2.checkpoints.counts)
    syncs = (mm2.syncs_topic, "offset-sync", mm2.syncs.counts)
    return tuple(
        TopicShape(
            aliases[read.side],
            read.topic,
            kind,
            read.found,
            read.topic in flow.named,
            counts,
            flow.why_not_emitted(read.topic),
        )
        # Checkpoints say nothing of the way back.
        for read, kind, counts in ((syncs,) if flow.failback else (checkpoints, syncs))
    )


def _never_committed(survey: Survey) -> dict[str, tuple[str, ...]]:
    missing: dict[str, tuple[str, ...]] = {}
    for group, partitions in sorted(partitions_by_group(survey.keys).items()):
        committed = {*partitions, *survey.selected.without_offset.get(group, ())}
        absent = tuple(
            f"{topic}-{partition}"
            for topic in sorted({place.topic for place in partitions})
            for partition in range(survey.source.topics.get(topic, 0))
            if (topic, partition) not in committed
        )
        if absent:
            missing[group] = absent
    return missing
