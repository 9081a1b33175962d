"""Reads everything that `plan` needs, in the order that its safety needs.

The order (docs/translation.md, "Pins"): commits first, then the target's log ends, then the source's, then
MM2's topics up to ends that are pinned once, then the records; group states before and after, at least a settle
time apart, because groups vanish from listings while they rebalance. The source's log ends are read again last, as
long after they were pinned: whether anybody still writes; and so are the ends of copies that lack records.
"""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap

from migrate.clock import Clock
from migrate.commit_table import GroupCommits, committed_offsets, partitions_of_keys
from migrate.match.protocol import Comparison, Matched, PartitionAnswer
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.connector_status import Mm2Tasks
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointReading, WindowQuestion
from migrate.model import Commit, Commits, Failure, GroupPartition, LogRange, Side, TopicPartition
from migrate.ports import Progress
from migrate.progress import LOGS_AT_ONCE, QuietProgress, Timer, in_background
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.commits import from_checkpoints, from_source, read_priors, with_uncommitted
from migrate.survey.connect_topics import ConnectTopic, read_connect_topics
from migrate.survey.group_facts import GroupFacts
from migrate.survey.groups import (
    Records,
    both_looks,
    commit_records_ahead,
    commits_that_moved,
    describe,
    facts_of_source,
    list_again,
    read_group_facts,
)
from migrate.survey.hidden_topics import hosted_ahead, with_hidden
from migrate.survey.mm2_topics import read_checkpoints_topic, read_syncs_topic
from migrate.survey.producers import Growth
from migrate.survey.records import (
    compacted_topics,
    compare,
    newest_syncs,
    read_copy_ends,
    read_positions,
    read_watermarks,
    timed_topics,
    uncompared,
    watch_ends,
    works_of,
)
from migrate.survey.renamed import TargetNames, refuse_map_of_other_clusters
from migrate.survey.survey import (
    Clusters,
    ClusterSurvey,
    CopyEnd,
    Logs,
    Mm2Records,
    Mm2Topic,
    PlanRequest,
    SelectedCommits,
    States,
    Survey,
    Watermarks,
    WindowQuestionOf,
    copy_of,
    window_questions,
)
from migrate.survey.topic_commits import from_offsets_topic, with_missing
from migrate.text import many


@dataclass(frozen=True)
class _Context:
    """What is asked, what it is read through, and the timer that announces each step."""

    request: PlanRequest
    clusters: Clusters
    timer: Timer

    @property
    def flow(self) -> Flow:
        return self.request.flow

    def now(self) -> float:
        """Return the clock's seconds."""
        return self.timer.clock.monotonic()


@dataclass(frozen=True)
class FirstLook:
    """What is read before anything is pinned; the times of the listings are the clock's seconds.

    From here on the clusters are asked through `context`: it knows what groups are called on the target.
    `checkpoints` are read this early only while the source is down: they stand in for its commits. `positions` are
    being read; None where they do not matter.
    """

    context: _Context
    source: ClusterSurvey
    target: ClusterSurvey
    source_listed_at: float
    target_listed_at: float
    selected: SelectedCommits
    groups: tuple[str, ...]
    priors: Mapping[str, Commits]
    unstable_on_target: frozenset[str]
    checkpoints: tuple[CheckpointReading, Mm2Topic] | None
    positions: "Future[Positions] | None"
    under_old_names: tuple[str, ...]


@dataclass(frozen=True)
class _Pinned:
    """The places of the plan, and the log ends that bound what is read from here on; `at` is when, in seconds."""

    keys: Mapping[GroupPartition, Commit | None]
    target_ids: Mapping[str, str]
    positions: Positions
    logs: Logs
    watermarks: Watermarks
    at: float


