"""What `follow` does with a group in a pass, case by case, and over a whole life with colleagues, kills and resets."""

from collections.abc import Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from migrate.apply.history import FAILED, SET, UNKNOWN, GroupTrace, JournalState, by_partition, read_history, sealed
from migrate.clock import iso
from migrate.extras.follow.journal import Followed, WriteTimes, same, snapshot
from migrate.extras.follow.judge import FINAL, Allowed, Refusal, SeenGroup, WhyNot, judge
from migrate.model import UNREAD_METADATA, Commit, Decision, Failure, Grade, GroupState, Row, TopicPartition
from tests.builders import make_row, make_untranslated

EMPTY, ABSENT, ALIVE = GroupState("Empty"), GroupState("Absent"), GroupState("Stable", 1, ("app-1@host",))
DAY_MS = 24 * 3_600_000
ALLOWED = Allowed(frozenset({Grade.EXACT, Grade.BOUNDED}), 7 * DAY_MS, 2 * DAY_MS)
PLACE = TopicPartition("A.orders", 0)


def row(target_offset: int = 650, partition: int = 0, **values: object) -> Row:
    return make_row(partition=partition, target_offset=target_offset, **({"grade": Grade.EXACT} | values))


def a_group(*rows: Row, target_commits: Mapping[TopicPartition, Commit] | None = None, **values: object) -> SeenGroup:
    return SeenGroup("billing", rows or (row(),), target_commits or {}, **({"target_state": ABSENT} | values))


NOTHING = Followed()


def known(*tries: tuple[int, str], prior: Commit | None = None, left: str = "", metadata: str = "") -> Followed:
    """What is known after tries of ours, each an offset and its answer, "" for none."""
    trace = GroupTrace({}, {})
    for offset, answer in tries:
        trace = trace.begun({PLACE: offset}, {PLACE: metadata} if metadata else {})
        trace = trace.answered([(PLACE, answer, "", "")]) if answer else trace
    return Followed({} if prior is None else {PLACE: prior}, trace, left, True)


def wrote(offset: int, prior: Commit | None = None, left: str = "") -> Followed:
    return known((offset, SET), prior=prior, left=left)


def refused(seen: SeenGroup, of: Followed = NOTHING, now_ms: int = 0) -> Refusal:
    verdict = judge(seen, of, ALLOWED, now_ms)
    assert isinstance(verdict, Refusal)
    return verdict


def to_set(seen: SeenGroup, of: Followed = NOTHING, now_ms: int = 0) -> tuple[Row, ...]:
    verdict = judge(seen, of, ALLOWED, now_ms)
    assert not isinstance(verdict, Refusal), verdict
    return verdict


def why(seen: SeenGroup, of: Followed = NOTHING, now_ms: int = 0) -> str:
    return refused(seen, of, now_ms).reason


def test_a_group_that_is_nowhere_is_set_and_once_it_stands_there_left_as_it_is() -> None:
    assert [r.target_offset for r in to_set(a_group())] == [650]
    assert to_set(a_group(target_commits={PLACE: Commit(650)}, written_ms={PLACE: 1}), wrote(650)) == ()


def test_an_offset_that_stands_right_and_is_not_ours_is_taken_over_so_that_its_retention_is_ours_to_watch() -> None:
    kept = row(decision=Decision.KEEP, target_prior=650)
    rows = to_set(a_group(kept, target_commits={PLACE: Commit(650)}))
    assert [(r.decision, r.target_offset) for r in rows] == [(Decision.SET, 650)]


