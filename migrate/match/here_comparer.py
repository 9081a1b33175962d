"""The records of all partitions compared in this process, without Spark: for `follow`, which looks every half minute.

Pure: it reads through ports. Behind `migrate.match.comparison.RecordComparer`, with the same laws and limits as where
Spark spreads the work. What it has answered holds while both logs and the commits stay as they were, so that a quiet
partition is not read again.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from migrate.errors import MigrateError
from migrate.match.calibration import ANCHORS, Calibration, calibrate_topics, topic_questions
from migrate.match.comparison import Comparison, Limits, Listener
from migrate.match.equality import Equality
from migrate.match.fetch_plan import cost_of, plan_fetch
from migrate.match.matcher import matching
from migrate.match.protocol import (
    ChainOf,
    Matched,
    PartitionAnswer,
    PartitionQuestion,
    WhyUnmatched,
    Work,
)
from migrate.match.sync_only import guarding
from migrate.match.task import Fetched, Matching, OpenReaders, match_partitions
from migrate.model import TopicPartition


class _Answered(NamedTuple):
    """What was answered to a work, and under which equality: that holds as long as the answer does."""

    work: Work
    answer: PartitionAnswer
    equality: Equality | None


class HereComparer:
    """Places the commits of partitions; made once, it remembers answers and how the records of topics compare."""

    def __init__(self, chain_of: ChainOf, open_readers: OpenReaders) -> None:
        self._chain_of = chain_of
        self._open_readers = open_readers
        self._calibrations: dict[str, Calibration] = {}
        self._answered: dict[TopicPartition, _Answered] = {}

    def forget(self) -> None:
        """Read everything anew from now on: a topic was created anew, say."""
        self._calibrations.clear()
        self._answered.clear()

    def compare(
        self, works: Collection[Work], limits: Limits, listener: Listener, failback: bool = False
    ) -> Comparison:
        """Place the commits of every work; raises `ClusterError` if a cluster does not answer."""
        assert not failback, "nothing is copied the way that a failback goes"
        remembered = [told for w in works if (told := self._answered.get(w.source)) is not None and told.work == w]
        known = {told.work.source: told.answer for told in remembered}
        questions = [self._question(work, limits.match_records) for work in works if work.source not in known]
        calibrations = self._calibrate(questions)
        equalities = {told.work.source.topic: told.equality for told in remembered}
        equalities |= {q.source.topic: _equality(calibrations.get(q.source.topic)) for q in questions}
        sizes = {topic: (each.source_size, each.target_size) for topic, each in calibrations.items()}
        alike = [q for q in questions if equalities[q.source.topic] is not None]
        plan = plan_fetch([cost_of(q, matching, ANCHORS) for q in alike], sizes, limits, 1)
        listener.expects(plan.estimate)
        left_out = [q for q in alike if q.source in plan.left_out]
        changed = [q for q in questions if equalities[q.source.topic] is None]
        jobs: list[tuple[Matching, list[PartitionQuestion]]] = [
            (matching, [q for q in alike if q.source not in plan.left_out]),
            (partial(guarding, reason=WhyUnmatched.MATCH_LIMIT, is_bounded=True), left_out),
            (partial(guarding, reason=WhyUnmatched.RECORDS_CHANGED, is_bounded=False), changed),
        ]
        fresh: dict[TopicPartition, PartitionAnswer] = {}
        fetched = [0, 0]
        for match, asked in jobs:
            under = [replace(q, equality=equalities[q.source.topic] or Equality.TIME_AND_KEY) for q in asked]
            for outcome in match_partitions(self._open_readers, under, match) if under else ():
                if isinstance(outcome, MigrateError):
                    raise outcome
                if isinstance(outcome, Fetched):
                    fetched = [fetched[0] + outcome.source_bytes, fetched[1] + outcome.target_bytes]
                else:
                    fresh[outcome[0]] = outcome[1]
                    listener.advance(len(fresh), len(questions))
        answers = known | fresh
        self._answered = {
            work.source: _Answered(work, answers[work.source], equalities[work.source.topic])
            for work in works
            if work.source not in plan.left_out and _holds(answers[work.source])
        }
        return Comparison(answers, equalities, plan.estimate, *fetched)

    def _question(self, work: Work, limit: int) -> PartitionQuestion:
        return PartitionQuestion(
            work.source, work.target, work.source_log, work.target_log, tuple(sorted(set(work.source_committed))),
            work.has_open_transaction, work.last_copied_offset, work.compacted,
            sync_pairs=self._chain_of(work.source, work.source_log.end, work.target_log.end),
            equality=Equality.ALL, match_limit=limit,
        )  # fmt: skip

    def _calibrate(self, questions: Collection[PartitionQuestion]) -> Mapping[str, Calibration]:
        """Return how the records of topics compare; what anchors agree on is not asked again."""
        asked = [(q, q.sync_pairs) for q in questions if q.source.topic not in self._calibrations]
        found = dict(self._calibrations)
        for calibration in calibrate_topics(self._open_readers, topic_questions(asked)) if asked else ():
            if isinstance(calibration, MigrateError):
                raise calibration
            found[calibration.topic] = calibration
            if calibration.lasts:
                self._calibrations[calibration.topic] = calibration
        return found


def _holds(answer: PartitionAnswer) -> bool:
    """True if another reading of the same logs would say the same: what was not readable may be by then."""
    unplaced = (place.reason for place in answer.places.values() if not isinstance(place, Matched))
    return all(reason in (WhyUnmatched.MATCH_LIMIT, WhyUnmatched.RECORDS_CHANGED) for reason in unplaced)


def _equality(calibration: Calibration | None) -> Equality | None:
    return None if calibration is None else calibration.equality
