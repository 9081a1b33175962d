"""What `plan` reads of the records themselves: how far MM2 has come, and where each commit is placed (Law 4).

The order matters (docs/translation.md, "Pins"): MM2's own positions are read before the target's log ends are
pinned, so that what it has copied by then lies below those ends; high watermarks are read after the ends, so that
a transaction that opens in between still shows. Where no records were compared, the ends of copies are read after
MM2's topics, beside the newest sync of each: one that lies beyond its copy's end is of a log that is gone. While MM2
copies, a sync of a record that was written since the plan's ends were pinned would lie beyond those.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import chain

from migrate.commit_table import GroupCommits, committed_offsets
from migrate.errors import ClusterError
from migrate.match.place_table import PlaceTable
from migrate.match.protocol import Comparison, FetchEstimate, Limits, Listener, PartitionAnswer, Why, Work
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.connector_status import WorkerReader
from migrate.mm2.flow import Flow, Mm2Home
from migrate.mm2.topics import WindowQuestion
from migrate.model import Commit, Failure, GroupPartition, LogRange, OffsetSync, TopicPartition
from migrate.progress import LOGS_AT_ONCE, Timer
from migrate.survey.cluster import CLEANUP_POLICY, TIMESTAMP_TYPE, ClusterAdmin
from migrate.survey.producers import Growth, growth_of
from migrate.survey.survey import Clusters, CopyEnd, Logs, Mm2Topic, Watermarks, copy_of
from migrate.text import bytes_text, many

_NO_ANSWER = Failure("NO_ANSWER", "no answer")
# No log has this offset: whatever was synced lies below it.
_NO_END = 2**63 - 1
ASK_FOR_TOPIC = "--connect-offsets-topic names the one of a Connect worker (its offset.storage.topic)"


def read_positions(clusters: Clusters, flow: Flow, target_topics: Mapping[str, int], timer: Timer) -> Positions:
    """Read MM2's own committed source offsets from its Connect offsets topics on the target.

    Where nobody named one, a Connect worker tells them. Nothing rests on them alone, so what is missing or
    cannot be read is reported, not raised; where one of several topics is, nothing is known of any.
    """
    topics = flow.connect_offsets_topics
    if not topics:
        return _ask_worker(clusters.worker, timer)
    read: dict[TopicPartition, int] = {}
    pinned: dict[TopicPartition, LogRange] = {}
    for topic in topics:
        of_topic = _positions_in(topic, clusters, flow, target_topics, timer)
        if of_topic.unknown:
            return Positions(topics, unknown=of_topic.unknown)
        pinned |= of_topic.pinned
        # A partition that one resource took over from another has an old position, too. The lower one never calls
        # copied what is not.
        for place, offset in of_topic.last_copied_offset.items():
            read[place] = min(offset, read.get(place, offset))
    return Positions(topics, read, pinned)


def _positions_in(
    topic: str, clusters: Clusters, flow: Flow, target_topics: Mapping[str, int], timer: Timer
) -> Positions:
    target = clusters.target
    if topic not in target_topics:
        hint = f"; {ASK_FOR_TOPIC}" if flow.runtime.home is Mm2Home.UNKNOWN else ""
        return Positions(unknown=f"there is no topic {topic} on {target.alias}{hint}")
    partitions = [TopicPartition(topic, p) for p in range(target_topics[topic])]
    try:
        logs = timer.run("positions", f"pinning {topic} on {target.alias}", lambda: target.log_ranges(partitions))
        failures = [log for log in logs.values() if isinstance(log, Failure)]
        if failures:
            return Positions(unknown=f"{target.alias} returned no log range of {topic} ({failures[0].code})")
        pinned = {p: log for p, log in logs.items() if isinstance(log, LogRange) and log.start < log.end}
        ranges = {place.partition: log for place, log in pinned.items()}
        text = f"reading MM2's own positions: {topic} on {target.alias}"
        read = timer.run("positions", text, lambda: clusters.mirror.positions(topic, ranges))
    except ClusterError as error:
        return Positions(unknown=error.problem)
    return Positions((topic,), read, pinned)


def _ask_worker(worker: WorkerReader | None, timer: Timer) -> Positions:
    if worker is None:
        return Positions(unknown=f"MM2 runs in a Connect worker whose offsets topic is not given; {ASK_FOR_TOPIC}")
    try:
        read = timer.run("positions", f"asking {worker.where} for MM2's own positions", worker.positions)
    except ClusterError as error:
        return Positions(unknown=f"{error.problem.rstrip('.')}; {ASK_FOR_TOPIC}")
    return Positions(last_copied_offset=read)


def read_watermarks(clusters: Clusters, logs: Logs, timer: Timer) -> Watermarks:
    """Read the high watermark of every pinned log."""

    def read(
        admin: ClusterAdmin | None, pinned: Mapping[TopicPartition, LogRange | Failure]
    ) -> Mapping[TopicPartition, int | Failure]:
        readable = sorted(p for p, log in pinned.items() if isinstance(log, LogRange))
        if admin is None or not readable:
            return {}
        text = f"looking for open transactions in {many(len(readable), 'log')} on {admin.alias}"
        return timer.ask("pin", text, readable, admin.high_watermarks, LOGS_AT_ONCE)

    return Watermarks(read(clusters.source, logs.source), read(clusters.target, logs.target))


def works_of(
    flow: Flow,
    keys: Mapping[GroupPartition, Commit | None],
    logs: Logs,
    watermarks: Watermarks,
    last_copied_offset: Mapping[TopicPartition, int],
    compacted: Collection[str] = (),
    others: Iterable[GroupCommits] = (),
) -> tuple[Work, ...]:
    """Return one work per partition that has a commit which the laws translate, in order of the source's names.

    `compacted` are the target's topics that a cleaner works on; `others` are offsets that no group has committed.
    """
    committed: dict[TopicPartition, set[int]] = {}
    for _, partition, offset in chain(committed_offsets(keys), *map(committed_offsets, others)):
        log = logs.source.get(partition)
        if isinstance(log, LogRange) and offset <= log.end:
            committed.setdefault(partition, set()).add(offset)
    replicated = {topic for topic in {p.topic for p in committed} if not flow.why_not_replicated(topic)}
    places = [(source, copy_of(flow, source)) for source in sorted(committed) if source.topic in replicated]
    return tuple(
        Work(
            source,
            target,
            source_log,
            target_log,
            tuple(sorted(committed[source])),
            has_open_transaction=watermarks.is_open(source, source_log),
            last_copied_offset=last_copied_offset.get(source),
            compacted=target.topic in compacted,
            source_has_copies=flow.failback,
        )
        for source, target in places
        if isinstance(source_log := logs.source[source], LogRange)
        and isinstance(target_log := logs.target.get(target), LogRange)
    )


def compare(clusters: Clusters, flow: Flow, works: Collection[Work], limits: Limits, timer: Timer) -> Comparison | None:
    """Compare the records of all works at once, saying beforehand what will be read; None without a comparer."""
    comparer = clusters.comparer
    if comparer is None or not works:
        return None
    text = f"finding out what to read of {many(len(works), 'partition')}"

    def announce(estimate: FetchEstimate) -> None:
        timer.progress.step(estimate_text(estimate, flow.source.alias, flow.target.alias, limits.by_timestamp))

    listener = Listener(announce, timer.progress.advance)
    return timer.run("compare", text, lambda: comparer(works, limits, listener))


def compacted_topics(clusters: Clusters, logs: Logs, timer: Timer) -> frozenset[str]:
    """Return the target's topics whose superseded records a cleaner may take; where nobody tells, none is known."""
    topics = sorted({partition.topic for partition in logs.target})
    if not topics:
        return frozenset()
    text = f"asking {clusters.target.alias} which topics are compacted"
    policies = timer.run("pin", text, lambda: clusters.target.topic_settings(topics, CLEANUP_POLICY))
    if isinstance(policies, Failure):
        return frozenset()
    return frozenset(t for t, p in policies.items() if isinstance(p, str) and "compact" in p.split(","))