SILENT, OTHER = Failure("_TIMED_OUT", "no answer"), TopicPartition("A.orders", 1)
REFUSED = {
    "alive on the target, for good": (
        a_group(target_commits={PLACE: Commit(900)}, target_state=ALIVE), wrote(650), WhyNot.ALIVE, False),
    "its state was not asked for": (a_group(target_state=None), NOTHING, WhyNot.STATE, True),
    "its state is not told": (a_group(target_state=SILENT), NOTHING, WhyNot.STATE, True),
    "a place that was empty when we began is not now": (
        a_group(row(), row(partition=1), target_commits={PLACE: Commit(650), OTHER: Commit(5)}), wrote(650),
        WhyNot.WRITTEN, False),
    "it would go back behind what is not ours": (
        a_group(target_commits={PLACE: Commit(651)}), NOTHING, WhyNot.MOVES_BACK, True),
    "metadata there that nobody can read accuses nobody": (
        a_group(row(500), target_commits={PLACE: Commit(500, UNREAD_METADATA)}), known((500, SET), metadata="m"),
        WhyNot.JAVA, False),
    "metadata to write that nobody can read": (
        a_group(row(target_metadata=UNREAD_METADATA)), NOTHING, WhyNot.JAVA, True),
    "one row of a grade that is not allowed": (
        a_group(row(), row(partition=1, grade=Grade.ESTIMATED)), NOTHING, WhyNot.GRADE, True),
    "one row without a grade": (a_group(row(), row(partition=1, grade=None)), NOTHING, WhyNot.GRADE, True),
    "a blocked row's own reason counts": (
        a_group(row(decision=Decision.BLOCK, reason="group-blocked"),
                make_untranslated(Decision.BLOCK, "target-topic-missing")), NOTHING, "target-topic-missing", True),
    "what we wrote is skipped now": (
        a_group(make_untranslated(Decision.SKIP, "topic-not-replicated"), target_commits={PLACE: Commit(650)}),
        wrote(650), "topic-not-replicated", True),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "of", "reason", "is_unsafe"), REFUSED.values(), ids=REFUSED)
def test_a_group_is_refused_as_a_whole_and_called_unsafe_where_its_consumers_might_skip(
    seen: SeenGroup, of: Followed, reason: str, is_unsafe: bool
) -> None:
    left = refused(seen, of)
    assert (left.reason, left.is_unsafe) == (reason, is_unsafe)
    assert left.is_final == (reason in (WhyNot.ALIVE, WhyNot.WRITTEN))


@pytest.mark.parametrize("state", [EMPTY, ABSENT, Failure("_TIMED_OUT", "no answer"), None])
def test_a_group_that_was_handed_over_and_has_stopped_is_unsafe_where_it_stands_beyond_what_it_is_owed(
    state: GroupState | Failure | None,
) -> None:
    for stands, is_unsafe in (900, True), (650, False):
        left = refused(
            a_group(target_commits={PLACE: Commit(stands)}, target_state=state), wrote(650, left=WhyNot.ALIVE)
        )
        assert (left.reason, left.is_unsafe) == (WhyNot.ALIVE, is_unsafe)


@pytest.mark.parametrize(
    "refused_row", [row(grade=Grade.ESTIMATED), make_untranslated(Decision.BLOCK, "commit-beyond-log-end")]
)
def test_a_group_is_unsafe_where_nothing_stands_or_nobody_knows_what_it_is_owed(refused_row: Row) -> None:
    assert refused(a_group(refused_row)).is_unsafe
    stands = a_group(refused_row, target_commits={refused_row.target_partition: Commit(600)})
    assert refused(stands).is_unsafe == (refused_row.target_offset is None)


def test_a_skipped_row_makes_no_group_unsafe() -> None:
    skipped = make_untranslated(Decision.SKIP, "no-checkpoint", partition=1)
    assert not refused(a_group(row(grade=Grade.ESTIMATED), skipped, target_commits={PLACE: Commit(650)})).is_unsafe


@pytest.mark.parametrize("stands", [None, Commit(600), Commit(700), Commit(650, "theirs")])
def test_a_group_in_which_somebody_else_wrote_is_left_alone_whichever_way_it_was_moved(stands: Commit | None) -> None:
    seen = a_group(target_commits={} if stands is None else {PLACE: stands}, written_ms={PLACE: 0})
    left = refused(seen, wrote(650))
    assert left.reason == WhyNot.WRITTEN and left.is_final
    assert left.is_unsafe == (stands is None or stands == Commit(700))


