"""Reads everything that `plan` needs, in the order that its safety needs.

The order (docs/translation.md, "Pins"): commits first, then the target's log ends, then the source's, then
MM2's topics up to ends that are pinned once, then the records; group states before and after, at least a settle
time apart, because groups vanish from listings while they rebalance. The source's log ends are read again last, as
long after they were pinned: whether anybody still writes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from migrate.clock import Clock
from migrate.errors import ClusterError
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.connector_status import Mm2Tasks
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointReading, SyncReading, WindowQuestion
from migrate.model import ClusterFacts, Failure, GroupPartition, GroupState, LogRange, Side, TopicPartition
from migrate.ports import ClusterAdmin, Progress
from migrate.progress import LOGS_AT_ONCE
from migrate.survey.commits import from_checkpoints, from_source, read_priors, with_uncommitted
from migrate.survey.connect_topics import ConnectTopic, read_connect_topics
from migrate.survey.groups import by_group, commits_that_moved, read_group_facts
from migrate.survey.producers import Growth, growth_of
from migrate.survey.records import compare, read_positions, read_watermarks, works_of
from migrate.survey.survey import Clusters, Logs, Mm2Topic, PlanRequest, Survey, Timer, Watermarks, window_question
from migrate.text import many

States = Mapping[str, GroupState | Failure]


def take_survey(request: PlanRequest, clusters: Clusters, clock: Clock, progress: Progress) -> Survey:
    """Read everything; writes nothing anywhere.

    Raises `ClusterError` where a listing came back short or a cluster does not answer: that is never a
    smaller plan.
    """
    timer = Timer(clock, progress)
    flow, source, target = request.flow, clusters.source, clusters.target
    target_facts = timer.run("reach", f"reaching {target.alias}", target.facts)
    source_facts = timer.run("reach", f"reaching {source.alias}", lambda: _reach(source, flow)) if source else None
    source_topics = timer.run("topics", f"listing topics of {source.alias}", source.topics) if source else {}
    target_topics = timer.run("topics", f"listing topics of {target.alias}", target.topics)

    target_listed = timer.run("groups", f"listing groups on {target.alias}", target.groups)
    first_look = source_look = clock.monotonic()
    source_listed = frozenset[str]()
    source_ids: Mapping[str, str] = {}
    if clusters.ready is not None:
        # By itself, or it would be taken for the time that reading commits takes.
        timer.run("spark", "waiting for Spark", clusters.ready)
    checkpoints = None
    if source is None:
        checkpoints = _read_checkpoints(clusters, flow, target_topics, timer)
        wanted = from_checkpoints(checkpoints[0], request)
    else:
        source_listed = timer.run("groups", f"listing groups on {source.alias}", source.groups)
        source_look = clock.monotonic()
        # Before commits are read, and so of every topic that may have some: a commit read later is of that id or none.
        ids_of = sorted(topic for topic in source_topics if not flow.why_not_replicated(topic))
        source_ids = timer.run("topics", f"asking {source.alias} for topic ids", lambda: source.topic_ids(ids_of))
        wanted = from_source(clusters, source_listed, request, timer)
    groups = sorted({key.group for key in wanted.commits} | wanted.unstable)
    target_states = _describe(target, groups, timer)
    source_states = _describe(source, groups, timer) if source else {}
    priors, unstable_on_target = read_priors(clusters, groups, timer)

    keys = with_uncommitted(wanted.commits, source_topics, target_topics, request)
    on_source = sorted({key.topic for key in keys})
    on_target = {flow.policy.target_topic(topic) for topic in on_source} & target_topics.keys()
    # Before the logs are pinned: of a topic that is created anew from here on, `apply` sees another id.
    text = f"asking {target.alias} for topic ids"
    target_ids = timer.run("topics", text, lambda: target.topic_ids(sorted(on_target)))
    # Before the target's ends are pinned: what MM2 says it has copied must lie below them.
    told = source is not None and keys and not flow.failback
    positions = read_positions(clusters, flow, target_topics, timer) if told else Positions()
    logs = _pin_logs(clusters, flow, keys, source_topics, target_topics, timer)
    watermarks = read_watermarks(clusters, logs, timer)
    pinned_at = clock.monotonic()
    asked = ((key, window_question(key, commit, flow, logs)) for key, commit in keys.items())
    questions = {key: question for key, question in asked if question is not None}
    syncs = _read_windows(clusters, flow, questions.values(), source_topics, target_topics, timer)
    compares = clusters.comparer is not None and request.limits.match_records > 0 and not flow.failback
    compacted = _compacted(clusters, logs, timer) if compares else frozenset[str]()
    works = works_of(flow, keys, logs, watermarks, positions.copied_to, compacted)
    comparison = compare(clusters, flow, works, request.limits, timer, progress)
    if checkpoints is None:
        checkpoints = _read_checkpoints(clusters, flow, target_topics, timer)

    growth: Mapping[TopicPartition, Growth | Failure] = {}
    looks_apart: dict[Side, float] = {}
    if groups:
        left = max(first_look, pinned_at) + request.settle_seconds - clock.monotonic()
        if left > 0:
            text = f"waiting {left:.0f} s for a second look at groups and log ends"
            timer.run("settle", text, lambda: clock.wait(left))
        looks_apart[Side.TARGET] = clock.monotonic() - first_look
        target_states = _look_again(target, groups, target_states, target_listed, timer)
        if source is not None:
            looks_apart[Side.SOURCE] = clock.monotonic() - source_look
            source_states = _look_again(source, groups, source_states, source_listed, timer)
            growth = _watch_ends(source, watermarks, pinned_at, clock, timer)
    commits = by_group(wanted.commits)
    reader, filters = clusters.source_commits, request.filters
    on_a = commits_that_moved(reader, commits, source_states, flow.source.alias, timer, filters)
    on_b = commits_that_moved(clusters.target_commits, priors, target_states, target.alias, timer)
    group_facts = replace(
        read_group_facts(clusters, flow, syncs[1].topic if syncs[1].found else None, target_states, priors, timer),
        moving_on_source=on_a[0],
        moving_on_target=on_b[0],
        unread_on_source=on_a[1],
        unread_on_target=on_b[1],
    )
    hidden = _hidden(clusters, {Side.SOURCE: source_topics, Side.TARGET: target_topics}, timer)
    return Survey(
        source_facts=source_facts,
        target_facts=target_facts,
        source_topics=source_topics,
        target_topics=target_topics,
        source_listed=source_listed,
        wanted=wanted,
        groups=tuple(groups),
        unstable=wanted.unstable | unstable_on_target,
        keys=keys,
        questions=questions,
        priors=priors,
        logs=logs,
        source_states=source_states,
        target_states=target_states,
        checkpoints=checkpoints[0],
        checkpoints_topic=checkpoints[1],
        syncs=syncs[0],
        syncs_topic=syncs[1],
        target_topic_ids=target_ids,
        timings=dict(timer.timings),
        watermarks=watermarks,
        positions=positions,
        comparison=comparison,
        hidden=hidden,
        growth=growth,
        group_facts=group_facts,
        mm2_tasks=_mm2_tasks(clusters, flow, timer),
        connect_topics=_connect_topics(clusters, flow, source_topics, hidden, source_listed, timer),
        looks_apart=looks_apart,
        source_topic_ids={topic: source_ids[topic] for topic in on_source if topic in source_ids},
    )


def _connect_topics(
    clusters: Clusters,
    flow: Flow,
    source_topics: Mapping[str, int],
    hidden: Mapping[Side, frozenset[str] | Failure],
    groups: frozenset[str],
    timer: Timer,
) -> tuple[ConnectTopic, ...]:
    """Look for a Connect worker's own topics on the source, also among those that it does not show us."""
    if clusters.source is None:
        return ()
    not_shown = hidden.get(Side.SOURCE)
    topics = source_topics.keys() | (not_shown if isinstance(not_shown, frozenset) else frozenset())
    text = f"looking for Connect's own topics on {flow.source.alias}"
    return timer.run(
        "topics",
        text,
        lambda: read_connect_topics(clusters.source_groups, topics, groups, flow.runtime.offsets_topic),
    )


