"""One matched row held against the truth, with every exception that docs/translation.md names told by its own kind."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from migrate.match.equality import Equality
from migrate.match.protocol import Matched, OffsetPair, Why
from tests.integration import oracle
from tests.integration.oracle import Truth
from tests.prints import fingerprint
from tests.world.model import Entry, World
from tests.world.runner import Run

# So few syncs may agree by chance in what the way does not keep.
FEW = 2


@dataclass(frozen=True)
class Violation:
    """A law that an answer breaks; `source_committed` is None where it concerns the partition."""

    kind: str
    source_committed: int | None
    detail: str


def well_calibrated(world: World, run: Run) -> bool:
    """True if the equality is the one that the way really keeps: few or stale anchors may mislead."""
    return run.question.equality is world.keeps


def named(identities: Iterable[str]) -> str:
    """Return the first identities, and how many more there are."""
    names = sorted(identities, key=lambda i: (len(i), i))
    return " ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


class AmongEquals:
    """What a consumer that cannot tell equal records apart would say of a row.

    `numbers` has one for each identity: identities with the same number are one content.
    """

    def __init__(self, truth: Truth, source_committed: int, numbers: Mapping[str, int]) -> None:
        self.truth, self.numbers = truth, numbers
        self.owed_identities = oracle.owed(truth, source_committed)
        self.owed = Counter(self.content(identity) for identity in self.owed_identities)
        self.known = {self.content(written.identity) for written in truth.written}

    def content(self, identity: str) -> object:
        """Return what stands for all records that equal this one."""
        return self.numbers.get(identity, identity)

    def really_lost(self, lost: Set[str], target_offset: int, unowed: Set[str] = frozenset()) -> Set[str]:
        """Return those of the lost records of whose content the group reads less often than it is owed and could.

        A record without a twin is always among them. Nobody is owed the records of `unowed`.
        """
        there, ahead = self._copies(0), self._copies(target_offset)
        owed = self.owed - Counter(self.content(identity) for identity in self.owed_identities & unowed)
        short = {content for content, many in owed.items() if ahead[content] < min(many, there[content])}
        return {identity for identity in lost if self.content(identity) in short}

    def best(self) -> int:
        """Return the greatest offset from which every content comes as often as it is owed and could come."""
        there = self._copies(0)
        left = Counter({content: min(many, there[content]) for content, many in self.owed.items() if there[content]})
        best = self.truth.target.end
        for found in reversed(self.truth.target.records):
            if not left:
                break
            content = self.content(found.identity)
            if content in left:
                left[content] -= 1
                best = found.offset
                if not left[content]:
                    del left[content]
        return best

    def rereads(self, target_offset: int) -> int:
        """Count the copies at or after an offset beyond those that are owed; records of unknown content aside."""
        ahead = self._copies(target_offset)
        return sum(max(0, many - self.owed[content]) for content, many in ahead.items() if content in self.known)

    def _copies(self, start: int) -> Counter[object]:
        return Counter(self.content(found.identity) for found in self.truth.target.records if found.offset >= start)


class Row:
    """One matched row and its truth."""

    def __init__(self, world: World, run: Run, g: int, place: Matched, numbers: Mapping[str, int]) -> None:
        self.world, self.run, self.g, self.place = world, run, g, place
        self.equality = run.question.equality
        self.truth = since_deletion(world, run)
        self.d = place.target_offset
        self.best = oracle.best(self.truth, g)
        self.rereads = oracle.rereads(self.truth, g, self.d)
        self.equals = AmongEquals(self.truth, g, numbers)
        # Where retention deletes while it is read, both logs have their best.
        self.really_best = self.d in (self.best, oracle.best(world.truth, g))
        self.at_best = self.really_best or self.d == self.equals.best()

    def violations(self) -> Iterator[Violation]:
        """Tell every law that the row breaks."""
        if not self.world.target_log.start <= self.d <= self.world.target_log.end:
            yield self._broken("outside-log", f"{self.d} is outside {self.world.target_log}")
        lost = oracle.lost(self.truth, self.g, self.d)
        why_lost = self._kind_of_loss(lost) if lost else ""
        if lost:
            yield self._broken(why_lost, f"loses {named(lost)}")
        if self.place.exact and not self.really_best:
            yield self._broken(self._kind_of_exact(why_lost), f"says exact at {self.d}, best is {self.best}")
        if self.place.rereads_at_most < self.rereads:
            says = f"says at most {self.place.rereads_at_most}, reads {self.rereads} again"
            yield self._broken(self._kind_of_bound(), says)
        yield from self._missing()

    # Losses

    def _kind_of_loss(self, lost: Set[str]) -> str:
        really = self.equals.really_lost(lost, self.d)
        if not really:
            return "lost-alike"
        if self.run.question.has_open_transaction and self._is_lost_to_pending(lost, really):
            return "lost-pending"
        if self._is_miscounted(really):
            return "lost-counted"
        if self._is_replay_believed(really):
            return "lost-replay-believed"
        if self._holds_an_equal_record(really):
            return "lost-sync-alike"
        is_guess = len(self.world.syncs) <= FEW or self.equality is Equality.TIME_AND_KEY
        if is_guess and not well_calibrated(self.world, self.run) and not really & self._recognised():
            return "lost-uncalibrated"
        if self.equality is Equality.TIME_AND_KEY and really <= self._taken_for_others():
            return "lost-changed"
        if self.run.question.compacted and self._is_true(self.place.upper) and really <= self._superseded_above():
            return "lost-superseded"
        return "lost"

    def _is_lost_to_pending(self, lost: Set[str], really: Set[str]) -> bool:
        """True if every lost record is pending, or the copy of a pending one that it equals was taken for its own."""
        pending = self._pending()
        return really <= pending | self._equal_to_pending() or not self.equals.really_lost(lost, self.d, unowed=pending)

    def _pending(self) -> Set[str]:
        return {e.identity for e in self.world.source if e.pending}

    def _equal_to_pending(self) -> Set[str]:
        """The records whose own copies are changed, and which equal a pending one with a copy at or after the row."""
        names = {e.identity: self._print(e) for e in self.world.source_seen}
        there = {e.identity for e in self.world.target_seen if e.offset >= self.d} & self._pending()
        prints = {self._print(e) for e in self.world.target_seen if e.identity in there}
        changed = {e.identity for e in self.world.target_seen if e.altered}
        return {identity for identity in changed if names.get(identity) in prints}

    def _recognised(self) -> Set[str]:
        """The records with a copy that equals them by what the row was compared by."""
        prints = {e.identity: self._print(e) for e in self.world.source_seen}
        return {e.identity for e in self.world.target_seen if prints.get(e.identity) == self._print(e)}

    def _taken_for_others(self) -> Set[str]:
        """The records with whose time and key stands, at or after the row, a copy of one that the source has lost.

        Or, where the partition is not known to be drained, of a consumed one that was copied again.
        """
        is_drained = self.run.answer.tail.uncopied == 0
        there = {e.identity for e in self.world.source if is_drained or e.offset >= self.g}
        of_others = {
            (copy.content.timestamp, copy.content.key)
            for copy in self.world.target_seen
            if copy.offset >= self.d and copy.identity not in there
        }
        return {e.identity for e in self.world.source if (e.content.timestamp, e.content.key) in of_others}

    def _superseded_above(self) -> Set[str]:
        """The records above the row's window of whose key the group reads a newer one."""
        assert self.place.upper is not None
        seen = {e.identity for e in self.world.target_seen if e.offset >= self.d}
        newest = {e.content.key: e.offset for e in self.world.source_seen if e.identity in seen}
        above = (e for e in self.world.source_seen if e.offset > self.place.upper[0])
        return {e.identity for e in above if newest.get(e.content.key, -1) > e.offset}

    def _is_miscounted(self, lost: Set[str]) -> bool:
        """True if what was lost is gone from the source, and amid the copies of what is gone stand records of others,
        which make up for offsets that MM2 did not copy, or whose records equal one another."""
        if self.place.why is not Why.BELOW_LOG_START:
            return False
        names = {w.identity: w.offset for w in self.world.written}
        gone = {identity for identity, offset in names.items() if offset < self.world.source_log.start}
        copied = [e for e in self.world.target_seen if e.identity in gone]
        if not copied or not lost <= gone:
            return False
        foreign = [e for e in self.world.target_seen if e.identity not in names]
        amid = [e for e in foreign if copied[0].offset < e.offset <= copied[-1].offset + len(foreign)]
        first = min(int(e.identity) for e in copied)
        uncopied = (self.world.source_log.start - first) - len({e.identity for e in copied})
        twins = len({e.identity for e in copied}) - len({self._print(e) for e in copied})
        return len(amid) > 0 and uncopied + twins > 0

    def _is_replay_believed(self, lost: Set[str]) -> bool:
        """True if the row rests on the sync of a replay that stopped midway, nothing else was read, all that is lost
        stands below that sync, and timestamps that fall hide it."""
        lower, times = self.place.lower, [e.content.timestamp for e in self.world.source_seen]
        if self.place.why is not Why.NOT_ALL_READ or lower is None or times == sorted(times):
            return False
        stopped = self.world.troubles & {"paused-writer", "stopped-mid-replay"}
        # An MM2 that begins again after the source lost its end, and has not come as far as what is lost.
        to_come = {e.identity for e in self.world.source_seen if e.offset >= self.world.reached}
        copies = [found.offset for found in self.truth.target.records if found.identity in lost]
        return (bool(stopped) or lost <= to_come) and max(copies) < lower[1]

    def _holds_an_equal_record(self, lost: Set[str]) -> bool:
        """True if the row rests on a sync whose copy is that of another record, equal to the sync's own and lost, and
        nothing else was read."""
        lower = self.place.lower
        if self.place.why is not Why.NOT_ALL_READ or lower is None or not self._is_true(lower):
            return False
        there = {e.identity for e in self.world.target_seen if e.offset == lower[1]}
        return lost <= there and str(lower[0]) not in there

    # Rows that say exact

    def _kind_of_exact(self, why_lost: str) -> str:
        if self.d == self.equals.best() or self.best < self.d <= self.equals.best() or self._is_stood_in_for():
            return "exact-not-best-alike"
        if self.best != oracle.best(self.world.truth, self.g):
            return "exact-before-deletion"
        excused = {"lost-pending": "exact-not-best-pending", "lost-uncalibrated": "exact-uncalibrated"}
        return excused.get(why_lost, "exact-not-best")

    def _is_stood_in_for(self) -> bool:
        """True if, from the row up to the best offset, another record that looks like an owed one may be its copy.

        One of an earlier log that held the very same, or of any whose own copies were altered.
        """
        if self.d > self.best:
            return False
        names = {w.identity for w in self.world.written}
        owed = oracle.owed(self.truth, self.g)
        prints = {self._print(e) for e in self.world.source if e.identity in owed}
        altered = {e.identity for e in self.world.target_seen if e.altered and e.offset >= self.d}
        between = [e for e in self.world.target_seen if self.d <= e.offset < self.best]
        return any(self._print(e) in prints and (e.identity not in names or altered & owed) for e in between)

    # Bounds

    def _kind_of_bound(self) -> str:
        admitted = self.place.rereads_at_most
        if admitted >= self.equals.rereads(self.d):
            return "bound-exceeded-alike"
        if self._rereads_of_gone() >= self.rereads - admitted:
            return "bound-exceeded-gone"
        return "bound-exceeded-hidden" if self._is_replayed_above() else "bound-exceeded"

    def _rereads_of_gone(self) -> int:
        """Count the copies at or after the row of consumed records that the source has no more, none of them older
        than the first owed one."""
        there = {e.identity for e in self.world.source}
        gone = {w.identity for w in self.world.written if w.offset < self.g} - there
        first = next((e.content.timestamp for e in self.world.source_seen if e.offset >= self.g), None)
        return sum(
            e.identity in gone and first is not None and e.content.timestamp >= first
            for e in self.world.target_seen
            if e.offset >= self.d
        )

    def _is_replayed_above(self) -> bool:
        """True if all that exceeds the bound stands above the window, whose end is true, and between two syncs up there
        as many offsets were not copied as others were copied twice: then the syncs keep their distance, and nothing
        shows."""
        upper = self.place.upper
        if upper is None or not self._is_true(upper):
            return False
        in_window = [found for found in self.truth.target.records if found.offset <= upper[1]]
        target = oracle.Log(self.truth.target.start, self.truth.target.end, tuple(in_window))
        within = oracle.rereads(replace(self.truth, target=target), self.g, self.d)
        copied = {e.identity for e in self.world.target_seen}
        there = {e.offset for e in self.world.source_seen if e.identity in copied}
        gaps = sum(offset not in there for offset in range(upper[0], self.world.source_log.end))
        return within <= self.place.rereads_at_most and 0 < self.rereads - within <= gaps

    def _is_true(self, link: OffsetPair | None) -> bool:
        """True if a proven sync names a record and its copy, or one that no consumer can tell from it."""
        if link is None:
            return False
        original = next((e for e in self.world.source_seen if e.offset == link[0]), None)
        copy = next((e for e in self.world.target_seen if e.offset == link[1]), None)
        if original is None or copy is None:
            return False
        return self.equals.content(original.identity) == self.equals.content(copy.identity)

    # What is missing

    def _missing(self) -> Iterator[Violation]:
        missing = oracle.missing(self.truth, self.g)
        coming = {e.identity for e in self.world.target if e.pending or e.offset >= self.world.target_log.end}
        owed = [e for e in self.world.source_seen if e.offset >= max(self.g, self.run.source_start)]
        for_good = [e for e in owed if e.identity in missing - coming and e.offset < self.world.reached]
        # A tail that the target lost looks like one that is still to come: then the tail tells of it.
        told = self.place.missing_on_target + (self.run.answer.tail.uncopied or 0)
        if told < len(for_good):
            kind = self._kind_of_missing(for_good, owed, told)
            yield self._broken(
                kind, f"says {self.place.missing_on_target}, missing are {named(e.identity for e in for_good)}"
            )
        if self.place.missing_on_target > len(missing):
            says = f"says {self.place.missing_on_target}, missing are {named(missing)}"
            yield self._broken(self._kind_of_invented(), says)

    def _kind_of_missing(self, missing: list[Entry], owed: list[Entry], told: int) -> str:
        without_twins = self._without_copy(missing, owed)
        if told >= len(without_twins):
            return "missing-alike"
        cleaned = self._superseded()
        left = [e for e in without_twins if not self._take(cleaned, e)]
        if told >= len(left):
            return "missing-superseded"
        if self._was_deleted():
            return "missing-before-deletion"
        if self.place.why is Why.NOT_ALL_READ:
            return "missing-not-read"
        upper = self.place.upper
        if upper is not None and self._is_true(upper):
            within = [e for e in owed if e.offset < upper[0]]
            cleaned = self._superseded()
            in_window = [e for e in missing if e.offset < upper[0]]
            if told >= len([e for e in self._without_copy(in_window, within) if not self._take(cleaned, e)]):
                return "missing-beyond-window"
        return "missing-hidden"

    def _without_copy(self, missing: list[Entry], owed: list[Entry]) -> list[Entry]:
        """The missing records, less those whose place the copy of an equal one may take."""
        copies = Counter(self._print(e) for e in self.world.target_seen)
        left = Counter(self._print(e) for e in owed)
        told = []
        for entry in missing:
            if left[self._print(entry)] > copies[self._print(entry)]:
                left[self._print(entry)] -= 1
                told.append(entry)
        return told

    def _take(self, counted: Counter[int], entry: Entry) -> bool:
        counted[self._print(entry)] -= 1
        return counted[self._print(entry)] >= 0

    def _superseded(self) -> Counter[int]:
        """Count, by fingerprint, owed records that a cleaner may have taken from the target.

        Tombstones, and what a later record of the same key replaces; of equal records the last are taken to be there.
        """
        excused: Counter[int] = Counter()
        if not self.run.question.compacted:
            return excused
        copies = Counter(self._print(e) for e in self.world.target_seen)
        newer: set[bytes | None] = set()
        for e in reversed(self.world.source_seen):
            copies[self._print(e)] -= 1
            if copies[self._print(e)] < 0:
                if e.content.value is not None and e.content.key not in newer:
                    continue
                excused[self._print(e)] += e.offset >= self.g
            newer.add(e.content.key)
        return excused

    def _kind_of_invented(self) -> str:
        plain = {e.identity for e in self.world.target_seen if not e.altered}
        changed = {e.identity for e in self.world.target_seen if e.altered} - plain
        unknown = oracle.missing(self.truth, self.g) | (changed & oracle.owed(self.truth, self.g))
        if self.place.missing_on_target <= len(unknown):
            return "missing-invented-changed"
        if not well_calibrated(self.world, self.run):
            return "missing-invented-uncalibrated"
        return "missing-invented"

    def _was_deleted(self) -> bool:
        starts = (self.world.source_log.start, self.world.target_log.start)
        return (self.run.source_start, self.run.target_start) != starts

    def _print(self, entry: Entry) -> int:
        return fingerprint(entry.content, self.equality)

    def _broken(self, kind: str, detail: str) -> Violation:
        return Violation(kind, self.g, detail)


def since_deletion(world: World, run: Run) -> Truth:
    """What retention deleted on the target while it was read is lost to every plan."""
    target = world.truth.target
    if run.target_start == world.target_log.start:
        return world.truth
    kept = tuple(found for found in target.records if found.offset >= run.target_start)
    return replace(world.truth, target=oracle.Log(run.target_start, target.end, kept))
