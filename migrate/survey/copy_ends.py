"""Where copies end, beside the newest sync of each: one that lies beyond its copy's end is of a log that is gone.

It matters where no records were compared. The ends are read after MM2's topics: while MM2 copies, a sync of a record
that was written since the plan's ends were pinned would lie beyond those.
"""

from collections.abc import Collection, Mapping

from migrate.match.place_table import PlaceTable
from migrate.match.protocol import PartitionAnswer, Why
from migrate.mm2.flow import Flow
from migrate.mm2.topics import WindowQuestion
from migrate.model import Failure, LogRange, OffsetSync, TopicPartition
from migrate.progress import LOGS_AT_ONCE, Timer
from migrate.survey.survey import Clusters, CopyEnd, Logs, Mm2Topic, copy_of
from migrate.text import many

_NO_ANSWER = Failure("NO_ANSWER", "no answer")
# No log has this offset: whatever was synced lies below it.
_NO_END = 2**63 - 1


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
    is_read = all(why is not Why.NOT_ALL_READ and not why.is_by_time for why in places.whys())
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