def _mm2_tasks(clusters: Clusters, flow: Flow, timer: Timer) -> Mm2Tasks:
    """Ask for the state of MM2's connectors; on a failback they are none of the plan's business."""
    asked = clusters.tasks
    if asked is None or flow.failback:
        return {}
    return timer.run("tasks", f"asking {asked.where} whether MM2's tasks run", asked.tasks)


def _hidden(
    clusters: Clusters, listed: Mapping[Side, Mapping[str, int]], timer: Timer
) -> dict[Side, frozenset[str] | Failure]:
    """Return the topics that a cluster has and does not show us; commits on them are left out in silence.

    `listed` are those that it showed before.
    """
    hidden: dict[Side, frozenset[str] | Failure] = {}
    for side, hosted in clusters.hosted.items():
        admin = clusters.target if side is Side.TARGET else clusters.source
        assert admin is not None, "who is not asked is not in `hosted`"
        found = timer.run("topics", f"looking for topics that {admin.alias} does not show us", hosted)
        # Listed after as well: what was created in between is not hidden, what was deleted in between not lacking.
        now = admin.topics().keys()
        found = in_full(found, now & listed[side].keys())
        hidden[side] = found if isinstance(found, Failure) else found - now
    return hidden


def _compacted(clusters: Clusters, logs: Logs, timer: Timer) -> frozenset[str]:
    """Return the target's topics whose superseded records a cleaner may take; where nobody tells, none is known."""
    topics = sorted({partition.topic for partition in logs.target})
    if clusters.target_groups is None or not topics:
        return frozenset()
    asked, text = clusters.target_groups, f"asking {clusters.target.alias} which topics are compacted"
    told = timer.run("pin", text, lambda: asked.compacted_topics(topics))
    return frozenset() if isinstance(told, Failure) else told


