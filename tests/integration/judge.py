"""Holds every row of a plan against the truth, and says what is wrong so that a person can find out why.

Kinds of complaint: `lost` (an owed record that is on the target would be skipped), `missing` (the scene or MM2 is at
fault, not the plan: an owed record has no copy), `hidden` (so, and the plan does not say it), `not-best` (the row says
exact, and is not at the best offset), `bound` (more records are read twice than the row admits), `nowhere` (no offset).
Where records look in every part alike, a row may take one for the other: nobody can tell.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.integration import lookalikes, oracle
from tests.integration.cli import CommandLine, committed_offsets, planned_offsets
from tests.integration.clusters import Partition, all_syncs, by_place, commits_on
from tests.integration.lookalikes import by_looks
from tests.integration.oracle import Truth
from tests.integration.scene import Scene

Row = Mapping[str, Any]
AROUND = 4
MOST_TOLD = 8
SUPERSEDED = "missing, superseded"
UNNAMED_SECOND_COPY = "a second copy that no sync names"


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong with one row."""

    kind: str
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}\n{self.text}"


@dataclass
class Score:
    """How good the rows of one scene are. `short`: rows below the best offset, and what is to be seen there.

    `judged` counts, by law, the rows that were really held against it; `excused` those that break it by identity and
    not by looks, or only by what a cleaner may have taken, or stand at the first copy of the record that MM2 resumed
    with where no sync names the second. `pooled` counts the rows whose owed records are all on both clusters,
    `pooled_short` those of them below the best: the others have no optimum that could be proven.
    """

    scene: Scene
    rows: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    at_best: int = 0
    pooled: int = 0
    grades: Counter[str] = field(default_factory=Counter)
    short_why: Counter[str] = field(default_factory=Counter)
    short_by: int = 0
    pooled_short: list[tuple[Row, str]] = field(default_factory=list)
    resumed_with: set[tuple[str, int, int]] = field(default_factory=set)
    complaints: list[Complaint] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Complaint]:
        return [complaint for complaint in self.complaints if complaint.kind in kinds]

    def __str__(self) -> str:
        graded = ", ".join(f"{n} {grade}" for grade, n in sorted(self.grades.items()))
        held = ", ".join(f"{law} {many}" for law, many in sorted(self.judged.items()))
        text = f"{self.scene}: {self.rows} rows ({graded}; judged: {held}), {self.at_best} at the best offset"
        if self.short_why:
            short = ", ".join(f"{n} {why}" for why, n in self.short_why.most_common())
            text += f"; {self.short_by} records more are read twice by {short}"
        if self.excused:
            text += "; excused: " + ", ".join(f"{why} {many}" for why, many in sorted(self.excused.items()))
        return text + (f"; {self.rows - self.pooled} without a provable optimum" if self.pooled < self.rows else "")


def told(complaints: Sequence[Complaint]) -> str:
    """The first complaints in full, and how many there are."""
    kinds = Counter(complaint.kind for complaint in complaints)
    shown = "\n\n".join(map(str, complaints[:MOST_TOLD]))
    return f"{len(complaints)} complaints {dict(kinds)}\n\n{shown}"