def take_survey(request: PlanRequest, clusters: Clusters, clock: Clock, progress: Progress) -> Survey:
    """Read everything; writes nothing anywhere. What is read first bounds what is read later.

    Raises `ClusterError` where a listing came back short or a cluster does not answer: that is never a smaller plan.
    """
    first = first_look(request, clusters, clock, progress)
    context, clusters = first.context, first.context.clusters
    survey, pinned_at = read_once(first)
    hosted = hosted_ahead(clusters)
    records = commit_records_ahead(clusters, first.groups)
    source, target, growth = _second_look(first, survey, pinned_at)
    comparison = _at_rest(context, survey, pinned_at)
    states = source.states, target.states
    group_facts = _read_group_facts(context, first, states, survey.mm2.syncs_topic, records)
    source, target = with_hidden(clusters, source, target, hosted, context.timer)
    return replace(
        survey,
        taken_at_ms=clock.now_ms(),
        source=replace(source, topic_ids=survey.source.topic_ids),
        target=replace(target, topic_ids=survey.target.topic_ids),
        timings=dict(context.timer.timings),
        growth=growth,
        mm2=replace(survey.mm2, tasks=_mm2_tasks(context)),
        comparison=comparison,
        group_facts=group_facts,
        connect_topics=_connect_topics(context, source),
    )


def read_once(first: FirstLook) -> tuple[Survey, float]:
    """Pin the logs and read the records: return what one look tells, and the clock's seconds when the logs were pinned.

    What only a second look tells, or only who cuts over asks for, is empty: `growth`, `group_facts`, `connect_topics`.
    """
    context, request = first.context, first.context.request
    pinned = _pin(context, first)
    mm2, comparison, copy_ends = _read_records(context, first, pinned)
    context.clusters.end_records()
    topics = {partition.topic for partition in _partitions(request, pinned.keys)}
    survey = Survey(
        request=request,
        taken_at_ms=context.timer.clock.now_ms(),
        source=replace(
            first.source, topic_ids={t: i for t, i in sorted(first.source.topic_ids.items()) if t in topics}
        ),
        target=replace(first.target, topic_ids=pinned.target_ids),
        selected=first.selected,
        groups=first.groups,
        unstable=first.selected.unstable | first.unstable_on_target,
        priors=first.priors,
        keys=pinned.keys,
        logs=pinned.logs,
        watermarks=pinned.watermarks,
        growth={},
        mm2=mm2,
        comparison=comparison,
        group_facts=GroupFacts(),
        connect_topics=(),
        timings=dict(context.timer.timings),
        target_names=context.clusters.target_names,
        under_old_names=first.under_old_names,
        copy_ends=copy_ends,
    )
    return survey, pinned.at


def first_look(request: PlanRequest, clusters: Clusters, clock: Clock, progress: Progress) -> FirstLook:
    """Read topics, groups and commits on the source, then states and commits on the target; raises as `take_survey`."""
    context = _Context(request, clusters, Timer(clock, progress))
    flow, timer, source, target = context.flow, context.timer, context.clusters.source, context.clusters.target
    reaching = None if source is None else in_background(partial(facts_of_source, source, flow), "reaching the source")
    facts = timer.run("reach", f"reaching {target.alias}", target.facts)
    on_source = ClusterSurvey()
    if source is not None and reaching is not None:
        source_facts = timer.run("reach", f"reaching {source.alias}", reaching.result)
        on_source = ClusterSurvey(source_facts, timer.run("topics", f"listing topics of {source.alias}", source.topics))
    refuse_map_of_other_clusters(context.request.group_map, (on_source.facts.cluster_id, facts.cluster_id))
    topics = timer.run("topics", f"listing topics of {target.alias}", target.topics)
    on_target = ClusterSurvey(facts, topics, timer.run("groups", f"listing groups on {target.alias}", target.groups))
    target_listed_at = source_listed_at = context.now()
    if context.clusters.starts_late:
        timer.run("spark", "starting Spark", context.clusters.wait_for_commits)
    checkpoints = None
    if source is None:
        _wait_for_records(context)
        checkpoints = read_checkpoints_topic(context.clusters, flow, topics, timer)
        selected = from_checkpoints(checkpoints[0], context.request)
    else:
        listed = timer.run("groups", f"listing groups on {source.alias}", source.groups)
        source_listed_at = context.now()
        # Before commits are read, and so of every topic that may have some: a commit read later is of that id or none.
        ids_of = sorted(topic for topic in on_source.topics if not flow.why_not_replicated(topic))
        ids = timer.run("topics", f"asking {source.alias} for topic ids", partial(source.topic_ids, ids_of))
        on_source = replace(on_source, listed=listed, topic_ids=ids)
        if context.request.places:
            selected = SelectedCommits(GroupCommits({}), {}, {}, frozenset(), frozenset())
        else:
            select = from_source if context.clusters.offsets_topic is None else from_offsets_topic
            selected = select(context.clusters, listed, context.request, timer)
    names = TargetNames.of(context.request.group_map, selected.groups)
    under_old_names = names.under_old_names(on_target.listed)
    context, on_target = replace(context, clusters=context.clusters.named(names)), on_target.named(names)
    target = context.clusters.target
    positions = _positions_ahead(context, selected, topics)
    groups = sorted(selected.groups)
    on_target_states, on_source_states = describe(target, source, groups, timer)
    on_target = replace(on_target, states=on_target_states)
    on_source = replace(on_source, states=on_source_states)
    priors, unstable = read_priors(context.clusters, groups, timer)
    return FirstLook(
        context, on_source, on_target, source_listed_at, target_listed_at, selected, tuple(groups), priors, unstable,
        checkpoints, positions, under_old_names,
    )  # fmt: skip


