"""What `follow` does with a group in a pass, case by case, and over a whole life with colleagues, kills and resets."""

from collections.abc import Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from migrate.apply.history import FAILED, SET, UNKNOWN, by_partition
from migrate.clock import iso
from migrate.extras.follow.journal import FollowMemory, GroupMemory, OwnWrites, planned_columns, same
from migrate.extras.follow.judge import Allowed, GroupSight, WhyNot, judge
from migrate.model import UNREAD_METADATA, Commit, Decision, Failure, Grade, GroupState, Row, TopicPartition
from tests.builders import make_row, make_untranslated

EMPTY, ABSENT, ALIVE = GroupState("Empty"), GroupState("Absent"), GroupState("Stable", 1, ("app-1@host",))
DAY_MS = 24 * 3_600_000
ALLOWED = Allowed(frozenset({Grade.EXACT, Grade.BOUNDED}), 7 * DAY_MS, 2 * DAY_MS)
PLACE = TopicPartition("A.orders", 0)


def row(target_offset: int = 650, partition: int = 0, **values: object) -> Row:
    return make_row(partition=partition, target_offset=target_offset, **({"grade": Grade.EXACT} | values))


def sight(*rows: Row, standing: Mapping[TopicPartition, Commit] | None = None, **values: object) -> GroupSight:
    return GroupSight("billing", rows or (row(),), standing or {}, **({"target_state": ABSENT} | values))


def wrote(offset: int, prior: Commit | None = None, at_ms: int = 0, **values: object) -> GroupMemory:
    return GroupMemory({PLACE: prior}, {PLACE: OwnWrites(Commit(offset), written_ms=at_ms)}, **values)


def why(seen: GroupSight, memory: GroupMemory = GroupMemory(), now_ms: int = 0) -> str:  # noqa: B008
    verdict = judge(seen, memory, ALLOWED, now_ms)
    assert verdict.refused is not None and not verdict.to_set
    return verdict.refused.reason


def test_a_group_that_is_nowhere_is_set_and_once_it_stands_there_left_as_it_is() -> None:
    assert [r.target_offset for r in judge(sight(), GroupMemory(), ALLOWED, 0).to_set] == [650]
    stands = judge(sight(standing={PLACE: Commit(650)}), wrote(650), ALLOWED, 0)
    assert (stands.to_set, stands.refused) == ((), None)


def test_an_offset_that_stands_right_and_is_not_ours_is_taken_over_so_that_its_retention_is_ours_to_watch() -> None:
    kept = row(decision=Decision.KEEP, target_prior=650)
    verdict = judge(sight(kept, standing={PLACE: Commit(650)}), GroupMemory(), ALLOWED, 0)
    assert [(r.decision, r.target_offset) for r in verdict.to_set] == [(Decision.SET, 650)]


def test_a_group_that_is_alive_on_the_target_is_refused_for_good_and_is_not_called_unsafe() -> None:
    refused = judge(sight(standing={PLACE: Commit(900)}, target_state=ALIVE), wrote(650), ALLOWED, 0).refused
    assert refused is not None and (refused.reason, refused.is_final, refused.is_unsafe) == (WhyNot.ALIVE, True, False)


@pytest.mark.parametrize("state", [EMPTY, ABSENT, Failure("_TIMED_OUT", "no answer"), None])
def test_a_group_that_was_handed_over_and_has_stopped_is_unsafe_where_it_stands_beyond_what_it_is_owed(
    state: GroupState | Failure | None,
) -> None:
    for stands, is_unsafe in (900, True), (650, False):
        seen = sight(standing={PLACE: Commit(stands)}, target_state=state)
        refused = judge(seen, wrote(650, left=WhyNot.ALIVE), ALLOWED, 0).refused
        assert refused is not None and (refused.reason, refused.is_unsafe) == (WhyNot.ALIVE, is_unsafe)


