"""What `follow` does with a group in a pass, case by case, and over a whole life with colleagues, kills and resets."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from migrate.apply.history import FAILED, SET, UNKNOWN, GroupTrace, JournalState, by_partition, read_history, sealed
from migrate.clock import iso
from migrate.extras.follow.journal import Followed, WriteTimes, same, snapshot
from migrate.extras.follow.judge import FINAL, Allowed, Refusal, SeenGroup, WhyNot, judge
from migrate.model import UNREAD_METADATA, Commit, Decision, Failure, Grade, GroupState, Row, TopicPartition
from tests.builders import make_row, make_untranslated

EMPTY, ABSENT, ALIVE = GroupState("Empty"), GroupState("Absent"), GroupState("Stable", 1, ("app-1@host",))
SILENT = Failure("_TIMED_OUT", "no answer")
DAY_MS = 24 * 3_600_000
ALLOWED = Allowed(frozenset({Grade.EXACT, Grade.BOUNDED}), 7 * DAY_MS, 2 * DAY_MS)
PLACE, OTHER = (TopicPartition("A.orders", partition) for partition in (0, 1))
NOTHING = Followed()


def row(target_offset: int = 650, partition: int = 0, **values: object) -> Row:
    return make_row(partition=partition, target_offset=target_offset, **({"grade": Grade.EXACT} | values))


def skipped(reason: str = "topic-not-replicated", partition: int = 1) -> Row:
    return make_untranslated(Decision.SKIP, reason, partition=partition)


def a_group(*rows: Row, stands: int | Commit | None = None, other: int | None = None, **values: object) -> SeenGroup:
    """What a pass sees of a group: one row if none is given, and what stands at its places on the target."""
    commits = {
        PLACE: Commit(stands) if isinstance(stands, int) else stands, OTHER: None if other is None else Commit(other),
    }  # fmt: skip
    there = {place: commit for place, commit in commits.items() if commit is not None}
    return SeenGroup("billing", rows or (row(),), there, **({"target_state": ABSENT} | values))


def known(*tries: tuple[int, str], prior: Commit | None = None, left: str = "", metadata: str = "") -> Followed:
    """What is known after tries of ours, each an offset and its answer, "" for none."""
    trace = GroupTrace({}, {})
    for offset, answer in tries:
        trace = trace.begun({PLACE: offset}, {PLACE: metadata} if metadata else {})
        trace = trace.answered([(PLACE, answer, "", "")]) if answer else trace
    return Followed({} if prior is None else {PLACE: prior}, trace, left, True)


def wrote(offset: int, left: str = "") -> Followed:
    return known((offset, SET), left=left)


def refused(seen: SeenGroup, of: Followed = NOTHING, now_ms: int = 0) -> Refusal:
    verdict = judge(seen, of, ALLOWED, now_ms)
    assert isinstance(verdict, Refusal)
    return verdict


def offsets(seen: SeenGroup, of: Followed = NOTHING, now_ms: int = 0) -> list[tuple[int | None, bool]]:
    """What is set: offsets, and whether each needs the cluster's own answer."""
    verdict = judge(seen, of, ALLOWED, now_ms)
    assert not isinstance(verdict, Refusal), verdict
    assert all(r.decision is Decision.SET for r in verdict)
    return [(r.target_offset, r.needs_acknowledgement) for r in verdict]