@pytest.mark.parametrize(
    ("values", "until_then"),
    [
        ({"written_ms": {PLACE: 0}}, WhyNot.WRITTEN),
        ({"written_ms": {PLACE: 0}, "watched_since_ms": 1}, WhyNot.GONE_FROM_TARGET),
    ],
    ids=["written by this process", "written by one before"],
)
def test_a_write_of_ours_that_is_gone_is_made_again_only_when_retention_may_have_taken_it(
    values: object, until_then: WhyNot
) -> None:
    assert why(a_group(**values), wrote(650), 7 * DAY_MS - 1) == until_then  # type: ignore[arg-type]
    assert WhyNot.GONE_FROM_TARGET not in FINAL, "a long stop must not cost a group its mandate"
    assert to_set(a_group(**values), wrote(650), 7 * DAY_MS)  # type: ignore[arg-type]


def test_a_reset_on_the_source_takes_our_own_write_back() -> None:
    assert [r.target_offset for r in to_set(a_group(row(10), target_commits={PLACE: Commit(650)}), wrote(650))] == [10]


def test_a_write_in_doubt_counts_as_ours_whether_it_was_made_or_not() -> None:
    doubt = known((600, SET), (650, UNKNOWN))
    for stands in (600, 650):
        assert to_set(a_group(row(10), target_commits={PLACE: Commit(stands)}), doubt)
    assert why(a_group(row(10), target_commits={PLACE: Commit(620)}), doubt) == WhyNot.WRITTEN


def test_while_a_later_write_is_in_doubt_the_older_one_is_written_again_and_so_made_the_last() -> None:
    seen = a_group(row(600), target_commits={PLACE: Commit(600)}, written_ms={PLACE: 1})
    assert [r.target_offset for r in to_set(seen, known((600, SET), (650, UNKNOWN)))] == [600]


@pytest.mark.parametrize("of", [known((650, SET), (650, "")), known((650, ""), prior=Commit(650))])
def test_a_write_in_doubt_is_not_proven_by_what_stands_there_and_is_made_again(of: Followed) -> None:
    rows = to_set(a_group(target_commits={PLACE: Commit(650)}, written_ms={PLACE: DAY_MS}), of, DAY_MS)
    assert [(r.target_offset, r.needs_acknowledgement) for r in rows] == [(650, True)]


def test_only_where_it_stands_already_does_a_row_need_the_clusters_own_answer() -> None:
    (moved,) = to_set(a_group(row(700), target_commits={PLACE: Commit(650)}), wrote(650))
    assert not moved.needs_acknowledgement


def test_a_refresh_that_was_not_made_is_no_reason_to_take_retention_for_somebody_else() -> None:
    for answer in ("", UNKNOWN, FAILED):
        assert to_set(a_group(written_ms={PLACE: 0}), known((650, SET), (650, answer)), 7 * DAY_MS)


def test_a_first_write_that_was_never_made_leaves_what_stood_there_before() -> None:
    assert to_set(a_group(target_commits={PLACE: Commit(5)}), known((650, ""), prior=Commit(5)))


def test_a_skipped_row_is_no_row_of_a_pass() -> None:
    skipped = make_untranslated(Decision.SKIP, "topic-not-replicated", partition=1)
    assert len(to_set(a_group(row(), skipped))) == 1


def test_what_does_not_change_is_written_again_before_retention_takes_it() -> None:
    seen = a_group(target_commits={PLACE: Commit(650)}, written_ms={PLACE: 1})
    assert not to_set(seen, wrote(650), 2 * DAY_MS)
    assert to_set(seen, wrote(650), 2 * DAY_MS + 1)


def test_what_expires_by_the_targets_own_clock_is_written_again_also_where_we_remember_a_later_write() -> None:
    seen = a_group(target_commits={PLACE: Commit(650)}, is_expiring=True, written_ms={PLACE: DAY_MS})
    assert [r.target_offset for r in to_set(seen, wrote(650), DAY_MS)] == [650]


