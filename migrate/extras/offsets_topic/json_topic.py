"""The topic that an export is written to: what must hold before, and how far its log ends have moved after. Pure."""

from collections.abc import Iterable, Mapping

from migrate.errors import ClusterError, Refused
from migrate.model import Failure, TopicPartition
from migrate.survey.cluster import ClusterAdmin

INTERNAL = "__"
_ELSEWHERE = "Name a topic of another cluster: nothing is ever written where groups are read or leave."


def refuse_internal(topic: str) -> None:
    """Raise `Refused` for a name by which Kafka, or a tool, keeps what it lives on."""
    if topic.startswith(INTERNAL):
        raise Refused(f"--to-topic {topic} is a name of internal topics.", "Choose one that does not begin with __.")


def refuse_destination(topic: str, destination: ClusterAdmin, others: Iterable[ClusterAdmin]) -> None:
    """Raise `Refused` if `destination` is one of the clusters that nothing is written to, or has no such topic.

    Raises `ClusterError` where that cannot be known: clusters are known by their ids, never by their addresses.
    """
    cluster_id = destination.facts().cluster_id
    for other in others:
        try:
            same = other.facts().cluster_id == cluster_id
        except ClusterError as error:
            raise ClusterError(
                f"Whether --to-config names {other.side} {other.alias} is not visible: {error.problem}", error.todo
            ) from error
        if same:
            raise Refused(f"--to-config names {other.side} {other.alias}: both are cluster {cluster_id}.", _ELSEWHERE)
    if not destination.topics().get(topic):
        raise Refused(
            f"The cluster of --to-config shows no topic {topic}.",
            "Create it (with as many partitions as you like), or grant DESCRIBE on it: an export creates none.",
        )


def log_ends(topic: str, destination: ClusterAdmin) -> Mapping[TopicPartition, int] | Failure:
    """Return where each partition of the topic ends, or why one of them does not tell."""
    try:
        places = [TopicPartition(topic, number) for number in range(destination.topics().get(topic, 0))]
        answers = destination.high_watermarks(places)
    except ClusterError as error:
        return Failure("NOT_VISIBLE", error.problem)
    ends: dict[TopicPartition, int] = {}
    for place, end in answers.items():
        if isinstance(end, Failure):
            return end
        ends[place] = end
    return ends


def growth(
    before: Mapping[TopicPartition, int] | Failure, after: Mapping[TopicPartition, int] | Failure
) -> int | Failure:
    """Return by how many offsets the log ends have moved, or why that is not known."""
    if isinstance(before, Failure) or isinstance(after, Failure):
        return before if isinstance(before, Failure) else after  # type: ignore[return-value]
    return sum(end - before.get(place, 0) for place, end in after.items())