@dataclass(frozen=True)
class Judge:
    """Judges rows of one scene. `whole`: every record that the source still has is on the target, too.

    Where it is not, by MM2's own fault or the scene's, the plan has to say so: `named` are the subjects of its check
    `missing-on-target`. Where a scene is not drained, `last_copied_offset` is MM2's own position by partition: the last
    source offset that it has copied for sure. What lies beyond is still to come, and that is what the plan has to say.
    """

    scene: Scene
    truth: Mapping[Partition, Truth]
    syncs: Mapping[Partition, Sequence[tuple[int, int]]]
    whole: bool
    named: frozenset[str] = frozenset()
    last_copied_offset: Mapping[Partition, int] | None = None

    def score(self, rows: Iterable[Row]) -> Score:
        score = Score(self.scene)
        for row in rows:
            place = self.truth[row["source_topic"], row["partition"]]
            score.rows += 1
            score.grades[row["grade"] or "none"] += 1
            score.complaints += self._complaints(row, place, score)
            if row["target_offset"] is not None:
                self._compare_with_best(row, place, score)
        return score

    def _compare_with_best(self, row: Row, place: Truth, score: Score) -> None:
        committed, offset = row["source_committed"], row["target_offset"]
        best = self._best(place, committed)
        pooled = committed >= place.source.start and not oracle.missing(place, committed)
        if pooled and offset not in best and self._is_unnamed_second_copy(row, place):
            score.excused[UNNAMED_SECOND_COPY] += 1
            score.resumed_with.add((row["source_topic"], row["partition"], offset))
            pooled = False
        score.pooled += pooled
        score.at_best += offset in best
        if offset not in best:
            score.short_why[f"{row['grade']} {row['why']}".strip()] += 1
            score.short_by += self._rereads(place, committed, offset) - self._rereads(place, committed, max(best))
            if pooled:
                score.pooled_short.append((row, self.portrait(row, place)))

    def _is_unnamed_second_copy(self, row: Row, place: Truth) -> bool:
        """True where only a sync could tell the second copy from that of an aborted record, and MM2 wrote none."""
        resumed = oracle.resumed_with(place, row["source_committed"], row["target_offset"])
        syncs = self.syncs.get((row["source_topic"], row["partition"]), ())
        alike = (row["grade"], row["why"]) == ("bounded", "look-alikes")
        return resumed is not None and resumed not in syncs and alike

    def _seen(self, place: Truth) -> Truth:
        return by_looks(place, self.scene.looks) if self.scene.looks else place

    def _best(self, place: Truth, committed: int) -> set[int]:
        best = oracle.best(place, committed)
        return {best, lookalikes.best(self._seen(place), committed)} if self.scene.looks else {best}

    def _rereads(self, place: Truth, committed: int, offset: int) -> int:
        least = oracle.rereads(place, committed, offset)
        return min(least, lookalikes.rereads(self._seen(place), committed, offset)) if self.scene.looks else least

    def _complaints(self, row: Row, place: Truth, score: Score) -> Iterator[Complaint]:
        committed, offset = row["source_committed"], row["target_offset"]
        if offset is None:
            yield self._complaint("nowhere", f"{row['reason']}", row, place)
            return
        lost = oracle.lost(place, committed, offset)
        score.judged["loss"] += 1
        if lost and (not self.scene.looks or lookalikes.lost(self._seen(place), committed, offset)):
            yield self._complaint("lost", f"{len(lost)} records, {self._names(lost)}", row, place)
        elif lost:
            score.excused["lost by identity, not by looks"] += 1
        yield from self._missing(row, place, score)
        best, rereads = self._best(place, committed), self._rereads(place, committed, offset)
        score.judged["best"] += row["grade"] == "exact"
        score.judged["bound"] += row["grade"] in ("exact", "bounded")
        if row["grade"] == "exact" and offset not in best:
            yield self._complaint("not-best", f"exact at {offset}, the best is {best}", row, place)
        if row["grade"] in ("exact", "bounded"):
            bound = row["rereads_at_most"]
            if bound is None or bound < rereads:
                yield self._complaint("bound", f"{row['grade']}, at most {bound}, really {rereads}", row, place)

    def _missing(self, row: Row, place: Truth, score: Score) -> Iterator[Complaint]:
        missing = oracle.missing(place, row["source_committed"])
        score.judged["missing"] += 1
        if missing and self.last_copied_offset is not None:
            last_copied_offset = self.last_copied_offset.get((row["source_topic"], row["partition"]))
            missing &= {
                r.identity for r in place.written if last_copied_offset is not None and r.offset <= last_copied_offset
            }
        if missing and row["source_topic"] in self.scene.compacted:
            superseded = self._superseded(place)
            score.excused[SUPERSEDED] += missing <= superseded
            missing -= superseded
        still_there = {record.identity for record in place.source.records}
        if missing and self.whole:
            yield self._complaint("missing", self._names(missing), row, place)
        elif missing & still_there and row["grade"] in ("exact", "bounded"):
            subject = f"{row['group']}/{row['source_topic']}/{row['partition']}"
            if not row["missing_on_target"] or subject not in self.named:
                seen = f"says {row['missing_on_target']}, missing are {self._names(missing & still_there)}"
                yield self._complaint("hidden", seen, row, place)

    def _superseded(self, place: Truth) -> set[str]:
        """What the target's cleaner may take: records that a later one of their key replaces, and tombstones.

        A tombstone replaces, too, when it is gone itself; one behind all that MM2 has copied has not been there yet.
        """
        keys, tombstones = self.scene.keys, self.scene.tombstones
        there = {record.identity for record in place.target.records}
        copied_to = max((r.offset for r in place.written if r.identity in there), default=-1)
        replacing = there | {r.identity for r in place.written if r.identity in tombstones and r.offset <= copied_to}
        newest = {keys[r.identity]: r.offset for r in place.written if r.committed and r.identity in replacing}
        replaced = {r.identity for r in place.written if r.offset < newest.get(keys[r.identity], r.offset)}
        return replaced | tombstones

    # What a person needs to see

    def _complaint(self, kind: str, what: str, row: Row, place: Truth) -> Complaint:
        return Complaint(kind, what, self.portrait(row, place))

    def _names(self, identities: Iterable[str]) -> str:
        names = sorted(identities)
        return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")

    def portrait(self, row: Row, place: Truth) -> str:
        """The row, its sentence, and the records of both logs around it; copies as source offset@target offset.

        On the source `~` marks what readers are not shown any more, and `!` what was aborted.
        """
        committed, offset = row["source_committed"], row["target_offset"]
        best = max(self._best(place, committed))
        syncs = self.syncs.get((row["source_topic"], row["partition"]), ())
        near = sorted(syncs, key=lambda sync: abs(sync[0] - committed))[:6]
        lower, upper = (
            (row[f"{end}_source_offset"], row[f"{end}_target_offset"])
            if row[f"{end}_source_offset"] is not None
            else "-"
            for end in ("lower", "upper")
        )
        lines = [
            f"{self.scene}: {row['group']} on {row['source_topic']}-{row['partition']} "
            f"at {committed}, planned {offset}, best {best}",
            f"  {row['decision']} {row['grade']} {row['why']}, at most {row['rereads_at_most']} re-reads, "
            f"{row['missing_on_target']} missing, equality {row['equality'] or '-'}: {row['sentence']}",
            f"  window {lower} to {upper}, nearest syncs {near}, first owed {self._first_owed(place, committed)}",
            f"  source [{place.source.start},{place.source.end}): {self._source(place, committed)}",
        ]
        lines += [
            f"  target [{place.target.start},{place.target.end}) near {at}: {self._target(place, at)}"
            for at in sorted({best if offset is None else offset, best})
        ]
        return "\n".join(lines)

    def _source(self, place: Truth, at: int) -> str:
        there = {record.offset for record in place.source.records}
        near = sorted(place.written, key=lambda r: abs(r.offset - at))[: 2 * AROUND]
        marks = {True: "", False: "~"}
        return " ".join(
            f"{marks[r.offset in there]}{r.offset}{'' if r.committed else '!'}"
            for r in sorted(near, key=lambda r: r.offset)
        )

    def _target(self, place: Truth, at: int) -> str:
        origin = {record.identity: record.offset for record in place.written}
        near = sorted(place.target.records, key=lambda r: abs(r.offset - at))[: 2 * AROUND]
        return " ".join(
            f"{origin.get(r.identity, r.identity)}@{r.offset}" for r in sorted(near, key=lambda r: r.offset)
        )

    def _first_owed(self, place: Truth, committed: int) -> str:
        first = next((record for record in place.source.records if record.offset >= committed), None)
        return "none" if first is None else f"{first.offset}@{oracle.copies(place, first.identity)}"


def judged_cutover(
    scene: Scene, commands: CommandLine, plan: str
) -> tuple[Sequence[dict[str, Any]], Mapping[Partition, Truth]]:
    """Hold every row of a plan against the truth, then apply it, prove it and take it back; return both."""
    rows: Sequence[dict[str, Any]] = commands.document(plan)["rows"]
    truth, target = scene.truth(), scene.lab.target_bootstrap
    assert committed_offsets(rows) == scene.places and not scene.contradictions(truth)
    score = Judge(scene, truth, all_syncs(scene.lab), whole=True).score(rows)
    assert score.judged["best"] > 0 and score.judged["loss"] == len(rows)
    assert not score.complaints, told(score.complaints)
    commands.execute(plan).expect(0)
    assert by_place(commits_on(target, scene.commits)) == planned_offsets(rows)
    commands.verify(plan, "--records").expect(0)
    commands.undo(plan).expect(0)
    assert not commits_on(target, scene.commits)
    return rows, truth