def _wait_for_records(context: _Context) -> None:
    if context.clusters.starts_late:
        context.timer.run("spark", "waiting for Spark", context.clusters.wait_for_records)


def _positions_ahead(
    context: _Context, selected: SelectedCommits, target_topics: Mapping[str, int]
) -> "Future[Positions] | None":
    """Begin to read MM2's own positions, after the commits that they are compared with, and beside all else.

    None where they do not matter: without a source or a commit, on a failback, and where MM2 does not copy.
    """
    if (
        context.clusters.source is None
        or not context.flow.mm2_delivers
        or not (selected.commits or context.request.places)
    ):
        return None
    timer = Timer(context.timer.clock, QuietProgress())
    return in_background(lambda: read_positions(context.clusters, context.flow, target_topics, timer), "positions")


def _pin(context: _Context, first: FirstLook) -> _Pinned:
    """Pin the logs of all places of the plan, after what has to lie below their ends was read."""
    clusters, flow, timer = context.clusters, context.flow, context.timer
    keys = with_uncommitted(first.selected.commits, first.source.topics, first.target.topics, context.request)
    keys = with_missing(keys, first.selected.missing)
    places = _partitions(context.request, keys)
    topics = {partition.topic for partition in places}
    copies = set(map(flow.policy.target_topic, topics)) & first.target.topics.keys()
    # Before the logs are pinned: of a topic that is created anew from here on, `apply` sees another id.
    text = f"asking {clusters.target.alias} for topic ids"
    target_ids = timer.run("topics", text, lambda: clusters.target.topic_ids(sorted(copies)))
    _wait_for_records(context)
    # Before the target's ends are pinned: what MM2 says it has copied must lie below them.
    ahead = first.positions
    positions = timer.run("positions", "reading MM2's own positions", ahead.result) if ahead else Positions()
    logs = _pin_logs(context, places, first)
    return _Pinned(keys, target_ids, positions, logs, read_watermarks(clusters, logs, timer), context.now())