@pytest.mark.parametrize(
    "refused_row", [row(grade=Grade.ESTIMATED), make_untranslated(Decision.BLOCK, "commit-beyond-log-end")]
)
def test_a_group_is_unsafe_where_nothing_stands_or_nobody_knows_what_it_is_owed(refused_row: Row) -> None:
    refused = judge(sight(refused_row), GroupMemory(), ALLOWED, 0).refused
    assert refused is not None and refused.is_unsafe
    stands = sight(refused_row, standing={refused_row.target_partition: Commit(600)})
    refused = judge(stands, GroupMemory(), ALLOWED, 0).refused
    assert refused is not None and refused.is_unsafe == (refused_row.target_offset is None)


def test_a_skipped_row_makes_no_group_unsafe() -> None:
    skipped = make_untranslated(Decision.SKIP, "no-checkpoint", partition=1)
    seen = sight(row(grade=Grade.ESTIMATED), skipped, standing={PLACE: Commit(650)})
    refused = judge(seen, GroupMemory(), ALLOWED, 0).refused
    assert refused is not None and not refused.is_unsafe


@pytest.mark.parametrize("state", [None, Failure("_TIMED_OUT", "no answer")])
def test_a_group_whose_state_nobody_tells_is_not_written(state: Failure | None) -> None:
    assert why(sight(target_state=state)) == WhyNot.STATE


def test_a_group_that_was_left_alone_stays_so_when_its_consumers_have_gone() -> None:
    assert why(sight(target_state=EMPTY), GroupMemory(left=WhyNot.ALIVE)) == WhyNot.ALIVE


@pytest.mark.parametrize("stands", [None, Commit(600), Commit(700), Commit(650, "theirs")])
def test_a_group_in_which_somebody_else_wrote_is_left_alone_whichever_way_it_was_moved(stands: Commit | None) -> None:
    seen = sight(standing={} if stands is None else {PLACE: stands})
    refused = judge(seen, wrote(650), ALLOWED, 0).refused
    assert refused is not None and refused.reason == WhyNot.WRITTEN and refused.is_final
    assert refused.is_unsafe == (stands is None or stands == Commit(700))


def test_a_place_that_was_empty_when_we_began_and_is_not_now_is_somebody_elses_too() -> None:
    other = TopicPartition("A.orders", 1)
    seen = sight(row(), row(partition=1), standing={PLACE: Commit(650), other: Commit(5)})
    assert why(seen, wrote(650)) == WhyNot.WRITTEN


def test_a_write_of_ours_that_is_gone_is_made_again_only_when_retention_may_have_taken_it() -> None:
    assert why(sight(), wrote(650), 7 * DAY_MS - 1) == WhyNot.WRITTEN
    assert judge(sight(), wrote(650), ALLOWED, 7 * DAY_MS).to_set


def test_a_row_never_goes_back_behind_what_somebody_else_left_there_and_the_group_is_unsafe() -> None:
    refused = judge(sight(standing={PLACE: Commit(651)}), GroupMemory(), ALLOWED, 0).refused
    assert refused is not None and (refused.reason, refused.is_unsafe) == (WhyNot.MOVES_BACK, True)
    assert not refused.is_final


def test_a_reset_on_the_source_takes_our_own_write_back() -> None:
    verdict = judge(sight(row(10), standing={PLACE: Commit(650)}), wrote(650), ALLOWED, 0)
    assert [r.target_offset for r in verdict.to_set] == [10]


def test_a_write_in_doubt_counts_as_ours_whether_it_was_made_or_not() -> None:
    own = OwnWrites(Commit(600)).begun(Commit(650), 0).in_doubt()
    memory = GroupMemory({PLACE: None}, {PLACE: own})
    for stands, proven in ((600, {}), (650, {PLACE: Commit(650)})):
        verdict = judge(sight(row(10), standing={PLACE: Commit(stands)}), memory, ALLOWED, 0)
        assert verdict.to_set and verdict.proven == proven
    assert why(sight(row(10), standing={PLACE: Commit(620)}), memory) == WhyNot.WRITTEN