DOUBT = known((600, SET), (650, UNKNOWN))
OURS_AT_FIRST = Followed({OTHER: Commit(5)}, wrote(650).trace.begun({OTHER: 5}).answered([(OTHER, FAILED, "", "")]))
# A group, what is known of it, when it is judged, and the offsets that are set.
TO_SET = {
    "what stands right and is not ours is taken over, so that its retention is ours to watch": (
        a_group(row(decision=Decision.KEEP, target_prior=650), stands=650), NOTHING, 0, [650]),
    "what was written, in doubt": (a_group(row(10), stands=650), DOUBT, 0, [10]),
    "what was not written, in doubt": (a_group(row(10), stands=600), DOUBT, 0, [10]),
    "while a later write is in doubt the older one is made the last": (
        a_group(row(600), stands=600, written_ms={PLACE: 1}), DOUBT, 0, [600]),
    "what stands there is no proof of a write in doubt": (
        a_group(stands=650, written_ms={PLACE: DAY_MS}), known((650, SET), (650, "")), DAY_MS, [650]),
    "nor is what stood there before it": (
        a_group(stands=650, written_ms={PLACE: DAY_MS}), known((650, ""), prior=Commit(650)), DAY_MS, [650]),
    "a first write that was never made leaves what stood there before": (
        a_group(stands=5), known((650, ""), prior=Commit(5)), 0, [650]),
    "a skipped row is no row of a pass": (a_group(row(), skipped()), NOTHING, 0, [650]),
    "before retention takes it": (a_group(stands=650, written_ms={PLACE: 1}), wrote(650), 2 * DAY_MS + 1, [650]),
    "and not too soon": (a_group(stands=650, written_ms={PLACE: 1}), wrote(650), 2 * DAY_MS, []),
    "what expires by the target's own clock, however new": (
        a_group(stands=650, is_expiring=True, written_ms={PLACE: DAY_MS}), wrote(650), DAY_MS, [650]),
    **{f"retention is not somebody else where a refresh had {answer or 'no answer'}": (
        a_group(written_ms={PLACE: 0}), known((650, SET), (650, answer)), 7 * DAY_MS, [650])
       for answer in ("", UNKNOWN, FAILED)},
    "a place that we never wrote, and that has no row any more": (
        a_group(stands=650, other=5, written_ms={PLACE: 1}), OURS_AT_FIRST, 0, []),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "of", "now_ms", "expected"), TO_SET.values(), ids=TO_SET)
def test_what_is_set_is_all_that_stands_elsewhere_is_not_ours_for_certain_or_expires(
    seen: SeenGroup, of: Followed, now_ms: int, expected: list[int]
) -> None:
    # No reading tells of what stands there already whether it was written again.
    stands = {commit.offset for commit in seen.target_commits.values()}
    assert offsets(seen, of, now_ms) == [(offset, offset in stands) for offset in expected]


REFUSED = {
    "its state was not asked for": (a_group(target_state=None), NOTHING, WhyNot.STATE, True),
    "its state is not told": (a_group(target_state=SILENT), NOTHING, WhyNot.STATE, True),
    "a place that was empty when we began is not now": (
        a_group(row(), row(partition=1), stands=650, other=5), wrote(650), WhyNot.WRITTEN, False),
    "neither of two writes of which one is in doubt": (a_group(row(), stands=620), DOUBT, WhyNot.WRITTEN, False),
    "our own write is gone": (a_group(written_ms={PLACE: 0}), wrote(650), WhyNot.WRITTEN, True),
    "somebody moved it back": (a_group(stands=600), wrote(650), WhyNot.WRITTEN, False),
    "somebody moved it on": (a_group(stands=700), wrote(650), WhyNot.WRITTEN, True),
    "somebody wrote other metadata": (a_group(stands=Commit(650, "theirs")), wrote(650), WhyNot.WRITTEN, False),
    "it would go back behind what is not ours": (a_group(stands=651), NOTHING, WhyNot.MOVES_BACK, True),
    "metadata there that nobody can read accuses nobody": (
        a_group(row(500), stands=Commit(500, UNREAD_METADATA)), known((500, SET), metadata="m"), WhyNot.JAVA, False),
    "metadata to write that nobody can read": (
        a_group(row(target_metadata=UNREAD_METADATA)), NOTHING, WhyNot.JAVA, True),
    "one row of a grade that is not allowed": (
        a_group(row(), row(partition=1, grade=Grade.ESTIMATED)), NOTHING, WhyNot.GRADE, True),
    "such a row where it stands not beyond what is owed": (
        a_group(row(grade=Grade.ESTIMATED), skipped(), stands=600), NOTHING, WhyNot.GRADE, False),
    "one row without a grade": (a_group(row(), row(partition=1, grade=None)), NOTHING, WhyNot.GRADE, True),
    "a blocked row's own reason counts, and nobody knows what is owed": (
        a_group(row(decision=Decision.BLOCK, reason="group-blocked"),
                make_untranslated(Decision.BLOCK, "target-topic-missing"), stands=600),
        NOTHING, "target-topic-missing", True),
    "what we wrote is skipped now": (
        a_group(skipped(partition=0), stands=650), wrote(650), "topic-not-replicated", True),
    "what we wrote has no row now": (
        a_group(stands=650, other=5, written_ms={PLACE: 1}),
        Followed({OTHER: Commit(5)}, OURS_AT_FIRST.trace.begun({OTHER: 5}).answered([(OTHER, SET, "", "")]), "", True),
        WhyNot.GONE_FROM_SOURCE, True),
    **{f"handed over, and now {name} at {stands}": (
        a_group(stands=stands, target_state=state), wrote(650, left=WhyNot.ALIVE), WhyNot.ALIVE, stands > 650)
       for name, state in (("stopped", EMPTY), ("silent", SILENT), ("not seen", None)) for stands in (900, 650)},
}  # fmt: skip


