"""The tails of many partitions compared in this process, without Spark: whether MM2 has copied everything.

Pure: it reads through ports. Behind `migrate.match.comparison.RecordComparer`, but it places no commits: only what is
behind the last proven sync is read, and judged as for a plan (`migrate.match.matcher`); what has not moved, not again.
"""

from collections.abc import Collection

from migrate.errors import MigrateError
from migrate.match.calibration import calibrate_topics, topic_questions
from migrate.match.comparison import Comparison, FetchEstimate, Limits, Listener
from migrate.match.equality import Equality
from migrate.match.protocol import ChainOf, OffsetPair, PartitionAnswer, PartitionQuestion, Tail, Work
from migrate.match.task import Fetched, OpenReaders, match_partitions
from migrate.model import TopicPartition

# Offsets of either log that are read of all partitions in one round, and of each at least and at most.
OFFSETS_PER_ROUND = 2_000_000
LEAST_PER_PARTITION = 5_000
MOST_PER_PARTITION = 50_000
UNKNOWN = PartitionAnswer({}, Tail(None), 0, 0)


class TailComparer:
    """Compares the tails of partitions; made once, it remembers what was drained and how topics are compared."""

    def __init__(self, chain_of: ChainOf, open_readers: OpenReaders) -> None:
        self._chain_of = chain_of
        self._open_readers = open_readers
        self._equalities: dict[str, Equality] = {}
        self._drained: dict[TopicPartition, tuple[Work, PartitionAnswer]] = {}

    def compare(
        self, works: Collection[Work], limits: Limits, listener: Listener, failback: bool = False
    ) -> Comparison:
        """Compare the tails; raises `ClusterError` if a cluster does not answer."""
        assert not failback, "nothing is copied the way that a failback goes"
        answers = {work.source: self._remembered(work) for work in works}
        moved = [work for work in works if answers[work.source] is UNKNOWN]
        chains = {w.source: self._chain_of(w.source, w.source_log.end, w.target_log.end) for w in moved}
        remembered = {work.source.topic: self._equalities.get(work.source.topic) for work in works}
        equalities = remembered | self._calibrate([(work, chains[work.source]) for work in moved])
        limit = min(limits.match_records, _limit(len(moved)))
        questions = [
            PartitionQuestion(
                work.source, work.target, work.source_log, work.target_log, (), work.has_open_transaction,
                work.last_copied_offset, sync_pairs=chains[work.source], equality=equality, match_limit=limit,
            )
            for work in moved
            if (equality := equalities[work.source.topic]) is not None
        ]  # fmt: skip
        fetched = Fetched(0, 0)
        for outcome in match_partitions(self._open_readers, questions):
            if isinstance(outcome, MigrateError):
                raise outcome
            if isinstance(outcome, Fetched):
                fetched = outcome
            else:
                answers[outcome[0]] = outcome[1]
        self._drained = {w.source: (w, a) for w in works if (a := answers[w.source]).tail.uncopied == 0}
        estimate = FetchEstimate(len(questions), 0, 0, 0, 0, 0)
        return Comparison(answers, equalities, estimate, fetched.source_bytes, fetched.target_bytes)

    def _remembered(self, work: Work) -> PartitionAnswer:
        """Return the answer about a partition that was drained, if both its logs are as they were."""
        before, answer = self._drained.get(work.source, (work, UNKNOWN))
        same = (before.source_log.end, before.target_log.end) == (work.source_log.end, work.target_log.end)
        return answer if same and before.has_open_transaction == work.has_open_transaction else UNKNOWN

    def _calibrate(self, works: Collection[tuple[Work, tuple[OffsetPair, ...]]]) -> dict[str, Equality | None]:
        """Return how the records of each topic compare that is not known yet, and remember it where anchors agree."""
        questions = topic_questions((work, chain) for work, chain in works if work.source.topic not in self._equalities)
        equalities: dict[str, Equality | None] = {}
        for calibration in calibrate_topics(self._open_readers, questions) if questions else ():
            if isinstance(calibration, MigrateError):
                raise calibration
            equalities[calibration.topic] = calibration.equality
            if calibration.lasts and calibration.equality is not None:
                self._equalities[calibration.topic] = calibration.equality
        return equalities


def _limit(partitions: int) -> int:
    return max(LEAST_PER_PARTITION, min(MOST_PER_PARTITION, OFFSETS_PER_ROUND // max(1, partitions)))