def test_while_a_later_write_is_in_doubt_the_older_one_is_written_again_and_so_made_the_last() -> None:
    own = OwnWrites(Commit(600)).begun(Commit(650), 0).in_doubt()
    seen, memory = sight(row(600), standing={PLACE: Commit(600)}), GroupMemory({PLACE: None}, {PLACE: own})
    verdict = judge(seen, memory, ALLOWED, 0)
    assert [r.target_offset for r in verdict.to_set] == [600]


@pytest.mark.parametrize("memory", [
    GroupMemory({PLACE: None}, {PLACE: OwnWrites(Commit(650), written_ms=0).begun(Commit(650), DAY_MS)}),
    GroupMemory({PLACE: Commit(650)}, {PLACE: OwnWrites().begun(Commit(650), DAY_MS)}),
])  # fmt: skip
def test_a_refresh_in_doubt_is_not_proven_by_what_stood_there_before_it_and_is_made_again(memory: GroupMemory) -> None:
    verdict = judge(sight(standing={PLACE: Commit(650)}), memory, ALLOWED, DAY_MS)
    assert not verdict.proven
    assert [(r.target_offset, r.needs_acknowledgement) for r in verdict.to_set] == [(650, True)]


def test_only_where_it_stands_already_does_a_row_need_the_clusters_own_answer() -> None:
    (moved,) = judge(sight(row(700), standing={PLACE: Commit(650)}), wrote(650), ALLOWED, 0).to_set
    assert not moved.needs_acknowledgement


def test_a_refresh_that_was_not_made_is_no_reason_to_take_retention_for_somebody_else() -> None:
    own = OwnWrites(Commit(650), written_ms=0).begun(Commit(650), 6 * DAY_MS)
    for write in (own, own.in_doubt(), own.answered(FAILED)):
        assert judge(sight(), GroupMemory({PLACE: None}, {PLACE: write}), ALLOWED, 7 * DAY_MS).to_set


def test_metadata_that_could_not_be_read_accuses_nobody() -> None:
    unread = Commit(500, UNREAD_METADATA)
    memory = GroupMemory({PLACE: None}, {PLACE: OwnWrites(Commit(500, "m"))})
    refused = judge(sight(row(500), standing={PLACE: unread}), memory, ALLOWED, 0).refused
    assert refused is not None and refused.reason == WhyNot.JAVA and not refused.is_final


def test_a_first_write_that_was_never_made_leaves_what_stood_there_before() -> None:
    memory = GroupMemory({PLACE: Commit(5)}, {PLACE: OwnWrites().begun(Commit(650), 0)})
    verdict = judge(sight(standing={PLACE: Commit(5)}), memory, ALLOWED, 0)
    assert verdict.to_set and not verdict.proven, "what stood there before us is not ours"


@pytest.mark.parametrize("grade", [Grade.ESTIMATED, None])
def test_a_row_of_a_grade_that_the_mandate_does_not_name_refuses_its_whole_group(grade: Grade | None) -> None:
    assert why(sight(row(), row(partition=1, grade=grade))) == WhyNot.GRADE


def test_a_blocked_row_refuses_its_group_with_its_own_reason() -> None:
    others = row(decision=Decision.BLOCK, reason="group-blocked")
    assert why(sight(others, make_untranslated(Decision.BLOCK, "target-topic-missing"))) == "target-topic-missing"


def test_a_skipped_row_is_no_row_of_a_pass() -> None:
    skipped = make_untranslated(Decision.SKIP, "topic-not-replicated", partition=1)
    assert len(judge(sight(row(), skipped), GroupMemory(), ALLOWED, 0).to_set) == 1