@pytest.mark.parametrize(("seen", "of", "reason", "is_unsafe"), REFUSED.values(), ids=REFUSED)
def test_a_group_is_refused_as_a_whole_and_called_unsafe_where_its_consumers_might_skip(
    seen: SeenGroup, of: Followed, reason: str, is_unsafe: bool
) -> None:
    left = refused(seen, of)
    assert (left.reason, left.is_unsafe) == (reason, is_unsafe)
    assert left.is_final == (reason in (WhyNot.ALIVE, WhyNot.WRITTEN))


@pytest.mark.parametrize(("watched_since_ms", "until_then"), [(0, WhyNot.WRITTEN), (1, WhyNot.GONE_FROM_TARGET)])
def test_a_write_of_ours_that_is_gone_is_made_again_only_when_retention_may_have_taken_it(
    watched_since_ms: int, until_then: WhyNot
) -> None:
    """Written by this process, or by one before: while none looked, another clock may have taken it."""
    seen = a_group(written_ms={PLACE: 0}, watched_since_ms=watched_since_ms)
    assert refused(seen, wrote(650), 7 * DAY_MS - 1).reason == until_then
    assert WhyNot.GONE_FROM_TARGET not in FINAL, "a long stop must not cost a group its mandate"
    assert offsets(seen, wrote(650), 7 * DAY_MS) == [(650, False)]


# How the write of a pass ends: whether it is made, and the answer, "" where `follow` is killed before one.
ENDS = [
    (True, SET, ""), (True, SET, ""), (True, UNKNOWN, "_TIMED_OUT"), (False, FAILED, "_TIMED_OUT"),
    (False, FAILED, "NOT_SENT"), (True, "", ""), (False, "", ""),
]  # fmt: skip


