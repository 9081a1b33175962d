"""The three places where MM2 keeps offsets, side by side for every source partition.

Its own positions say how far it has copied and where it goes on; offset syncs and checkpoints are notes for
translation, which people mistake for them. Reads only, through the ports that it is given.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from migrate.errors import ClusterError
from migrate.match.protocol import OffsetPair
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.flow import Flow
from migrate.mm2.topics import WindowQuestion
from migrate.model import LogRange, Side, TopicPartition
from migrate.progress import Timer
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.filters import Filters
from migrate.survey.mm2_topics import read_checkpoints_topic, read_syncs_topic
from migrate.survey.records import read_positions
from migrate.survey.survey import Clusters, Mm2Topic, copy_of
from migrate.text import many

_BEYOND = 2**63 - 1  # no offset is greater


@dataclass(frozen=True, slots=True)
class PartitionStores:
    """What MM2 keeps of one source partition; None where it keeps nothing, or that was not reported.

    `last_copied_offset` is its own position: the last source offset copied, inclusive. `sync` is the newest sync that
    fits both logs, `furthest` the checkpoint of the group that has come furthest, both (source, target); `groups`
    counts those that have a checkpoint. The logs end at their high watermarks: MM2 reads uncommitted by default, so
    that its position may lie among the records of an open transaction.
    """

    source: TopicPartition
    target_topic: str
    source_log: LogRange | None
    target_log: LogRange | None
    last_copied_offset: int | None
    sync: OffsetPair | None
    groups: int
    furthest: OffsetPair | None

    @property
    def left(self) -> int | None:
        """Offsets of the source after the position, transaction markers among them; None where not known.

        Negative if the position lies at or beyond the end: it is of another log, or the log was truncated.
        """
        if self.last_copied_offset is None or self.source_log is None:
            return None
        # What retention removed before it was copied is not left to copy.
        return self.source_log.end - max(self.last_copied_offset + 1, self.source_log.start)


@dataclass(frozen=True)
class Stores:
    """All partitions in order of the source's names; `positions_from` says where MM2's own positions were read.

    `positions_unknown`, `syncs_unknown` and `checkpoints_unknown` say why a store was not read, "" where it was.
    """

    partitions: tuple[PartitionStores, ...]
    positions_from: str
    positions_unknown: str
    syncs_unknown: str
    checkpoints_unknown: str


def read_stores(flow: Flow, clusters: Clusters, filters: Filters, timer: Timer) -> Stores:
    """Read the three stores; a store that is missing or cannot be read is named in the answer, and is no error.

    Positions are read before the logs' ends, so that what MM2 has copied by then lies below these. Raises
    `ClusterError` if a cluster itself does not answer.
    """
    source, target = clusters.source, clusters.target
    target_topics = timer.run("topics", f"listing topics of {target.alias}", target.topics)
    source_topics = timer.run("topics", f"listing topics of {source.alias}", source.topics) if source else {}
    positions = read_positions(clusters, flow, target_topics, timer)
    places = sorted(_places(flow, positions, source_topics, target_topics, filters))
    copies = {tp: copy_of(flow, tp) for tp in places}
    target_logs = _logs(target, copies.values(), target_topics, timer)
    source_logs = _logs(source, places, source_topics, timer) if source else {}
    questions = {
        tp: _newest(tp, source_logs.get(tp), target_logs[copy]) for tp, copy in copies.items() if copy in target_logs
    }
    syncs, syncs_unknown = _newest_syncs(flow, clusters, questions, (source_topics, target_topics), timer)
    checkpoints, checkpoints_unknown = _checkpoints(flow, clusters, target_topics, timer)
    worker = clusters.worker.where if clusters.worker else ""
    where = f"topic {' and '.join(positions.topics)} on {target.alias}" if positions.topics else worker
    return Stores(
        tuple(
            PartitionStores(
                tp,
                copies[tp].topic,
                source_logs.get(tp),
                target_logs.get(copies[tp]),
                positions.last_copied_offset.get(tp),
                syncs.get(tp),
                len(checkpoints.get(copies[tp], ())),
                max(checkpoints.get(copies[tp], ()), default=None),
            )
            for tp in places
        ),
        "" if positions.unknown else where,
        positions.unknown,
        syncs_unknown,
        checkpoints_unknown,
    )


def _places(
    flow: Flow,
    positions: Positions,
    source_topics: Mapping[str, int],
    target_topics: Mapping[str, int],
    filters: Filters,
) -> set[TopicPartition]:
    """Return what MM2 has a position for, and what it should have one for: all that has a copy."""
    copied = {
        TopicPartition(topic, partition)
        for topic, count in source_topics.items()
        if not flow.why_not_replicated(topic) and flow.policy.target_topic(topic) in target_topics
        for partition in range(count)
    }
    return {tp for tp in copied | set(positions.last_copied_offset) if filters.topic_verdict(tp.topic) is None}


def _logs(
    admin: ClusterAdmin, partitions: Iterable[TopicPartition], topics: Mapping[str, int], timer: Timer
) -> dict[TopicPartition, LogRange]:
    existing = [tp for tp in partitions if tp.partition < topics.get(tp.topic, 0)]
    if not existing:
        return {}
    text = f"pinning {many(len(existing), 'log')} on {admin.alias}"
    logs = timer.run("pin", text, lambda: admin.log_ranges(existing))
    ends = timer.run("pin", text, lambda: admin.high_watermarks(existing))
    return {
        tp: LogRange(log.start, end)
        for tp, log in logs.items()
        if isinstance(log, LogRange) and isinstance(end := ends[tp], int)
    }


def _newest(partition: TopicPartition, source_log: LogRange | None, target_log: LogRange) -> WindowQuestion:
    """Ask for the nearest sync at or below the source's end: of a chain, that is the newest."""
    end = source_log.end if source_log else None
    return WindowQuestion(partition.topic, partition.partition, _BEYOND if end is None else end, end, target_log.end)