def _reach(source: ClusterAdmin, flow: Flow) -> ClusterFacts:
    try:
        return source.facts()
    except ClusterError as error:
        if flow.failback:
            raise
        hint = "If it is lost for good, --source-down plans from the target alone."
        raise ClusterError(error.problem, f"{error.todo} {hint}") from error


def _describe(admin: ClusterAdmin, groups: list[str], timer: Timer) -> States:
    text = f"describing {len(groups)} groups on {admin.alias}"
    return timer.ask("states", text, groups, admin.group_states)


def _look_again(
    admin: ClusterAdmin, groups: list[str], before: States, listed_before: frozenset[str], timer: Timer
) -> States:
    """Describe again, and keep the livelier of the two answers.

    Only a group that neither listing shows is "Absent": one that vanished in between was rebalancing.
    """
    listed_now = timer.run("groups", f"listing groups on {admin.alias} again", admin.groups)
    now = _describe(admin, groups, timer)
    merged: dict[str, GroupState | Failure] = {}
    listed = listed_before | listed_now
    for group in groups:
        livelier = now.get(group) if _is_stopped(before.get(group)) else before.get(group)
        if livelier is None:
            livelier = Failure("NO_ANSWER", "the group is missing from the answer")
        elif isinstance(livelier, GroupState) and livelier.is_stopped and group not in listed:
            livelier = replace(livelier, state="Absent")
        merged[group] = livelier
    return merged


def _watch_ends(
    source: ClusterAdmin, watermarks: Watermarks, pinned_at: float, clock: Clock, timer: Timer
) -> Mapping[TopicPartition, Growth | Failure]:
    """Read the source's log ends again, as far as a reader of uncommitted records sees: does anybody write."""
    partitions = sorted(watermarks.source)
    if not partitions:
        return {}
    text = f"looking for producers on {many(len(partitions), 'log')} of {source.alias}"
    seconds = clock.monotonic() - pinned_at
    later = timer.run("pin", text, lambda: source.high_watermarks(partitions))
    return growth_of(watermarks.source, later, seconds)


def _is_stopped(state: GroupState | Failure | None) -> bool:
    return isinstance(state, GroupState) and state.is_stopped