class LifeOfAFollow(RuleBasedStateMachine):
    """One group of two rows. The truth of the target is kept beside what `follow` remembers, in events alone."""

    FOLLOW, COLLEAGUE = "follow", "colleague"

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, object]] = []
        self.now_ms = 1_000_000
        self.source = {0: 10, 1: 10}
        self.target: dict[int, Commit] = {}
        self.authors: dict[int, str] = {}
        self.first: dict[int, Commit | None] = {}
        self.made_ms: dict[int, int] = {}
        self.died_ms = 0
        self.alive = self.seen_alive = self.seen_foreign = False

    @initialize(stood=st.dictionaries(st.sampled_from([0, 1]), st.integers(0, 20).map(Commit)))
    def begin(self, stood: dict[int, Commit]) -> None:
        self.target, self.authors = dict(stood), dict.fromkeys(stood, "before")
        self.note("begin", command="follow")

    def note(self, event: str, **fields: object) -> None:
        self.events.append(
            {"event": event, "time": iso(self.now_ms), "group": "billing", "pid": 7, "host": "h", **fields}
        )

    @property
    def state(self) -> JournalState:
        lines = [sealed({**event, "fingerprint": "f"}) + b"\n" for event in self.events]
        return read_history(b"".join(lines), "journal", "f")

    @property
    def times(self) -> WriteTimes:
        times = WriteTimes()
        for event in self.events:
            times.take(event)
        return times

    @property
    def known(self) -> Followed:
        return Followed.by(self.state, "billing")

    @rule(partition=st.sampled_from([0, 1]), offset=st.integers(0, 20))
    def commit_on_the_source(self, partition: int, offset: int) -> None:
        self.source[partition] = offset

    @rule(partition=st.sampled_from([0, 1]), offset=st.integers(0, 20))
    def commit_by_somebody_else_on_the_target(self, partition: int, offset: int) -> None:
        """A colleague's reset, or the commit of a consumer there."""
        self.target[partition], self.authors[partition] = Commit(offset), self.COLLEAGUE
        self.seen_foreign = True

    @rule()
    def start_or_stop_consumers_on_the_target(self) -> None:
        self.alive = not self.alive

    @rule(hours=st.integers(1, 80))
    def let_time_pass(self, hours: int) -> None:
        self.now_ms += hours * 3_600_000
        for p, author in [*self.authors.items()]:
            # Retention takes what we wrote; how old the others' offsets are is their affair.
            if author == self.FOLLOW and self.now_ms - self.made_ms[p] >= 7 * DAY_MS:
                del self.target[p], self.authors[p]

    @rule()
    def make_the_journal_short(self) -> None:
        before, times = normal(self.known), self.times.of("billing")
        short = snapshot(self.state, self.times)
        self.events = [self.events[0], *({"time": iso(self.now_ms), **event} for event in short)]
        assert before == normal(self.known)
        assert self.times.of("billing") == {p: at for p, at in times.items() if p in self.known.written}

    @rule(end=st.sampled_from(ENDS))
    def pass_over(self, end: tuple[bool, str, str]) -> None:
        rows = tuple(row(self.source[p], p, decision=Decision.SET) for p in (0, 1))
        standing = {TopicPartition("A.orders", p): commit for p, commit in self.target.items()}
        state, written_ms = ALIVE if self.alive else EMPTY, self.times.of("billing")
        seen = SeenGroup("billing", rows, standing, state, written_ms=written_ms, watched_since_ms=self.died_ms)
        verdict = judge(seen, self.known, ALLOWED, self.now_ms)
        self.law_of_the_verdict(rows, verdict)
        if isinstance(verdict, Refusal):
            if verdict.is_final:
                self.note("note", text=verdict.reason)
        elif verdict:
            self.write(verdict, *end)

    def law_of_the_verdict(self, rows: tuple[Row, ...], verdict: tuple[Row, ...] | Refusal) -> None:
        if isinstance(verdict, Refusal):
            assert verdict.reason != WhyNot.WRITTEN or self.seen_foreign, "what retention takes is nobody else's write"
        else:
            written = {r.partition: r for r in verdict}
            for r in rows:
                stands = self.target.get(r.partition)
                if r.partition in written:
                    self.law_of_a_write(written[r.partition], stands)
                else:
                    age_ms = self.now_ms - self.made_ms[r.partition]
                    assert age_ms < ALLOWED.refresh_ms, "a write that was not made never counts as a refresh"
                    assert stands == r.target_commit
        self.seen_alive |= self.alive

    def law_of_a_write(self, row: Row, stands: Commit | None) -> None:
        is_ours = self.known.is_ours(row.target_partition, stands)
        assert not (self.alive or self.seen_alive), "never on a group that was seen alive"
        if self.first and self.authors.get(row.partition) == self.COLLEAGUE:
            # What a colleague put there may be just what stood there before us, or what we put there: no trace.
            assert is_ours or same(stands, self.first[row.partition]), "never over somebody else's write"
        assert stands is None or row.target_offset >= stands.offset or is_ours, "never back, but for our own write"

    def write(self, rows: tuple[Row, ...], is_made: bool, status: str, code: str) -> None:
        places, stood = [TopicPartition("A.orders", p) for p in (0, 1)], {p: self.target.get(p) for p in (0, 1)}
        self.first = self.first or stood
        offsets = [None if commit is None else commit.offset for commit in stood.values()]
        self.note("backup", **by_partition(places, offset=offsets, metadata=[""]))
        asked = [r.target_partition for r in rows]
        self.note("intent", **by_partition(asked, offset=[r.target_offset for r in rows]))
        for r in rows if is_made else ():
            self.made_ms[r.partition] = self.now_ms
            self.target[r.partition], self.authors[r.partition] = r.target_commit, self.FOLLOW
        if status:
            self.note("outcome", **by_partition(asked, status=[status], code=[code], message=[""]))
        else:
            self.died_ms = self.now_ms + 1

    @invariant()
    def all_that_may_stand_there_of_ours_is_remembered_and_so_is_what_stood_there_first(self) -> None:
        for p, author in self.authors.items():
            if author == self.FOLLOW:
                assert self.known.is_ours(TopicPartition("A.orders", p), self.target[p])
        for p, commit in self.first.items():
            assert same(self.known.prior.get(TopicPartition("A.orders", p)), commit)


def normal(known: Followed) -> object:
    return known.prior, known.is_saved, known.left, {p: known.trace.may_stand(p) for p in known.written}


TestLifeOfAFollow = LifeOfAFollow.TestCase
TestLifeOfAFollow.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
