"""Which topics are audited, and what of their logs: ends that are pinned, once.

The order of reading: the replicator's own positions, then the target's ends, then the source's. So what it had copied
by its positions lies below the target's ends, and every original of what lies there below the source's.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from migrate.errors import ClusterError
from migrate.mm2.flow import Flow
from migrate.mm2.naming import HEARTBEATS
from migrate.model import Failure, LogRange, Side, TopicPartition
from migrate.progress import LOGS_AT_ONCE, Timer
from migrate.survey.cluster import CLEANUP_POLICY, ClusterAdmin
from migrate.survey.filters import Filters
from migrate.survey.records import read_positions
from migrate.survey.survey import Clusters
from migrate.text import many

_NO_ANSWER = Failure("NO_ANSWER", "no answer")


@dataclass(frozen=True)
class PinnedTopic:
    """A topic as it was pinned: both logs by partition, and what of them is not to be read, and why.

    `next_to_copy` are the replicator's own positions; a transaction cuts the logs of `open_on_source` and
    `open_on_target` short. `compacted` says on which sides a cleaner takes superseded records, or may: `hides_policy`
    is True where the target does not say. With `only_compacted` no retention takes records from the source. Of a
    partition with `begins` nothing is looked at below these offsets (source, target). `owed_from` are the (partition,
    source offset) of a plan's groups.
    """

    topic: str
    target: str
    ids: tuple[str, str]
    source_logs: Mapping[int, LogRange]
    target_logs: Mapping[int, LogRange]
    next_to_copy: Mapping[int, int]
    open_on_source: frozenset[int]
    open_on_target: frozenset[int]
    compacted: frozenset[Side]
    only_compacted: bool
    hides_policy: bool
    unproven: tuple[str, ...]
    begins: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    owed_from: frozenset[tuple[int, int]] = frozenset()

    def logs(self, side: Side) -> Mapping[int, LogRange]:
        """Return what is looked at of the logs of one side."""
        logs = self.source_logs if side is Side.SOURCE else self.target_logs
        at = [*Side].index(side)
        return {
            p: replace(log, start=max(log.start, min(self.begins[p][at], log.end))) if p in self.begins else log
            for p, log in logs.items()
        }

    def name(self, side: Side) -> str:
        """Return what the topic is called on one side."""
        return self.topic if side is Side.SOURCE else self.target


def pin_topics(
    flow: Flow,
    clusters: Clusters,
    filters: Filters,
    timer: Timer,
    owed: Mapping[str, Collection[int]] | None = None,
) -> tuple[list[PinnedTopic], tuple[str, ...]]:
    """Return the topics that are copied, and those inside the filters that the replicator leaves out.

    That is by its own filter, or by a name that makes a topic a copy from the target: what is written to such a topic
    has no copy there. Topics of Kafka or the replicator are not among them. With `owed` they are these partitions, by
    topic of the source, and what is not copied is none that is left out.
    """
    source, target = clusters.source, clusters.target
    assert source is not None
    source_topics, target_topics = source.topics(), target.topics()
    asked = sorted(owed or (t for t in source_topics if filters.topic_verdict(t) is None and t != HEARTBEATS))
    chosen = {t: flow.policy.target_topic(t) for t in asked if owed or not flow.why_not_replicated(t)}
    # Of topics of Kafka or the replicator nobody expects a copy.
    others = [t for t in asked if t not in chosen and not t.endswith(HEARTBEATS)]
    left_out = tuple(t for t in others if not flow.policy.is_internal(t))
    copied = {topic: copy for topic, copy in chosen.items() if topic in source_topics and copy in target_topics}
    source_ids, target_ids = source.topic_ids([*copied]), target.topic_ids([*copied.values()])
    source_policies, target_policies = _policies(source, [*copied], timer), _policies(target, [*copied.values()], timer)
    positions = read_positions(clusters, flow, target_topics, timer).last_copied_offset
    on_target = _Ends.of(target, {copy: target_topics[copy] for copy in copied.values()}, timer)
    on_source = _Ends.of(source, {topic: source_topics[topic] for topic in copied}, timer)
    pinned = []
    for topic, copy in chosen.items():
        lacking = (topic, source) if topic not in source_topics else (copy, target)
        unproven = [] if topic in copied else [f"there is no topic {lacking[0]} on {lacking[1].alias}"]
        source_logs, target_logs = dict[int, LogRange](), dict[int, LogRange]()
        of_topic = sorted(owed[topic]) if owed else range(source_topics[topic])
        for p in of_topic if topic in copied else ():
            here, there = TopicPartition(topic, p), TopicPartition(copy, p)
            source_log, target_log = on_source.log(here), on_target.log(there)
            if p >= target_topics[copy]:
                unproven.append(f"{copy} on {target.alias} has no partition {p}")
            elif isinstance(source_log, Failure):
                unproven.append(f"partition {p} on {source.alias} is not visible ({source_log.code})")
            elif isinstance(target_log, Failure):
                unproven.append(f"partition {p} on {target.alias} is not visible ({target_log.code})")
            else:
                source_logs[p], target_logs[p] = source_log, target_log
                if on_source.is_open(here):
                    unproven.append(f"partition {p}: a transaction is open on {source.alias} from {source_log.end} on")
        policies = source_policies.get(topic), target_policies.get(copy)
        pinned.append(
            PinnedTopic(
                topic,
                copy,
                (source_ids.get(topic, ""), target_ids.get(copy, "")),
                source_logs,
                target_logs,
                {p: positions[place] + 1 for p in source_logs if (place := TopicPartition(topic, p)) in positions},
                frozenset(p for p in source_logs if on_source.is_open(TopicPartition(topic, p))),
                frozenset(p for p in target_logs if on_target.is_open(TopicPartition(copy, p))),
                frozenset(s for s, policy in zip(Side, policies, strict=True) if policy is None or "compact" in policy),
                policies[0] == "compact",
                policies[1] is None,
                tuple(unproven),
            )
        )
    return pinned, left_out


def with_current_starts(topic: PinnedTopic, clusters: Clusters) -> PinnedTopic:
    """Return a topic whose logs begin where they do now, for retention goes on, and end where they were pinned.

    Raises `ClusterError` where a cluster does not tell.
    """
    source, target = clusters.source, clusters.target
    assert source is not None

    def logs(admin: ClusterAdmin, side: Side) -> dict[int, LogRange]:
        pinned = topic.source_logs if side is Side.SOURCE else topic.target_logs
        now = admin.log_ranges([TopicPartition(topic.name(side), p) for p in pinned])
        begins = {}
        for place, log in now.items():
            if isinstance(log, Failure):
                where = f"partition {place.partition} of {place.topic} on {admin.alias}"
                raise ClusterError(f"{where} is not visible any more ({log.code}).")
            begins[place.partition] = log.start
        return {p: replace(log, start=max(log.start, min(begins[p], log.end))) for p, log in pinned.items()}

    return replace(topic, source_logs=logs(source, Side.SOURCE), target_logs=logs(target, Side.TARGET))


def _policies(admin: ClusterAdmin, topics: list[str], timer: Timer) -> dict[str, str]:
    """Return who takes records from each topic; where that is not visible, it is left out."""
    text = f"asking {admin.alias} which topics are compacted"
    found = timer.run("pin", text, lambda: admin.topic_settings(topics, CLEANUP_POLICY)) if topics else {}
    return {} if isinstance(found, Failure) else {t: p for t, p in found.items() if isinstance(p, str)}


@dataclass(frozen=True)
class _Ends:
    """Logs of one cluster; the high watermarks were read before: one beyond a last stable offset is a transaction's."""

    logs: Mapping[TopicPartition, LogRange | Failure]
    high_watermarks: Mapping[TopicPartition, int | Failure]

    @classmethod
    def of(cls, admin: ClusterAdmin, topics: Mapping[str, int], timer: Timer) -> "_Ends":
        places = [TopicPartition(topic, p) for topic, count in topics.items() for p in range(count)]
        text = f"pinning {many(len(places), 'log')} on {admin.alias}"
        high_watermarks = timer.ask("pin", text, places, admin.high_watermarks, LOGS_AT_ONCE)
        return cls(timer.ask("pin", text, places, admin.log_ranges, LOGS_AT_ONCE), high_watermarks)

    def log(self, place: TopicPartition) -> LogRange | Failure:
        return self.logs.get(place, _NO_ANSWER)

    def is_open(self, place: TopicPartition) -> bool:
        """True if a transaction is open, or may be."""
        log, mark = self.log(place), self.high_watermarks.get(place, _NO_ANSWER)
        return isinstance(log, Failure) or isinstance(mark, Failure) or mark > log.end