def test_commits_that_move_without_a_member_are_not_raced_with() -> None:
    assert why(sight(moving="orders-0: 5 to 9")) == WhyNot.MOVING


def test_metadata_that_nobody_could_read_is_not_written() -> None:
    assert why(sight(row(target_metadata=UNREAD_METADATA))) == WhyNot.JAVA


def test_what_does_not_change_is_written_again_before_retention_takes_it() -> None:
    seen = sight(standing={PLACE: Commit(650)})
    assert not judge(seen, wrote(650), ALLOWED, 2 * DAY_MS - 1).to_set
    assert judge(seen, wrote(650), ALLOWED, 2 * DAY_MS).to_set


def test_what_expires_by_the_targets_own_clock_is_written_again_also_where_we_remember_a_later_write() -> None:
    seen = sight(standing={PLACE: Commit(650)}, is_expiring=True)
    assert [r.target_offset for r in judge(seen, wrote(650, at_ms=DAY_MS), ALLOWED, DAY_MS).to_set] == [650]


def test_what_we_wrote_and_has_no_row_any_more_refuses_its_group_and_what_we_never_wrote_does_not() -> None:
    other = TopicPartition("A.orders", 1)
    seen = sight(standing={PLACE: Commit(650), other: Commit(5)})
    prior, refused = {PLACE: None, other: Commit(5)}, {PLACE: OwnWrites(Commit(650)), other: OwnWrites()}
    assert judge(seen, GroupMemory(prior, refused), ALLOWED, 0).refused is None
    verdict = judge(seen, GroupMemory(prior, refused | {other: OwnWrites(Commit(5))}), ALLOWED, 0).refused
    assert verdict is not None and (verdict.reason, verdict.is_unsafe, verdict.is_final) == (WhyNot.GONE, True, False)


