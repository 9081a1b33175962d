"""Holds an answer against the truth: which laws a row breaks, and how good it is."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from migrate.equality import Equality, fingerprint
from migrate.matching import Matched, PartitionAnswer, Unmatched, Why
from tests.integration import oracle
from tests.world.model import World
from tests.world.runner import Run
from tests.world.troubles import LOSSY

# So few syncs may agree by chance in what the way does not keep.
FEW = 2


@dataclass(frozen=True)
class Violation:
    """A law that an answer breaks; `source_committed` is None where it concerns the partition."""

    kind: str
    source_committed: int | None
    detail: str


@dataclass(frozen=True)
class Verdict:
    """One row judged: what was answered, what is true. `at_best` also counts places that are best among equals."""

    source_committed: int
    place: Matched | Unmatched
    best: int
    rereads: int
    at_best: bool


@dataclass(frozen=True)
class Judgement:
    """A whole answer judged."""

    world: World
    rows: tuple[Verdict, ...]
    violations: tuple[Violation, ...]


def judge(world: World, run: Run) -> Judgement:
    """Hold every row of an answer against the oracle."""
    rows: list[Verdict] = []
    broken: list[Violation] = list(_tail(world, run.answer))
    alike = world.alike_under(_weaker(world.survives, run.question.equality))
    for g in world.commits:
        place = run.answer.places.get(g)
        if place is None:
            broken.append(Violation("no-answer", g, "not in the answer"))
            continue
        best = oracle.best(world.truth, g)
        if isinstance(place, Unmatched):
            rows.append(Verdict(g, place, best, 0, False))
            broken += _estimated(world, g, place)
            continue
        row = Row(world, run, g, place, alike)
        broken += row.violations()
        rows.append(Verdict(g, place, best, row.rereads, row.at_best))
    return Judgement(world, tuple(rows), tuple(broken))


def _estimated(world: World, g: int, place: Unmatched) -> Iterator[Violation]:
    """Law 2: the smaller of the proven sync's lower end and the timestamp's. It is loss-free under a premise only, so
    a loss is excused; its bound is not."""
    if place.guard_offset is None:
        return
    lower = world.target_log.start
    if place.lower is not None:
        lower = max(lower, place.lower[1] + (place.lower[0] != g))
    target_offset = min(lower, place.guard_offset)
    lost = oracle.lost(world.truth, g, target_offset)
    if lost:
        yield Violation("estimated-lost", g, f"Law 2 at {target_offset} loses {_named(lost)}")
    rereads = oracle.rereads(world.truth, g, target_offset)
    if place.rereads_at_most is not None and place.rereads_at_most < rereads:
        yield Violation(
            "estimated-bound-exceeded", g, f"Law 2 at {target_offset} admits {place.rereads_at_most}, reads {rereads}"
        )


def _weaker(survives: Equality, used: Equality) -> Equality:
    """What both equalities look at: what one of them does not see tells no records apart."""
    if used is Equality.TIME_AND_KEY or used is Equality.ALL:
        return survives
    if survives is Equality.ALL:
        return used
    return survives if survives is used else Equality.KEY_AND_VALUE


def well_calibrated(world: World, run: Run) -> bool:
    """True if the equality is the one that the way really keeps: few or stale anchors may mislead."""
    return run.question.equality is world.keeps


def _tail(world: World, answer: PartitionAnswer) -> Iterator[Violation]:
    """Law: `uncopied` is 0 only if nothing is still to come. A target with an open transaction is not judged: another
    check says that it is not drained."""
    if answer.tail.uncopied != 0 or world.target_open:
        return
    copied = [e for e in world.target_seen if e.identity in {w.identity for w in world.written}]
    on_target = {e.identity for e in copied}
    alike = Counter(world.alike.get(e.identity, e.identity) for e in world.source_seen)
    on_target_alike = Counter(world.alike.get(e.identity, e.identity) for e in world.target_seen)
    to_come = [e for e in world.source_seen if e.offset >= world.reached]
    absent = [
        e.identity
        for e in to_come
        if e.identity not in on_target
        and on_target_alike[world.alike.get(e.identity, e.identity)] < alike[world.alike.get(e.identity, e.identity)]
    ]
    if absent:
        yield Violation("not-drained", None, f"MM2 is still to copy {absent}")
    elif to_come and copied:
        last = copied[-1]
        all_alike = Counter(world.alike.get(w.identity, w.identity) for w in world.written)
        told_apart = all_alike[world.alike.get(last.identity, last.identity)] <= 1
        # The last record may have been copied already when MM2 died, and its copies overtaken by older records.
        if told_apart and any(e.offset > int(last.identity) for e in to_come):
            yield Violation("not-drained", None, f"MM2 stopped in the middle of a replay, behind {last.identity}")


class Row:
    """One matched row and its truth."""

    def __init__(self, world: World, run: Run, g: int, place: Matched, alike: Mapping[str, int]) -> None:
        self.world, self.run, self.g, self.place, self.alike = world, run, g, place, alike
        self.truth = self._truth_since_deletion()
        self.d = place.target_offset
        self.best = oracle.best(self.truth, g)
        self.rereads = oracle.rereads(self.truth, g, self.d)
        # Where retention deletes while it is read, both logs have their best.
        self.really_best = self.d in (self.best, oracle.best(world.truth, g))
        self.at_best = self.really_best or self.d == self._best_among_equals()

    def violations(self) -> Iterator[Violation]:
        if not self.world.target_log.start <= self.d <= self.world.target_log.end:
            yield self._broken("outside-log", f"{self.d} is outside {self.world.target_log}")
        lost = oracle.lost(self.truth, self.g, self.d)
        if lost:
            pending = {e.identity for e in self.world.source if e.pending}
            kind = "lost" if self._lost_among_equals(pending) else "lost-pending" if lost & pending else "lost-alike"
            yield self._broken(self._excuse(lost) if kind == "lost" else kind, f"loses {_named(lost)}")
        if self.place.exact and not self.really_best:
            is_alike = self.at_best or self.best < self.d <= self._best_among_equals() or self._is_stood_in_for()
            kind = "exact-not-best-alike" if is_alike else "exact-not-best"
            if self._was_deleted():
                kind = "exact-before-deletion"
            elif self.d > self.best and {self._alike(i) for i in lost} <= self._pending():
                kind = "exact-not-best-pending"
            elif lost and self._excuse(lost) == "lost-uncalibrated":
                kind = "exact-uncalibrated"
            yield self._broken(kind, f"says exact at {self.d}, best is {self.best}")
        yield from self._bound()
        yield from self._missing()

    def _excuse(self, lost: Set[str]) -> str:
        """Return the kind of a loss: "lost", or one of those that docs/translation.md names."""
        if self._is_miscounted(lost):
            return "lost-counted"
        equality = self.run.question.equality
        is_guess = len(self.world.syncs) <= FEW or equality is Equality.TIME_AND_KEY
        if is_guess and not well_calibrated(self.world, self.run) and not lost & self._recognised():
            return "lost-uncalibrated"
        if equality is Equality.TIME_AND_KEY and lost <= self._with_twins():
            return "lost-changed"
        if self.run.question.compacted and self.place.upper is not None and lost <= self._superseded_above():
            return "lost-superseded"
        return "lost"

    def _recognised(self) -> Set[str]:
        """The records with a copy that equals them by what the row was compared by."""
        equality = self.run.question.equality
        prints = {e.identity: fingerprint(e.content, equality) for e in self.world.source_seen}
        seen = self.world.target_seen
        return {e.identity for e in seen if prints.get(e.identity) == fingerprint(e.content, equality)}

    def _with_twins(self) -> Set[str]:
        """The records with whose time and key another's copy stands at or after the row."""
        standing: dict[object, set[str]] = {}
        for copy in self.world.target_seen:
            if copy.offset >= self.d:
                standing.setdefault((copy.content.timestamp, copy.content.key), set()).add(copy.identity)
        return {
            record.identity
            for record in self.world.source
            if standing.get((record.content.timestamp, record.content.key), set()) - {record.identity}
        }

    def _superseded_above(self) -> Set[str]:
        """The records above the row's window of whose key the group reads a newer one."""
        assert self.place.upper is not None
        seen = {e.identity for e in self.world.target_seen if e.offset >= self.d}
        newest = {e.content.key: e.offset for e in self.world.source_seen if e.identity in seen}
        above = (e for e in self.world.source_seen if e.offset > self.place.upper[0])
        return {e.identity for e in above if newest.get(e.content.key, -1) > e.offset}

    def _is_miscounted(self, lost: Set[str]) -> bool:
        """True if what was lost is gone from the source, and others' records stand amid the copies of such."""
        names = {w.identity: w.offset for w in self.world.written}
        gone = {identity for identity, offset in names.items() if offset < self.world.source_log.start}
        copies = [e.offset for e in self.world.target_seen if e.identity in gone]
        foreign = [e.offset for e in self.world.target_seen if e.identity not in names]
        return (
            self.place.why is Why.BELOW_LOG_START
            and lost <= gone
            and bool(copies)
            and any(copies[0] < offset <= copies[-1] + len(foreign) for offset in foreign)
        )

    def _pending(self) -> Set[object]:
        return {self._alike(e.identity) for e in self.world.source if e.pending}

    def _is_stood_in_for(self) -> bool:
        """True if others of the same content may stand for owed records' copies, and nothing tells.

        Those of an earlier log that held the very same, or of records whose own copies were altered.
        """
        if "reloaded" in self.world.troubles and self.d < self.best:
            return True
        owed = oracle.owed(self.truth, self.g)
        return any(e.altered and e.identity in owed for e in self.world.target_seen if e.offset >= self.d)

    def _bound(self) -> Iterator[Violation]:
        if self.place.rereads_at_most < self.rereads:
            alike = self.place.rereads_at_most >= self._rereads_among_equals()
            kind = "bound-exceeded-alike" if alike else "bound-exceeded"
            if kind == "bound-exceeded" and self._rereads_of_gone() >= self.rereads - self.place.rereads_at_most:
                kind = "bound-exceeded-gone"
            yield self._broken(
                "bound-exceeded-hidden" if kind == "bound-exceeded" and self._is_replayed_above() else kind,
                f"says at most {self.place.rereads_at_most}, reads {self.rereads} again",
            )

    def _rereads_of_gone(self) -> int:
        """Count the copies at or after the row of consumed records that the source has no more."""
        there = {e.identity for e in self.world.source}
        gone = {w.identity for w in self.world.written if w.offset < self.g} - there
        return sum(found.identity in gone for found in self.truth.target.records if found.offset >= self.d)

    def _is_replayed_above(self) -> bool:
        """True if all that exceeds the bound stands above the window, and between two syncs up there as many
        offsets were not copied as others were copied twice: then the syncs keep their distance, and nothing shows.
        """
        upper = self.place.upper
        if upper is None:
            return False
        in_window = [found for found in self.truth.target.records if found.offset <= upper[1]]
        target = oracle.Log(self.truth.target.start, self.truth.target.end, tuple(in_window))
        within = oracle.rereads(replace(self.truth, target=target), self.g, self.d)
        copied = {e.identity for e in self.world.target_seen}
        there = {e.offset for e in self.world.source_seen if e.identity in copied}
        gaps = sum(offset not in there for offset in range(upper[0], self.world.source_log.end))
        return within <= self.place.rereads_at_most and 0 < self.rereads - within <= gaps

    def _missing(self) -> Iterator[Violation]:
        missing = oracle.missing(self.truth, self.g)
        seen = [e for e in self.world.source_seen if e.offset >= max(self.g, self.run.source_start)]
        coming = {e.identity for e in self.world.target if e.pending or e.offset >= self.world.target_log.end}
        gone = missing - coming
        for_good = [e.identity for e in seen if e.identity in gone and e.offset < self.world.reached]
        # Where the copy of an equal record may stand in for a missing one, nothing can tell.
        equality = self.run.question.equality
        prints = {e.identity: fingerprint(e.content, equality) for e in seen}
        copies = Counter(fingerprint(e.content, equality) for e in self.world.target_seen)
        told = _not_stood_in_for(for_good, prints, copies, self._superseded())
        # A tail that the target lost looks like one that is still to come: then the tail tells of it.
        counted = self.place.missing_on_target + (self.run.answer.tail.uncopied or 0)
        if counted < len(told) and not self._was_deleted():
            upper = self.place.upper
            if upper is not None:
                within = {identity: found for identity, found in prints.items() if int(identity) < upper[0]}
                told = _not_stood_in_for([i for i in for_good if i in within], within, copies, self._superseded())
            inside = told
            if self.place.why is Why.NOT_ALL_READ:
                inside = []
            kind = "missing-hidden" if counted < len(inside) else "missing-beyond-window"
            yield self._broken(kind, f"says {self.place.missing_on_target}, missing are {_named(for_good)}")
        invented = self.place.missing_on_target > len(missing)
        if invented and self.place.exact and not self.world.troubles & LOSSY and well_calibrated(self.world, self.run):
            yield self._broken(
                "missing-invented", f"says {self.place.missing_on_target}, missing are {_named(missing)}"
            )

    def _superseded(self) -> Counter[int]:
        """Count, by fingerprint, owed records that a cleaner may have taken from the target.

        Tombstones, and what a later record of the same key replaces; of equal records the last are taken to be there.
        """
        if not self.run.question.compacted:
            return Counter()
        equality = self.run.question.equality
        copies = Counter(fingerprint(e.content, equality) for e in self.world.target_seen)
        newer: set[bytes | None] = set()
        excused: Counter[int] = Counter()
        for e in reversed(self.world.source_seen):
            print_ = fingerprint(e.content, equality)
            copies[print_] -= 1
            if copies[print_] < 0:
                if e.content.value is not None and e.content.key not in newer:
                    continue
                excused[print_] += e.offset >= self.g
            newer.add(e.content.key)
        return excused

    def _broken(self, kind: str, detail: str) -> Violation:
        return Violation(kind, self.g, detail)

    def _alike(self, identity: str) -> object:
        return self.alike.get(identity, identity)

    def _lost_among_equals(self, pending: Set[str]) -> bool:
        """True if the group reads fewer records of some content than it is owed and could have, pending ones aside."""
        there, ahead = self._copies(0), self._copies(self.d)
        owed = Counter(self._alike(identity) for identity in oracle.owed(self.truth, self.g) - pending)
        return any(ahead[alike] < min(many, there[alike]) for alike, many in owed.items())

    def _best_among_equals(self) -> int:
        """The greatest offset from which every content comes as often as it is owed and could come."""
        there = self._copies(0)
        wanted = {alike: min(many, there[alike]) for alike, many in self._owed().items()}
        best = self.world.target_log.end
        left = Counter({alike: many for alike, many in wanted.items() if many})
        for found in reversed(self.truth.target.records):
            if not left:
                break
            alike = self._alike(found.identity)
            if left[alike] > 0:
                left[alike] -= 1
                best = found.offset
                if not left[alike]:
                    del left[alike]
            elif alike in left:
                del left[alike]
        return best

    def _rereads_among_equals(self) -> int:
        """Further copies, if equal records count as the same."""
        owed, ahead = self._owed(), self._copies(self.d)
        known = {self._alike(w.identity) for w in self.truth.written}
        return sum(max(0, many - owed[alike]) for alike, many in ahead.items() if alike in known)

    def _owed(self) -> Counter[object]:
        return Counter(self._alike(identity) for identity in oracle.owed(self.truth, self.g))

    def _copies(self, start: int) -> Counter[object]:
        return Counter(self._alike(found.identity) for found in self.truth.target.records if found.offset >= start)

    def _was_deleted(self) -> bool:
        return (self.run.source_start, self.run.target_start) != (
            self.world.source_log.start,
            self.world.target_log.start,
        )

    def _truth_since_deletion(self) -> oracle.Truth:
        """What retention deleted on the target while it was read is lost to every plan."""
        target = self.world.truth.target
        if self.run.target_start == self.world.target_log.start:
            return self.world.truth
        kept = tuple(found for found in target.records if found.offset >= self.run.target_start)
        return replace(self.world.truth, target=oracle.Log(self.run.target_start, target.end, kept))


def _not_stood_in_for(
    missing: Iterable[str], owed: Mapping[str, int], copies: Counter[int], superseded: Counter[int]
) -> list[str]:
    """The missing records, less those whose place an equal one's copy may take, and less superseded ones.

    `owed` are fingerprints by identity.
    """
    left, told = Counter(owed.values()), []
    for identity in missing:
        if left[owed[identity]] > copies[owed[identity]]:
            left[owed[identity]] -= 1
            superseded[owed[identity]] -= 1
            if superseded[owed[identity]] < 0:
                told.append(identity)
    return told


def _named(identities: object) -> str:
    names = sorted(identities, key=lambda i: (len(i), i))  # type: ignore[call-overload]
    return " ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