def _newest_syncs(
    flow: Flow,
    clusters: Clusters,
    questions: Mapping[TopicPartition, WindowQuestion],
    topics: tuple[Mapping[str, int], Mapping[str, int]],
    timer: Timer,
) -> tuple[dict[TopicPartition, OffsetPair], str]:
    """Return the newest sync by source partition; `topics` are the source's and the target's."""
    listed = topics[flow.syncs_side is Side.TARGET]
    try:
        read, topic = read_syncs_topic(clusters, flow, listed, timer, questions.values())
    except ClusterError as error:
        return {}, error.problem
    if topic.pinned is None:
        is_down = clusters.source is None and topic.side is Side.SOURCE
        return {}, f"{topic.topic} is on {flow.source.alias}, which is down" if is_down else _absent(topic, flow)
    below = {tp: read.windows[question].lower for tp, question in questions.items()}
    return {tp: (sync.source_offset, sync.target_offset) for tp, sync in below.items() if sync is not None}, ""


def _checkpoints(
    flow: Flow, clusters: Clusters, target_topics: Mapping[str, int], timer: Timer
) -> tuple[dict[TopicPartition, list[OffsetPair]], str]:
    """Return the checkpoints of all groups by the target's partition, each as (source offset, target offset)."""
    try:
        read, topic = read_checkpoints_topic(clusters, flow, target_topics, timer)
    except ClusterError as error:
        return {}, error.problem
    pairs: dict[TopicPartition, list[OffsetPair]] = {}
    for key, record in read.latest.items():
        pair = record.source_offset, record.target_offset
        pairs.setdefault(TopicPartition(key.target_topic, key.partition), []).append(pair)
    return pairs, "" if topic.pinned else _absent(topic, flow)


def _absent(topic: Mm2Topic, flow: Flow) -> str:
    cluster = flow.source if topic.side is Side.SOURCE else flow.target
    return f"there is no topic {topic.topic} on {cluster.alias}"
