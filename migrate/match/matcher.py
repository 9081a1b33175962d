"""Law 4 over one partition: the place of every commit. Pure.

`matching` is a conversation: it says what it needs of both logs, is given that, and answers in the end. So the same
laws run over logs in memory (the tests' simulated worlds) and over a hundred partitions at once whose needs a reader
gathers into one round. Inside, they are written as if both logs were known; what is not known yet raises `Missing`, and
`attempt` gathers that into `Needs`.
Commits of a partition that share their upper end share one alignment.
"""

from bisect import bisect_right
from collections.abc import Callable, Generator
from typing import TypeVar

from migrate.match.alignment import Alignment
from migrate.match.anchors import WIDE, Anchors
from migrate.match.copies import Premises
from migrate.match.equality import Equality
from migrate.match.floor import Bounds, counted_place, floor
from migrate.match.partial_log import KnownLog, Missing, Section, needs_of, require_both, take_in
from migrate.match.protocol import (
    Link,
    Matched,
    Needs,
    PartitionAnswer,
    PartitionQuestion,
    Range,
    Supply,
    Tail,
    Unmatched,
    Unreadable,
    Why,
)
from migrate.match.sync_only import guarded
from migrate.match.tail import UNKNOWN, TailFacts, read_tail
from migrate.model import Side

T = TypeVar("T")

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
        take_in(supply, matcher.source, matcher.target)
        outcome = matcher.attempt()
    return outcome


