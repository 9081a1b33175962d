"""Law 4 over one partition: which windows are read, and when every commit is placed. Pure.

`matching` is a conversation: it says what it needs of both logs, is given that, and answers in the end. So the same
laws run over logs in memory (the tests' simulated worlds) and over a hundred partitions at once whose needs a reader
gathers into one round. Inside, they are written as if both logs were known; what is not known yet raises
`MissingRanges`, and `attempt` gathers that into `Needs`.
Commits of a partition that share their upper end share one alignment.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Generator

from migrate.match.alignment import Alignment
from migrate.match.anchors import SOURCE, WIDE, Anchors
from migrate.match.copies import Premises
from migrate.match.equality import Equality
from migrate.match.partial_log import LogPair, MissingRanges, Section, collected
from migrate.match.placement import Placement
from migrate.match.protocol import (
    Matched,
    Needs,
    OffsetPair,
    OffsetRange,
    PartitionAnswer,
    PartitionQuestion,
    Supply,
    Tail,
    Unmatched,
    Unreadable,
)
from migrate.match.sync_only import guarded
from migrate.match.tail import UNKNOWN, TailFacts, read_tail
from migrate.model import Side

# Source records read below a commit for which no sync serves as lower end.
CONTEXT = 32


def matching(question: PartitionQuestion) -> Generator[Needs, Supply | Unreadable, PartitionAnswer]:
    """Place the commits of one partition (Laws 1, 3 and 4 of docs/translation.md).

    Yields what is to be read next; an `Unreadable` instead of a `Supply` ends it.
    """
    matcher = PartitionMatcher(question)
    outcome: PartitionAnswer | Needs = matcher.first_needs()
    if outcome == Needs():
        outcome = matcher.attempt()
    while isinstance(outcome, Needs):
        supply = yield outcome
        if isinstance(supply, Unreadable):
            return matcher.unreadable(supply.reason)
        matcher.logs.take_in(supply)
        outcome = matcher.attempt()
    return outcome


class PartitionMatcher:
    """One partition's matching, as far as it has come."""

    def __init__(self, question: PartitionQuestion) -> None:
        self.question = question
        self.logs = LogPair(question)
        self.source, self.target = self.logs.source, self.logs.target
        self.anchors = Anchors(question, self.logs)
        self.places: dict[int, Matched | Unmatched] = {}
        self._is_changed = question.equality is Equality.TIME_AND_KEY
        self._tail: TailFacts | None = None

    def first_needs(self) -> Needs:
        """Return the windows that the chain suggests, and the tail: mostly all that is needed."""
        source: list[OffsetRange] = []
        target: list[OffsetRange] = []
        pairs = self.anchors.pairs

        def suggest(lower: OffsetPair, source_end: int, target_end: int) -> None:
            if source_end - lower[0] <= WIDE and target_end - lower[1] <= 2 * WIDE:
                source.append(OffsetRange(lower[0], source_end))
                target.append(OffsetRange(lower[1], target_end))

        if pairs:
            suggest(pairs[-1], self.source.end, self.target.end)
        for committed in self.question.source_committed:
            at = bisect_right(pairs, committed, key=SOURCE)
            ends = (pairs[at][0] + 1, pairs[at][1] + 1) if at < len(pairs) else (self.source.end, self.target.end)
            if at:
                suggest(pairs[at - 1], *ends)
            elif ends[0] - committed <= WIDE:
                source.append(OffsetRange(max(0, committed - CONTEXT), ends[0]))
        return self.logs.needs([MissingRanges({Side.SOURCE: source, Side.TARGET: target})])

    def attempt(self) -> PartitionAnswer | Needs:
        """Place what can be placed; return the answer, or what has to be read for the rest."""
        missing: list[MissingRanges] = []
        if self._tail is None:
            try:
                self._tail = self._read_tail()
            except MissingRanges as more:
                return self.logs.needs([more])
        by_upper: dict[OffsetPair | None, list[int]] = defaultdict(list)
        for committed in reversed(self.question.source_committed):
            if committed not in self.places:
                with collected(missing):
                    by_upper[self._upper(committed, self._tail)].append(committed)
        for upper, commits in by_upper.items():
            with collected(missing):
                self._place_together(upper, commits, self._tail, missing)
        return self.logs.needs(missing) if missing else self._answer(self._tail)

    def _read_tail(self) -> TailFacts:
        facts = read_tail(self.anchors, self.logs)
        # Time and key do not tell a record from one that looks like it: nothing is proven drained by them.
        return UNKNOWN if self._is_changed else facts

    def unreadable(self, reason: str) -> PartitionAnswer:
        """Return the answer where a log cannot be read."""
        for committed in self.question.source_committed:
            self.places.setdefault(committed, Unmatched.not_readable(reason))
        return self._answer(self._tail or UNKNOWN)

    def _answer(self, facts: TailFacts) -> PartitionAnswer:
        places = {committed: self.places[committed] for committed in self.question.source_committed}
        waiting = self._waiting_since(facts)
        tail = Tail(
            facts.uncopied, self._last_record(), waiting, facts.foreign, facts.perhaps_copies, facts.passed_over
        )
        return PartitionAnswer(places, tail, len(self.source.offsets), len(self.target.offsets))

    def _last_record(self) -> int | None:
        """Return the offset of the source's last record, if all behind it is known."""
        if not self.source.offsets or self.source.uncovered(self.source.offsets[-1], self.source.end):
            return None
        return self.source.offsets[-1]

    def _waiting_since(self, facts: TailFacts) -> int | None:
        """Return the timestamp of the first source record from which on nothing was copied."""
        offsets, first = self.source.offsets, facts.source_uncopied_from
        at = len(offsets) if first is None else self.source.index(first)
        return self.source.times[at] if at < len(offsets) and offsets[at] == first else None

    # Windows (Law 4)

    def _upper(self, committed: int, tail: TailFacts) -> OffsetPair | None:
        """Return the nearest proven pair above a commit behind which all is plain; None: the ends of the logs."""
        if self.question.source_has_copies:
            return None  # what is on the source alone is looked for up to its end
        return self.anchors.above(committed) if tail.is_plain else None

    def _place_together(
        self, upper: OffsetPair | None, commits: list[int], tail: TailFacts, missing: list[MissingRanges]
    ) -> None:
        """Place commits (descending) that share their upper end."""
        if upper is not None and upper[0] < self.source.start:
            upper = None  # retention has removed it since it was compared
        source_end, target_end = (self.source.end, self.target.end) if upper is None else (upper[0] + 1, upper[1] + 1)
        lower = None
        while commits:
            if self.source.affords(commits[-1], source_end):
                lower = self.anchors.below(commits[-1], WIDE if self.logs.keeps_time else None)
                # Before it is asked for: a window too long to read is not to be read to find that out.
                if lower is None or (
                    self.source.affords(lower[0], source_end) and self.target.affords(lower[1], target_end)
                ):
                    break
            self._place_beyond_limit(commits.pop(), missing)
        if not commits:
            return
        lowest = commits[-1]
        if lower is not None:
            source, _ = self.logs.sections(OffsetRange(lower[0], source_end), OffsetRange(lower[1], target_end))
            target_start = lower[1]
        else:
            source = self.source.section(max(self.source.start, lowest - CONTEXT), source_end)
            target_start = self._lowest_copy(source, target_end)
        premises = Premises(
            tells_apart=not self._is_changed,
            has_open_transaction=self.question.has_open_transaction,
            may_end_midway=upper is None and self.logs.keeps_time,
            sync_pairs=self.anchors.between(source.start, source.end),
        )
        while True:
            if not self.target.affords(target_start, target_end):
                for committed in commits:
                    self._place_beyond_limit(committed, missing)
                return
            aligned = Alignment(source, self.target.section(target_start, target_end), premises)
            probed = self._probe(aligned, lowest)
            if probed >= target_start:
                break
            target_start = probed
        leaves_out = source.has_gaps or aligned.without_copy(source.low) > 0
        if upper is not None and leaves_out and self.source.affords(source.start, self.source.end):
            # Where not every offset was copied, the same distance between the logs does not rule out a replay above.
            self._place_together(None, commits, tail, missing)
            return
        placement = Placement(self.logs, self.anchors, tail, aligned, lower, upper)
        for committed in commits:
            with collected(missing):
                self.places[committed] = placement.place(committed)

    def _lowest_copy(self, source: Section, target_end: int) -> int:
        """Return an offset below which no copy of these source records can be: none has an older timestamp."""
        if not self.logs.keeps_time:
            return self.target.start
        times = source.times
        return min(self.target.first_at(min(times)), target_end) if times else target_end

    def _probe(self, aligned: Alignment, lowest: int) -> int:
        """Return from where on the target has to be read so that no copy of an owed record is overlooked."""
        times = aligned.times_without_copy(aligned.first_owed(lowest))
        if not times:
            return aligned.target.start
        return self.target.first_at(min(times)) if self.logs.keeps_time else self.target.start

    def _place_beyond_limit(self, committed: int, missing: list[MissingRanges]) -> None:
        """Law 2 with proven ends, for a commit whose window is too long to read."""
        with collected(missing):
            self.places[committed] = guarded(committed, self.anchors, self.logs)