def _read_records(
    context: _Context, first: FirstLook, pinned: _Pinned
) -> tuple[Mm2Records, Comparison | None, Mapping[TopicPartition, CopyEnd]]:
    """Read MM2's topics and the plan's own, up to the pinned ends."""
    flow, clusters, logs = context.flow, context.clusters, pinned.logs
    listed = first.source if flow.syncs_side is Side.SOURCE else first.target
    # Windows are asked for last, of commits that no records place: to find a million takes longer than to compare.
    syncs, syncs_topic = read_syncs_topic(clusters, flow, listed.topics, context.timer)
    comparison = _compare(context, pinned)
    answers, question_of = comparison.answers if comparison else {}, window_questions(flow, logs)
    places = _partitions(context.request, pinned.keys) if flow.offset_syncs_topic else ()
    unproven = uncompared(places, answers, logs, flow)
    newest = newest_syncs(clusters, flow, syncs_topic, unproven, context.timer)
    questions: frozenset[WindowQuestion] = frozenset()
    if not context.request.limits.by_timestamp:
        # By timestamps no sync is a place: nothing would guard it (Law 2b).
        for keys in (pinned.keys, *context.request.places):
            questions |= _of_unmatched(keys, answers, question_of)
    if syncs_topic.pinned is not None and questions:
        text = f"finding the syncs around {many(len(questions), 'commit')} that no records place"
        side, topic, log = syncs_topic.side, syncs_topic.topic, syncs_topic.pinned
        syncs = context.timer.run("syncs", text, lambda: clusters.mirror.windows(side, topic, log, questions))
    checkpoints = first.checkpoints
    if checkpoints is None:
        checkpoints = read_checkpoints_topic(clusters, flow, first.target.topics, context.timer)
    mm2 = Mm2Records(*checkpoints, syncs, syncs_topic, pinned.positions)
    # After both topics: what MM2 says there of a copy that goes on lies below its end.
    return mm2, comparison, read_copy_ends(clusters, flow, unproven, newest, context.timer)


def _partitions(request: PlanRequest, keys: Mapping[GroupPartition, Commit | None]) -> set[TopicPartition]:
    """Return the source partitions that a survey is about."""
    return partitions_of_keys(keys).union(*(places.partitions() for places in request.places))


def _of_unmatched(
    keys: Mapping[GroupPartition, Commit | None],
    answers: Mapping[TopicPartition, PartitionAnswer],
    question_of: WindowQuestionOf,
) -> frozenset[WindowQuestion]:
    """Return the window questions of the commits that comparing records has not placed."""
    unmatched = (
        (GroupPartition(group, *source), Commit(committed))
        for group, source, committed in committed_offsets(keys)
        if not ((answer := answers.get(source)) and isinstance(answer.places.get(committed), Matched))
    )
    return frozenset(question for question in starmap(question_of, unmatched) if question is not None)


def _compare(context: _Context, pinned: _Pinned) -> Comparison | None:
    """Compare the records around every commit."""
    flow, clusters, logs = context.flow, context.clusters, pinned.logs
    compares = clusters.comparer is not None and context.request.limits.match_records > 0 and not flow.failback
    compacted = compacted_topics(clusters, logs, context.timer) if compares else frozenset[str]()
    copied = pinned.positions.last_copied_offset
    works = works_of(flow, pinned.keys, logs, pinned.watermarks, copied, compacted, context.request.places)
    if context.request.limits.by_timestamp:
        timed = timed_topics(clusters, flow, logs, context.timer)
        works = tuple(replace(work, may_keep_timestamps=work.source.topic in timed) for work in works)
    return compare(clusters, flow, works, context.request.limits, context.timer)


def _second_look(
    first: FirstLook, survey: Survey, pinned_at: float
) -> tuple[ClusterSurvey, ClusterSurvey, Mapping[TopicPartition, Growth | Failure]]:
    """Look again a settle time later, if there is a row: the livelier states, and how far the source's ends moved."""
    context = first.context
    source, timer, groups = context.clusters.source, context.timer, first.groups
    if not groups and not context.request.places:
        return first.source, first.target, {}
    left = max(first.target_listed_at, pinned_at) + context.request.settle_seconds - context.now()
    if left > 0:
        text = f"waiting {left:.0f} s for a second look at groups and log ends"
        timer.run("settle", text, lambda: timer.clock.wait(left))
    if not groups:
        ends = {} if source is None else watch_ends(source, survey.watermarks.source, pinned_at, timer)
        return first.source, first.target, ends
    target = context.clusters.target
    on_target = list_again(target, first.target_listed_at, timer)
    on_source = None if source is None else list_again(source, first.source_listed_at, timer)
    target_states, source_states = describe(target, source, groups, timer)
    after = both_looks(first.target, on_target, target_states, groups)
    if source is None or on_source is None:
        return first.source, after, {}
    ends = watch_ends(source, survey.watermarks.source, pinned_at, timer)
    return both_looks(first.source, on_source, source_states, groups), after, ends