def _pin_logs(
    clusters: Clusters,
    flow: Flow,
    keys: Iterable[GroupPartition],
    source_topics: Mapping[str, int],
    target_topics: Mapping[str, int],
    timer: Timer,
) -> Logs:
    """Pin the log ranges of all partitions of the plan: the target's first, then the source's."""
    on_source = {TopicPartition(key.topic, key.partition) for key in keys}
    on_target = {TopicPartition(flow.policy.target_topic(tp.topic), tp.partition) for tp in on_source}
    on_source = {tp for tp in on_source if tp.partition < source_topics.get(tp.topic, 0)}
    on_target = {tp for tp in on_target if tp.partition < target_topics.get(tp.topic, 0)}
    target, source = clusters.target, clusters.source
    text = f"pinning {len(on_target)} logs on {target.alias}"
    target_logs = timer.ask("pin", text, on_target, target.log_ranges, LOGS_AT_ONCE)
    source_logs: Mapping[TopicPartition, LogRange | Failure] = {}
    if source is not None:
        text = f"pinning {len(on_source)} logs on {source.alias}"
        source_logs = timer.ask("pin", text, on_source, source.log_ranges, LOGS_AT_ONCE)
    return Logs(source_logs, target_logs)


def _pin_mm2_topic(admin: ClusterAdmin, topic: str, timer: Timer) -> LogRange:
    partition = TopicPartition(topic, 0)
    text = f"asking {admin.alias} for the ends of {topic}"
    found = timer.run("pin", text, lambda: admin.log_ranges([partition])).get(partition)
    if not isinstance(found, LogRange):
        why = "no answer" if found is None else f"{found.code}: {found.message}"
        raise ClusterError(
            f"{admin.alias} did not tell the log of MM2's topic {topic} ({why}).",
            "Grant DESCRIBE and READ on that topic, or try again.",
        )
    return found


def _read_checkpoints(
    clusters: Clusters, flow: Flow, target_topics: Mapping[str, int], timer: Timer
) -> tuple[CheckpointReading, Mm2Topic]:
    topic, target = flow.checkpoints_topic, clusters.target
    if flow.failback:
        # MM2 makes none for the way back; the topic holds those of the way there.
        return CheckpointReading({}, {}), Mm2Topic(Side.SOURCE, topic, None, None)
    if topic not in target_topics:
        return CheckpointReading({}, {}), Mm2Topic(Side.TARGET, topic, False, None)
    pinned = _pin_mm2_topic(target, topic, timer)
    text = f"reading MM2's checkpoints: {topic} on {target.alias}, offsets {pinned.start} to {pinned.end}"
    reading = timer.run("checkpoints", text, lambda: clusters.mirror.checkpoints(topic, pinned))
    return reading, Mm2Topic(Side.TARGET, topic, True, pinned)


def _read_windows(
    clusters: Clusters,
    flow: Flow,
    questions: Iterable[WindowQuestion],
    source_topics: Mapping[str, int],
    target_topics: Mapping[str, int],
    timer: Timer,
) -> tuple[SyncReading, Mm2Topic]:
    topic, side = flow.offset_syncs_topic, flow.syncs_side
    admin = clusters.source if side is Side.SOURCE else clusters.target
    if admin is None:
        return SyncReading({}, {}), Mm2Topic(side, topic, None, None)
    if topic not in (source_topics if side is Side.SOURCE else target_topics):
        return SyncReading({}, {}), Mm2Topic(side, topic, False, None)
    asked = set(questions)
    pinned = _pin_mm2_topic(admin, topic, timer)
    text = f"reading MM2's offset syncs: {topic} on {admin.alias}, offsets {pinned.start} to {pinned.end}"
    reading = timer.run("syncs", text, lambda: clusters.mirror.windows(side, topic, pinned, asked))
    return reading, Mm2Topic(side, topic, True, pinned)


def in_full(hosted: frozenset[str] | Failure, shown: Collection[str]) -> frozenset[str] | Failure:
    """Return the topics in log directories, a `Failure` where one that is shown is not among them: some are missing."""
    if isinstance(hosted, Failure):
        return hosted
    lacking = sorted(set(shown) - hosted)
    if lacking:
        shown_only = f"{many(len(lacking), 'topic')} that it shows, such as {lacking[0]}"
        return Failure("PARTIAL_ANSWER", f"its brokers' log directories do not list {shown_only}")
    return hosted