def timed_topics(clusters: Clusters, flow: Flow, logs: Logs, timer: Timer) -> frozenset[str]:
    """Return the source's topics whose copies may keep timestamps, by `message.timestamp.type` of both topics.

    A topic that is copied from may have either type. Where one of the two does not tell its own, nothing is known.
    """
    copies = {source.topic: copy_of(flow, source).topic for source in logs.source}
    found = []
    for admin, topics in ((clusters.source, copies.keys()), (clusters.target, copies.values())):
        if admin is None or not copies:
            return frozenset()
        text, named = f"asking {admin.alias} who stamps records", sorted(set(topics))
        types = timer.run("pin", text, partial(admin.topic_settings, named, TIMESTAMP_TYPE))
        if isinstance(types, Failure):
            return frozenset()
        found.append(types)
    of_source, of_target = found
    return frozenset(
        topic
        for topic, copy in copies.items()
        if isinstance(source_type := of_source.get(topic), str)
        and isinstance(target_type := of_target.get(copy), str)
        and flow.turned(source_type, target_type)[1] == "CreateTime"
    )


def watch_ends(
    admin: ClusterAdmin,
    before: Mapping[TopicPartition, int | Failure],
    at: float,
    timer: Timer,
    what: str = "producers",
) -> Mapping[TopicPartition, Growth | Failure]:
    """Read log ends again, as far as a reader of uncommitted records sees: does anybody write.

    `before` are those of the time `at`, in seconds of the clock; the step that is announced looks for `what`.
    """
    if not before:
        return {}
    text = f"looking for {what} on {many(len(before), 'log')} of {admin.alias}"
    seconds = timer.clock.monotonic() - at
    later = timer.run("pin", text, lambda: admin.high_watermarks(sorted(before)))
    return growth_of(before, later, seconds)