def _at_rest(context: _Context, survey: Survey, pinned_at: float) -> Comparison | None:
    """Return the comparison, in which a copy that has stopped growing waits no longer for what was passed over.

    Not where MM2's own position is known: that says where MM2 goes on (docs/translation.md, "Drained").
    """
    if (comparison := survey.comparison) is None:
        return None
    answers, known = comparison.answers, survey.mm2.positions.last_copied_offset
    sources = {
        copy_of(context.flow, p): p for p, answer in answers.items() if answer.tail.passed_over and p not in known
    }
    ends = {copy: end for copy, end in survey.watermarks.target.items() if copy in sources}
    grown = watch_ends(context.clusters.target, ends, pinned_at, context.timer, "new copies")
    still = [sources[copy] for copy, growth in grown.items() if isinstance(growth, Growth) and growth.is_idle]
    at_rest = {source: replace(answers[source], tail=answers[source].tail.at_rest()) for source in still}
    return replace(comparison, answers={**answers, **at_rest})


def _read_group_facts(
    context: _Context, first: FirstLook, states: tuple[States, States], syncs_topic: Mm2Topic, records: Records | None
) -> GroupFacts:
    """Read commits again, of groups without members, and what decides when offsets expire; `states` are by side."""
    (source_states, target_states), flow, clusters, timer = states, context.flow, context.clusters, context.timer
    before = first.selected.live
    on_source = commits_that_moved(clusters.source, before, source_states, timer, context.request.filters)
    on_target = commits_that_moved(clusters.target, first.priors, target_states, timer)
    topic = syncs_topic.topic if syncs_topic.found else None
    return replace(
        read_group_facts(clusters, flow, topic, target_states, first.priors, timer, records),
        moving_on_source=on_source[0],
        moving_on_target=on_target[0],
        unread_on_source=on_source[1],
        unread_on_target=on_target[1],
    )


def _connect_topics(context: _Context, source: ClusterSurvey) -> tuple[ConnectTopic, ...]:
    """Look for a Connect worker's own topics on the source, also among those that it does not show us."""
    cluster, own = context.clusters.source, context.flow.runtime.offsets_topics
    if cluster is None:
        return ()
    topics = source.topics.keys() | (source.hidden if isinstance(source.hidden, frozenset) else frozenset())
    text = f"looking for Connect's own topics on {context.flow.source.alias}"
    return context.timer.run("topics", text, lambda: read_connect_topics(cluster, topics, source.listed, own))


def _mm2_tasks(context: _Context) -> Mm2Tasks:
    """Ask for the state of MM2's connectors; on a failback they are none of the plan's business."""
    worker = context.clusters.worker
    if worker is None or not context.flow.mm2_delivers:
        return {}
    return context.timer.run("tasks", f"asking {worker.where} whether MM2's tasks run", worker.tasks)


def _pin_logs(context: _Context, places: Collection[TopicPartition], first: FirstLook) -> Logs:
    """Pin the log ranges of all partitions of the plan: the target's first, then the source's."""
    copies = {copy_of(context.flow, tp) for tp in places}

    def pin(
        admin: ClusterAdmin, partitions: Iterable[TopicPartition], topics: Mapping[str, int]
    ) -> Mapping[TopicPartition, LogRange | Failure]:
        present = {tp for tp in partitions if tp.partition < topics.get(tp.topic, 0)}
        text = f"pinning {len(present)} logs on {admin.alias}"
        return context.timer.ask("pin", text, present, admin.log_ranges, LOGS_AT_ONCE)

    target_logs = pin(context.clusters.target, copies, first.target.topics)
    return Logs(
        pin(context.clusters.source, places, first.source.topics) if context.clusters.source else {}, target_logs
    )