def test_what_we_wrote_and_has_no_row_any_more_refuses_its_group_and_what_we_never_wrote_does_not() -> None:
    other = TopicPartition("A.orders", 1)
    seen = a_group(target_commits={PLACE: Commit(650), other: Commit(5)}, written_ms={PLACE: 1})
    of = wrote(650)
    assert (
        to_set(seen, Followed({other: Commit(5)}, of.trace.begun({other: 5}).answered([(other, FAILED, "", "")]))) == ()
    )
    both = of.trace.begun({other: 5}).answered([(other, SET, "", "")])
    left = refused(seen, Followed({other: Commit(5)}, both, "", True))
    assert (left.reason, left.is_unsafe, left.is_final) == (WhyNot.GONE_FROM_SOURCE, True, False)


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
    @precondition(lambda self: not self.alive)
    def reset_by_a_colleague(self, partition: int, offset: int) -> None:
        self.target[partition], self.authors[partition] = Commit(offset), self.COLLEAGUE
        self.seen_foreign = True

    @rule()
    def start_or_stop_consumers_on_the_target(self) -> None:
        self.alive = not self.alive

    @rule()
    @precondition(lambda self: self.alive)
    def commit_by_consumers_on_the_target(self) -> None:
        self.target[0], self.authors[0] = Commit(20), self.COLLEAGUE
        self.seen_foreign = True

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

    @rule(ends=st.sampled_from(["answered", "answered", "unknown", "unknown-not-made", "refused", "killed",
                                 "killed-before"]))  # fmt: skip
    def pass_over(self, ends: str) -> None:
        rows = tuple(row(self.source[p], p, decision=Decision.SET) for p in (0, 1))
        standing = {TopicPartition("A.orders", p): commit for p, commit in self.target.items()}
        state, written_ms = ALIVE if self.alive else EMPTY, self.times.of("billing")
        seen = SeenGroup(
            "billing", rows, standing, state, written_ms=written_ms, watched_since_ms=self.died_ms
        )  # fmt: skip
        verdict = judge(seen, self.known, ALLOWED, self.now_ms)
        self.law_of_the_verdict(rows, verdict)
        if isinstance(verdict, Refusal):
            if verdict.is_final:
                self.note("note", text=verdict.reason)
        elif verdict:
            self.write(verdict, standing, ends)

    def law_of_the_verdict(self, rows: tuple[Row, ...], verdict: tuple[Row, ...] | Refusal) -> None:
        for r in () if isinstance(verdict, Refusal) else verdict:
            stands, author = self.target.get(r.partition), self.authors.get(r.partition)
            assert not (self.alive or self.seen_alive), "never on a group that was seen alive"
            if self.first:
                # What a colleague put there may be just what stood there before us, or what we put there: no trace.
                untouched = same(stands, self.first[r.partition]) or self.known.is_ours(r.target_partition, stands)
                assert author != self.COLLEAGUE or untouched, "never over somebody else's write"
            if stands is not None and r.target_offset < stands.offset:
                assert self.known.is_ours(r.target_partition, stands), "never back, but for our own write"
        if not isinstance(verdict, Refusal):
            written = {r.partition for r in verdict}
            for r in rows:
                assert r.partition in written or self.target[r.partition] == r.target_commit
                if r.partition not in written:
                    age_ms = self.now_ms - self.made_ms[r.partition]
                    assert age_ms < ALLOWED.refresh_ms, "a write that was not made never counts as a refresh"
        elif verdict.reason == WhyNot.WRITTEN:
            assert self.seen_foreign, "what retention takes is nobody else's write"
        self.seen_alive |= self.alive

    def write(self, rows: tuple[Row, ...], standing: Mapping[TopicPartition, Commit], ends: str) -> None:
        places = [TopicPartition("A.orders", p) for p in (0, 1)]
        self.first = self.first or {p: self.target.get(p) for p in (0, 1)}
        stood = [standing.get(place) for place in places]
        self.note("backup", **by_partition(
            places, offset=[None if c is None else c.offset for c in stood], metadata=[""],
        ))  # fmt: skip
        asked = [r.target_partition for r in rows]
        self.note("intent", **by_partition(asked, offset=[r.target_offset for r in rows]))
        if ends not in ("unknown-not-made", "refused", "killed-before"):
            for r in rows:
                self.made_ms[r.partition] = self.now_ms
                self.target[r.partition], self.authors[r.partition] = r.target_commit, self.FOLLOW
        told = {"answered": (SET, ""), "unknown": (UNKNOWN, "_TIMED_OUT"), "unknown-not-made": (FAILED, "_TIMED_OUT"),
                "refused": (FAILED, "NOT_SENT")}  # fmt: skip
        if ends not in told:
            self.died_ms = self.now_ms + 1
        else:
            status, code = told[ends]
            self.note("outcome", **by_partition(asked, status=[status], code=[code], message=[""]))

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