def estimate_text(estimate: FetchEstimate, source_alias: str, target_alias: str, by_timestamp: bool = False) -> str:
    """Return the step that is said before records are read, in units that people know."""
    if not estimate.partitions and not estimate.left_out:
        return "looking up the timestamps that guard each commit: no records are compared"
    left_out = f"; {many(estimate.left_out, 'partition')} left out by --max-fetch" if estimate.left_out else ""
    if by_timestamp:
        partitions = many(estimate.partitions, "partition")
        about = bytes_text(estimate.source_bytes)
        return f"reading the timestamps of {partitions}: about {about} from {source_alias}{left_out}"
    return (
        f"comparing {many(estimate.partitions, 'partition')}: about {bytes_text(estimate.source_bytes)} from "
        f"{source_alias}, {bytes_text(estimate.target_bytes)} from {target_alias}{left_out}"
    )


def uncompared(
    partitions: Collection[TopicPartition], answers: Mapping[TopicPartition, PartitionAnswer], logs: Logs, flow: Flow
) -> tuple[TopicPartition, ...]:
    """Return those of the source's partitions with a copy on which a commit was not placed by comparing, sorted."""
    replicated = {topic for topic in {p.topic for p in partitions} if not flow.why_not_replicated(topic)}
    return tuple(
        partition
        for partition in sorted(partitions)
        if partition.topic in replicated
        and isinstance(logs.target.get(copy_of(flow, partition)), LogRange)
        and not _is_compared(answers.get(partition))
    )


def _is_compared(answer: PartitionAnswer | None) -> bool:
    """True if comparing has placed every commit that was asked about, and one was."""
    if answer is None or not answer.places:
        return False
    places = PlaceTable.of(answer.places)
    is_read = all(why not in (Why.NOT_ALL_READ, Why.LEAST_TIMESTAMP) for why in places.whys())
    return is_read and len(places.matched.codes) == len(places)


def newest_syncs(
    clusters: Clusters, flow: Flow, topic: Mm2Topic, partitions: Collection[TopicPartition], timer: Timer
) -> Mapping[TopicPartition, OffsetSync]:
    """Return the newest sync of each of the source's partitions that has one; none where their topic is not there."""
    if topic.pinned is None or not partitions:
        return {}
    pinned = topic.pinned
    # With no end to contradict it the newest sync is the last of its chain (Law 1).
    asked = {
        partition: WindowQuestion(flow.mm2_topic(partition.topic), partition.partition, _NO_END, None, _NO_END)
        for partition in partitions
    }
    text = f"finding the newest sync of {many(len(asked), 'partition')}"
    questions = set(asked.values())
    read = timer.run("syncs", text, lambda: clusters.mirror.windows(topic.side, topic.topic, pinned, questions))
    found = ((partition, read.windows[question].lower) for partition, question in asked.items())
    return {partition: sync for partition, sync in found if sync is not None}


def read_copy_ends(
    clusters: Clusters,
    flow: Flow,
    partitions: Collection[TopicPartition],
    newest: Mapping[TopicPartition, OffsetSync],
    timer: Timer,
) -> Mapping[TopicPartition, CopyEnd]:
    """Read where the copies of the source's `partitions` end now, as a read_uncommitted reader sees it."""
    if not partitions:
        return {}
    copies = {partition: copy_of(flow, partition) for partition in partitions}
    text = f"looking where the copies of {many(len(copies), 'partition')} end on {clusters.target.alias}"
    ends = timer.ask("pin", text, sorted(copies.values()), clusters.target.high_watermarks, LOGS_AT_ONCE)
    return {p: CopyEnd(ends.get(copy, _NO_ANSWER), newest.get(p)) for p, copy in copies.items()}
