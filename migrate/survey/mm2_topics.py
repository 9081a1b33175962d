"""MM2's checkpoints and offset syncs, each read up to an end that is pinned once."""

from collections.abc import Collection, Mapping

from migrate.errors import ClusterError
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointReading, SyncReading, WindowQuestion
from migrate.model import Failure, LogRange, Side, TopicPartition
from migrate.progress import Timer
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.offsets_pin import persistently
from migrate.survey.survey import Clusters, Mm2Topic

NO_LOG = Failure("NO_ANSWER", "no answer")


def read_checkpoints_topic(
    clusters: Clusters, flow: Flow, topics: Mapping[str, int], timer: Timer
) -> tuple[CheckpointReading, Mm2Topic]:
    """Read the checkpoints, where `topics`, those of the target, have them."""
    topic = flow.checkpoints_topic
    # MM2 makes none for the way back; the topic holds those of the way there.
    if not flow.mm2_delivers or topic not in topics:
        found = False if flow.mm2_delivers else None
        return CheckpointReading({}, {}), Mm2Topic(Side.TARGET, topic, found, None)

    def read_once() -> tuple[CheckpointReading, Mm2Topic]:
        pinned = _pin(clusters.target, topic, timer)
        where = f"{topic} on {clusters.target.alias}, offsets {pinned.start} to {pinned.end}"
        text = f"reading MM2's checkpoints: {where}"
        read = timer.run("checkpoints", text, lambda: clusters.mirror.checkpoints(topic, pinned))
        return read, Mm2Topic(Side.TARGET, topic, True, pinned)

    return persistently(read_once)


def read_syncs_topic(
    clusters: Clusters,
    flow: Flow,
    topics: Mapping[str, int],
    timer: Timer,
    questions: Collection[WindowQuestion] = (),
) -> tuple[SyncReading, Mm2Topic]:
    """Read the offset syncs, where `topics`, those of the side where they belong, have them; with these windows."""
    topic, side = flow.offset_syncs_topic, flow.syncs_side
    admin = clusters.source if side is Side.SOURCE else clusters.target
    if admin is None or topic not in topics:
        found = False if admin is not None and topic else None
        return SyncReading({}, {}), Mm2Topic(side, topic, found, None)
    pinned = _pin(admin, topic, timer)
    text = f"reading MM2's offset syncs: {topic} on {admin.alias}, offsets {pinned.start} to {pinned.end}"
    read = timer.run("syncs", text, lambda: clusters.mirror.windows(side, topic, pinned, set(questions)))
    return read, Mm2Topic(side, topic, True, pinned)


def pinned_log(admin: ClusterAdmin, topic: str) -> LogRange | Failure:
    """Return the log range of one of the two topics, which have one partition; `NO_LOG` where nobody answered."""
    partition = TopicPartition(topic, 0)
    return admin.log_ranges([partition]).get(partition, NO_LOG)


def _pin(admin: ClusterAdmin, topic: str, timer: Timer) -> LogRange:
    log = timer.run("pin", f"asking {admin.alias} for the ends of {topic}", lambda: pinned_log(admin, topic))
    if isinstance(log, LogRange):
        return log
    why = log.message if log is NO_LOG else str(log)
    raise ClusterError(
        f"{admin.alias} returned no log range of MM2's topic {topic} ({why}).",
        "Grant DESCRIBE and READ on that topic, or try again.",
    )