class PartitionMatcher:
    """One partition's matching, as far as it has come."""

    def __init__(self, question: PartitionQuestion) -> None:
        self.question = question
        self.source = KnownLog(Side.SOURCE, question.source_log, question.match_limit)
        self.target = KnownLog(Side.TARGET, question.target_log, question.match_limit)
        self.anchors = Anchors(question, self.source, self.target)
        self.places: dict[int, Matched | Unmatched] = {}
        self._is_changed = question.equality is Equality.TIME_AND_KEY
        self._keeps_time = question.equality.keeps_time
        self._tail: TailFacts | None = None

    def first_needs(self) -> Needs:
        """Return the windows that the chain suggests, and the tail: mostly all that is needed."""
        source: list[Range] = []
        target: list[Range] = []
        links = self.question.links
        offsets = [u for u, _ in links]
        ends = (self.source.end, self.target.end)
        if links and ends[0] - links[-1][0] <= WIDE and ends[1] - links[-1][1] <= 2 * WIDE:
            source.append(Range(links[-1][0], ends[0]))
            target.append(Range(links[-1][1], ends[1]))
        for g in self.question.source_committed:
            at = bisect_right(offsets, g)
            top = (links[at][0] + 1, links[at][1] + 1) if at < len(links) else ends
            if at and top[0] - links[at - 1][0] <= WIDE and top[1] - links[at - 1][1] <= 2 * WIDE:
                source.append(Range(links[at - 1][0], top[0]))
                target.append(Range(links[at - 1][1], top[1]))
            elif at == 0 and top[0] - g <= WIDE:
                source.append(Range(max(0, g - CONTEXT), top[0]))
        wanted = Missing({Side.SOURCE: tuple(source), Side.TARGET: tuple(target)})
        return needs_of([wanted], self.source, self.target)

    def attempt(self) -> PartitionAnswer | Needs:
        """Place what can be placed; return the answer, or what has to be read for the rest."""
        wants: list[Missing] = []
        if self._tail is None:
            self._tail = _tried(self._read_tail, wants)
        if self._tail is None:
            return needs_of(wants, self.source, self.target)
        groups: dict[Link | None, list[int]] = {}
        for g in reversed(self.question.source_committed):
            if g not in self.places:
                upper = _tried(lambda g=g: (self._upper(g),), wants)  # type: ignore[misc]
                if upper is not None:
                    groups.setdefault(upper[0], []).append(g)
        for link, commits in groups.items():
            _tried(lambda u=link, c=commits: self._place_group(u, c, wants), wants)  # type: ignore[misc]
        return needs_of(wants, self.source, self.target) if wants else self._answer()

    def _read_tail(self) -> TailFacts:
        facts = read_tail(self.anchors, self.source, self.target, self._keeps_time)
        # Time and key do not tell a record from one that looks like it: nothing is proven drained by them.
        return UNKNOWN if self._is_changed else facts

    def unreadable(self, reason: str) -> PartitionAnswer:
        """Return the answer where a log cannot be read."""
        for g in self.question.source_committed:
            self.places.setdefault(g, Unmatched(f"not-readable: {reason}"))
        self._tail = self._tail or UNKNOWN
        return self._answer()

    def _answer(self) -> PartitionAnswer:
        assert self._tail is not None
        places = {g: self.places[g] for g in self.question.source_committed}
        facts = self._tail
        tail = Tail(facts.uncopied, self._last_record(), self._waiting_since(facts), facts.foreign)
        return PartitionAnswer(places, tail, len(self.source.offsets), len(self.target.offsets))

    def _last_record(self) -> int | None:
        """Return the offset of the source's last record, if all behind it is known."""
        if not self.source.offsets or self.source.uncovered(self.source.offsets[-1], self.source.end):
            return None
        return self.source.offsets[-1]

    def _waiting_since(self, tail: TailFacts) -> int | None:
        """Return the timestamp of the first source record from which on nothing was copied."""
        first = tail.source_uncopied_from
        if first is None:
            return None
        at = self.source.index(first)
        known = at < len(self.source.offsets) and self.source.offsets[at] == first
        return self.source.times[at] if known else None

    # Windows and places (Law 4)

    def _upper(self, g: int) -> Link | None:
        """Return the nearest proven link above a commit behind which all is plain; None: the ends of the logs."""
        assert self._tail is not None
        if self.question.failback:
            return None  # what stands on the source alone is looked for up to its end
        return self.anchors.above(g) if self._tail.is_plain else None

    def _place_group(self, upper: Link | None, commits: list[int], wants: list[Missing]) -> None:
        """Place commits (descending) that share their upper end."""
        top_u, top_d = self.source.end, self.target.end
        if upper is not None and upper[0] < self.source.start:
            upper = None  # retention has removed it since it was compared
        if upper is not None:
            top_u, top_d = upper[0] + 1, upper[1] + 1
        commits = list(commits)
        while commits and not self.source.affords(commits[-1], top_u):
            self._place_beyond_limit(commits.pop(), wants)
        if not commits:
            return
        lowest = commits[-1]
        lower = self.anchors.below(lowest, WIDE if self._keeps_time else None)
        if lower is not None:
            start_u, start_d = lower
            require_both(self.source, Range(start_u, top_u), self.target, Range(start_d, top_d))
        else:
            start_u = max(self.source.start, lowest - CONTEXT)
            start_d = self._lowest_copy(self.source.section(start_u, top_u), top_d)
        source = self.source.section(start_u, top_u)
        premises = Premises(
            tells_apart=not self._is_changed,
            has_open_transaction=self.question.source_open,
            may_end_midway=upper is None and self._keeps_time,
            links=self.anchors.between(start_u, top_u),
        )
        while True:
            if not self.target.affords(start_d, top_d):
                for g in commits:
                    self._place_beyond_limit(g, wants)
                return
            aligned = Alignment(source, self.target.section(start_d, top_d), premises)
            probed = self._probe(aligned, lowest, start_d)
            if probed >= start_d:
                break
            start_d = probed
        leaves_out = source.has_gaps or aligned.without_copy(aligned.source.low) > 0
        if upper is not None and leaves_out and self.source.affords(start_u, self.source.end):
            # Where not every offset was copied, the same distance between the logs does not rule out a replay above.
            self._place_group(None, commits, wants)
            return
        bounds = Bounds(lower, upper, start_d, top_d)
        for g in commits:
            place = _tried(lambda g=g: self._place(g, aligned, bounds), wants)  # type: ignore[misc]
            if place is not None:
                self.places[g] = place

    def _lowest_copy(self, source: Section, top_d: int) -> int:
        """Return an offset below which no copy of these source records can stand: none has an older timestamp."""
        if not self._keeps_time:
            return self.target.start
        times = source.times
        return min(self.target.first_at(min(times)), top_d) if times else top_d

    def _probe(self, aligned: Alignment, lowest: int, start_d: int) -> int:
        """Return from where on the target has to be read so that no copy of an owed record is overlooked."""
        place = self._first_owed(lowest, aligned)
        times = aligned.times_without_copy(place)
        if not times:
            return start_d
        return self.target.first_at(min(times)) if self._keeps_time else self.target.start

    def _place(self, g: int, aligned: Alignment, bounds: Bounds) -> Matched:
        first = self._first_owed(g, aligned)
        place = aligned.lowest_copy(first)
        why = Why.PROVEN
        if aligned.is_ambiguous(first):
            why = Why.LOOK_ALIKES
        owed_found = 0 if self._is_changed else min(aligned.sure(first), aligned.matched(first))
        owed_found -= min(owed_found, self._copied_already(first, aligned))
        missing = aligned.absent(first) if self.question.failback else aligned.without_copy(first)
        if g < self.source.start:
            try:
                place = self._below_log_start(g, aligned, bounds)
            except _TooLong:
                return Matched(self.target.start, Why.NOT_ALL_READ, self.target.end - self.target.start)
            why = Why.BELOW_LOG_START
        elif missing or self._is_changed or (self.question.source_open and place == aligned.target.top):
            may_end_midway = self._tail is None or not (self._tail.is_plain or self._tail.uncopied == 0)
            lowest = floor(first, place, aligned, bounds, self._keeps_time, self.question.source_open, may_end_midway)
            if lowest < place:
                place, why = lowest, Why.UNKNOWN_RECORD
        if why is Why.PROVEN and self._is_changed:
            why = Why.CHANGED_IN_FLIGHT
        if why is Why.PROVEN and (
            self.source.start > self.question.source_log.start or self.target.start > self.question.target_log.start
        ):
            why = Why.RETENTION
        if why is Why.PROVEN and self._is_emptied():
            why = Why.RETENTION
        if why is Why.PROVEN and bounds.lower is not None and place < self.target.index(bounds.lower[1]):
            # An older record that looks alike may be what stands there: the source was not read so far down.
            why = Why.LOOK_ALIKES
        rereads = max(0, aligned.target.top - place - owed_found)
        if why is Why.PROVEN and bounds.upper is None and self._keeps_time and first < aligned.source.top:
            # Between copies in order, what is of unknown origin and not older was never consumed: aborted, compacted
            # since, or written there by others.
            last = aligned.last_known(place)
            rereads = max(0, rereads - aligned.newcomers(place, last, self.source.times[first]))
        if missing and self.question.compacted and not self.question.failback:
            missing -= aligned.superseded(first)
        uncopied = self._uncopied_before(g)
        if uncopied:
            why = Why.NOT_COPIED_YET if why is Why.PROVEN else why
            rereads += uncopied
        offset = self.target.offsets[place] if place < aligned.target.top else bounds.top_d
        return Matched(
            target_offset=offset,
            why=why,
            rereads_at_most=rereads,
            missing_on_target=missing
            if self.question.failback
            else max(0, missing - self._uncopied_from(first, aligned)),
            lower=bounds.lower,
            upper=bounds.upper,
        )

    def _first_owed(self, g: int, aligned: Alignment) -> int:
        """Return the place of the first source record at or after a commit, as far as retention left it."""
        return min(max(self.source.index(max(g, self.source.start)), aligned.source.low), aligned.source.top)

    def _below_log_start(self, g: int, aligned: Alignment, bounds: Bounds) -> int:
        """Return the place of a commit whose next records retention removed from the source.

        Below the copies of what is left, only counting tells which record is which; else the target's log start.
        """
        place = aligned.lowest_copy(aligned.source.low)
        link = self.anchors.unproven_below(g)
        # Where retention deleted while it was read, what is known of the source has a hole; so it has where a
        # transaction is open. Gaps, what others wrote, and copies in another shape may add up to the right count.
        can_count = (
            self.source.start == self.question.source_log.start
            and not self.question.source_open
            and not self._is_changed
            and not aligned.source.has_gaps
            and aligned.without_copy(aligned.source.low) <= self._uncopied_from(aligned.source.low, aligned)
            and not aligned.unknown(place, aligned.target.top)
        )
        if can_count and link is not None and self.target.affords(link[1], bounds.top_d):
            counted = counted_place(g, link, self.source, self.target, bounds.top_d)
            if counted is not None:
                return min(place, counted)
        if not self.target.affords(self.target.start, bounds.top_d):
            raise _TooLong()
        self.target.require(self.target.start, bounds.top_d)
        return min(place, self.target.index(self.target.start))

    def _place_beyond_limit(self, g: int, wants: list[Missing]) -> None:
        """Law 2 with proven ends, for a commit whose window is too long to read."""
        place = _tried(lambda: guarded(g, self.anchors, self.source, self.target, self._keeps_time), wants)
        if place is not None:
            self.places[g] = place

    def _is_emptied(self) -> bool:
        """True where retention emptied the source, and nothing tells that MM2 had copied the last record."""
        log = self.question.source_log
        if log.start < log.end or log.end == 0:
            return False
        copied_to = self.question.copied_to
        stands = bool(self.question.links) and self.question.links[-1][0] == log.end - 1
        return not stands and (copied_to is None or copied_to < log.end - 1)

    def _uncopied_before(self, g: int) -> int:
        """Count the source records below a commit that MM2 has not copied yet: they arrive behind the row."""
        start = self._tail.source_uncopied_from if self._tail else None
        if start is None or start >= g or self.question.failback:
            return 0
        return self.source.index(g) - self.source.index(start)

    def _first_uncopied(self, first: int, aligned: Alignment) -> int:
        """Return the place of the first source record from `first` on that is not copied yet; the top if none."""
        start = self._tail.source_uncopied_from if self._tail else None
        place = aligned.source.top if start is None else min(self.source.index(start), aligned.source.top)
        return max(first, place)

    def _uncopied_from(self, first: int, aligned: Alignment) -> int:
        """Count the source records from a place on that are not copied yet, nor by an older run of MM2."""
        return aligned.without_copy(self._first_uncopied(first, aligned))

    def _copied_already(self, first: int, aligned: Alignment) -> int:
        """Count the records to be copied still that seem to have a copy: an equal record's, or one more comes."""
        return aligned.matched(self._first_uncopied(first, aligned)) if aligned.has_look_alikes else 0


class _TooLong(Exception):  # noqa: N818
    """A stretch is longer than the limit allows to read."""


def _tried(step: Callable[[], T], wants: list[Missing]) -> T | None:
    """Run a step; what it misses is added to `wants`."""
    try:
        return step()
    except Missing as missing:
        wants.append(missing)
        return None