def test_a_skipped_row_of_what_we_wrote_refuses_its_group_as_unsafe() -> None:
    skipped = make_untranslated(Decision.SKIP, "topic-not-replicated")
    assert skipped.target_partition == PLACE
    refused = judge(sight(skipped, standing={PLACE: Commit(650)}), wrote(650), ALLOWED, 0).refused
    assert refused is not None and (refused.reason, refused.is_unsafe) == ("topic-not-replicated", True)


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
        self.alive = self.seen_alive = self.seen_foreign = False

    @initialize(stood=st.dictionaries(st.sampled_from([0, 1]), st.integers(0, 20).map(Commit)))
    def begin(self, stood: dict[int, Commit]) -> None:
        self.target, self.authors = dict(stood), dict.fromkeys(stood, "before")
        self.note("begin", command="follow")

    def note(self, event: str, **fields: object) -> None:
        self.events.append({"event": event, "time": iso(self.now_ms), "group": "billing", **fields})

    @property
    def memory(self) -> FollowMemory:
        memory = FollowMemory()
        for event in self.events:
            memory.take(event)
        return memory

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
        before, self.events = self.memory, [
            {"time": iso(self.now_ms), **event} for event in self.memory.snapshot()
        ]  # fmt: skip
        assert normal(before) == normal(self.memory)

    @rule(ends=st.sampled_from(["answered", "answered", "unknown", "unknown-not-made", "refused", "killed",
                                 "killed-before"]))  # fmt: skip
    def pass_over(self, ends: str) -> None:
        rows = tuple(row(self.source[p], p, decision=Decision.SET) for p in (0, 1))
        standing = {TopicPartition("A.orders", p): commit for p, commit in self.target.items()}
        memory = self.memory.of("billing")
        foreign = [p for p, author in self.authors.items() if author == self.COLLEAGUE]
        seen = GroupSight("billing", rows, standing, ALIVE if self.alive else EMPTY)
        verdict = judge(seen, memory, ALLOWED, self.now_ms)
        self.law_of_the_verdict(rows, foreign, verdict)
        if verdict.refused is not None:
            if verdict.refused.is_final:
                self.note("left", reason=verdict.refused.reason)
            return
        self.prove(verdict.proven or {})
        if verdict.to_set:
            self.write(verdict.to_set, standing, ends)

    def law_of_the_verdict(self, rows: tuple[Row, ...], foreign: list[int], verdict: object) -> None:
        for r in verdict.to_set:  # type: ignore[attr-defined]
            stands, author = self.target.get(r.partition), self.authors.get(r.partition)
            assert not (self.alive or self.seen_alive), "never on a group that was seen alive"
            if self.first:
                # What a colleague put there may be just what stood there before us, or what we put there: no trace.
                untouched = same(stands, self.first[r.partition]) or self.memory.of("billing").own[
                    r.target_partition
                ].is_ours(stands)
                assert author != self.COLLEAGUE or untouched, "never over somebody else's write"
            if stands is not None and r.target_offset < stands.offset:
                own = self.memory.of("billing").own.get(r.target_partition)
                assert own is not None and own.is_ours(stands), "never back, but for our own write"
        if verdict.refused is None:  # type: ignore[attr-defined]
            to_set = {r.partition for r in verdict.to_set}  # type: ignore[attr-defined]
            for r in rows:
                assert r.partition in to_set or self.target[r.partition] == r.target_commit
                if r.partition not in to_set:
                    age_ms = self.now_ms - self.made_ms[r.partition]
                    assert age_ms < ALLOWED.refresh_ms, "a write that was not made never counts as a refresh"
        elif verdict.refused.reason == WhyNot.WRITTEN:  # type: ignore[attr-defined]
            assert self.seen_foreign, "what retention takes is nobody else's write"
        self.seen_alive |= self.alive

    def prove(self, proven: Mapping[TopicPartition, Commit]) -> None:
        if proven:
            places = sorted(proven)
            self.note("outcome", **by_partition(places, status=[SET], code=[""], message=[""]))

    def write(self, rows: tuple[Row, ...], standing: Mapping[TopicPartition, Commit], ends: str) -> None:
        places = [TopicPartition("A.orders", p) for p in (0, 1)]
        self.first = self.first or {p: self.target.get(p) for p in (0, 1)}
        stood = [standing.get(place) for place in places]
        self.note("backup", **by_partition(
            places, offset=[None if c is None else c.offset for c in stood], metadata=[""],
        ))  # fmt: skip
        self.note("intent", **planned_columns({r.target_partition: r.target_commit for r in rows}))
        if ends not in ("unknown-not-made", "refused", "killed-before"):
            for r in rows:
                self.made_ms[r.partition] = self.now_ms
                self.target[r.partition], self.authors[r.partition] = r.target_commit, self.FOLLOW
        told = {"answered": (SET, ""), "unknown": (UNKNOWN, "_TIMED_OUT"), "unknown-not-made": (FAILED, "_TIMED_OUT"),
                "refused": (FAILED, "NOT_SENT")}  # fmt: skip
        if ends in told:
            status, code = told[ends]
            asked = [r.target_partition for r in rows]
            self.note("outcome", **by_partition(asked, status=[status], code=[code], message=[""]))

    @invariant()
    def all_that_may_stand_there_of_ours_is_remembered_and_so_is_what_stood_there_first(self) -> None:
        memory = self.memory.of("billing")
        for p, author in self.authors.items():
            if author == self.FOLLOW:
                assert memory.own[TopicPartition("A.orders", p)].is_ours(self.target[p])
        for p, commit in self.first.items():
            assert same(memory.prior[TopicPartition("A.orders", p)], commit)


def normal(memory: FollowMemory) -> object:
    return {
        group: (g.prior, {p: (o.all, o.written_ms, o.since_ms) for p, o in g.own.items() if o.all}, g.left)
        for group, g in memory.groups.items()
    }


TestLifeOfAFollow = LifeOfAFollow.TestCase
TestLifeOfAFollow.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
