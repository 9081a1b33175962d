"""The tails of many partitions compared in this process, without Spark: whether MM2 has copied everything.

Pure: it reads through ports. Behind `migrate.match.comparison.RecordComparer`, but it places no commits: only what is
behind the last proven sync is read, and judged as for a plan (`migrate.match.matcher`); what has not moved, not again.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Protocol

from migrate.match.calibration import AnchorPartition, CalibrationTask, TopicQuestion
from migrate.match.comparison import Comparison, FetchEstimate, Limits, Listener, Work
from migrate.match.equality import Equality
from migrate.match.protocol import OffsetPair, PartitionAnswer, PartitionQuestion, Tail
from migrate.match.task import Failed, Fetched, MatchTask, OpenReaders
from migrate.model import TopicPartition

# Offsets of either log that are read of all partitions in one round, and of each at least and at most.
OFFSETS_PER_ROUND = 2_000_000
LEAST_PER_PARTITION = 5_000
MOST_PER_PARTITION = 50_000
ANCHORS = 16
ANCHOR_PARTITIONS = 4
UNTOLD = PartitionAnswer({}, Tail(None), 0, 0)


class Chains(Protocol):
    """Has the offset syncs at hand."""

    def sync_pairs(self, source: TopicPartition, source_end: int, target_end: int) -> tuple[OffsetPair, ...]:
        """Return the chain of one partition (Law 1)."""


class TailComparer:
    """Compares the tails of partitions; made once, it remembers what was drained and how topics are compared."""

    def __init__(self, chains: Chains, open_readers: OpenReaders) -> None:
        self._chains = chains
        self._open_readers = open_readers
        self._equalities: dict[str, Equality] = {}
        self._drained: dict[TopicPartition, tuple[Work, PartitionAnswer]] = {}

    def compare(
        self, works: Collection[Work], limits: Limits, listener: Listener, inverted: bool = False
    ) -> Comparison:
        """Compare the tails; raises `ClusterError` if a cluster does not answer."""
        assert not inverted, "nothing is copied the way that a failback goes"
        answers = {work.source: self._remembered(work) for work in works}
        moved = [work for work in works if answers[work.source] is UNTOLD]
        chains = {w.source: self._chains.sync_pairs(w.source, w.source_log.end, w.target_log.end) for w in moved}
        equalities = self._calibrate(moved, chains)
        limit = min(limits.match_records, _limit(len(moved)))
        questions = [
            PartitionQuestion(
                work.source, work.target, work.source_log, work.target_log, chains[work.source], (), equality,
                work.has_open_transaction, work.last_copied_offset, limit,
            )
            for work in moved
            if (equality := equalities[work.source.topic]) is not None
        ]  # fmt: skip
        fetched = Fetched(0, 0)
        for outcome in MatchTask(self._open_readers)(questions):
            if isinstance(outcome, Failed):
                raise outcome.error()
            if isinstance(outcome, Fetched):
                fetched = outcome
            else:
                answers[outcome[0]] = outcome[1]
        self._drained = {w.source: (w, a) for w in works if (a := answers[w.source]).tail.uncopied == 0}
        for work in works:
            equalities.setdefault(work.source.topic, self._equalities.get(work.source.topic))
        estimate = FetchEstimate(len(questions), 0, 0, 0, 0, 0)
        return Comparison(answers, equalities, estimate, fetched.source_bytes, fetched.target_bytes)

    def _remembered(self, work: Work) -> PartitionAnswer:
        """Return what was told of a partition that was drained, if both its logs are as they were."""
        before = self._drained.get(work.source)
        if before is None:
            return UNTOLD
        same = (before[0].source_log.end, before[0].target_log.end) == (work.source_log.end, work.target_log.end)
        return before[1] if same and before[0].has_open_transaction == work.has_open_transaction else UNTOLD

    def _calibrate(
        self, works: Collection[Work], chains: Mapping[TopicPartition, tuple[OffsetPair, ...]]
    ) -> dict[str, Equality | None]:
        """Return how each topic's records compare; where anchors agree, that is remembered."""
        equalities: dict[str, Equality | None] = {}
        chosen: dict[str, list[AnchorPartition]] = defaultdict(list)
        for work in sorted(works, key=lambda w: (-len(chains[w.source]), w.source)):
            topic = work.source.topic
            if topic in self._equalities:
                equalities[topic] = self._equalities[topic]
            elif len(chosen[topic]) < ANCHOR_PARTITIONS:
                newest = chains[work.source][-ANCHORS:]
                chosen[topic].append(
                    AnchorPartition(work.source, work.target, work.source_log, work.target_log, newest)
                )
        questions = [TopicQuestion(topic, tuple(partitions)) for topic, partitions in chosen.items()]
        for found in CalibrationTask(self._open_readers)(questions) if questions else ():
            if isinstance(found, Failed):
                raise found.error()
            equalities[found.topic] = found.equality
            if found.anchors and found.equality is not None:
                self._equalities[found.topic] = found.equality
        return equalities


def _limit(partitions: int) -> int:
    return max(LEAST_PER_PARTITION, min(MOST_PER_PARTITION, OFFSETS_PER_ROUND // max(1, partitions)))
