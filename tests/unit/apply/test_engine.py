"""Whole runs of apply and rollback on a cluster in memory, and undo plans: what is written, left, and how it ends."""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.apply.assess import Fate
from migrate.apply.engine import ApplyResult
from migrate.apply.history import APPLY, FAILED, ROLLBACK, SET, UNKNOWN, GroupTrace, JournalState
from migrate.apply.outcome import RowStatus
from migrate.apply.undo import Elsewhere, as_planned, look_elsewhere, outside, undo_plan
from migrate.apply.write import WINDOWS_PER_CHUNK
from migrate.errors import Refused
from migrate.model import CheckResult, Commit, Commits, Decision, Failure, Level, TopicPartition
from migrate.plan.plan import RESTORE_MOVED, Plan
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from tests.builders import make_check
from tests.fakes import ALIVE, FakeClock, FakeGroupFacts, NoProgress, Script
from tests.unit.answers import DENIED, MOVED
from tests.unit.applyscene import Scene, statuses, text
from tests.unit.plans import plan, row

P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)
NO_JAVA = Failure("JAVA_CLIENT_MISSING", "Java was not found")
PRIOR_OF_A, PLANNED_OF_A = ({("A.orders", 0): o, ("A.orders", 1): o + 1} for o in (10, 60))
TWO_ROWS = row("a", target_prior=10), row("a", partition=1)


@pytest.fixture
def chunks(tmp_path: Path) -> Scene:
    """Groups that with a window of one group are written in three chunks."""
    return Scene(plan(*(row(f"g{n:02}", offset=70 + n) for n in range(3 * WINDOWS_PER_CHUNK))), tmp_path)


def reasons(result: ApplyResult) -> str:
    return "\n".join(reason for g in result.assessment.groups for reason in g.reasons)


def accepting(check: str) -> CheckResult:
    return make_check(check, "a", level=Level.WARN, accepted=True)


def test_a_dry_run_writes_nothing_and_apply_sets_every_row_once_even_when_consumers_have_started(scene, tmp_path):
    result = scene.apply(execute=False)
    assert (result.exit_code, result.executed) == (0, False) and set(statuses(result).values()) == {RowStatus.PLANNED}
    assert scene.target.writes == 0 and list(tmp_path.iterdir()) == [], "not even a journal"
    signed = [{"time": "2026-11-21T02:00:00.000Z", "name": "Ada", "note": ""}]
    result = scene.apply(details={"signatures": signed})
    assert result.exit_code == 0 and set(statuses(result).values()) == {RowStatus.SET}
    assert scene.target.held("a") == PLANNED_OF_A
    assert scene.target.held("b") == {("A.orders", 0): 70, ("A.bills", 0): 71}
    assert all(trace.read_back for trace in scene.journal.read().applied.values())
    assert [r.seen for r in result.rows] == [r.target_offset for r in scene.plan.rows]
    assert json.loads(scene.journal.path.read_text().splitlines()[0])["signatures"] == signed
    writes = scene.target.writes
    scene.target.states["a"] = ALIVE
    scene.target.commit("a", *P0, 90)
    again = scene.apply()
    assert again.exit_code == 0 and set(statuses(again).values()) == {RowStatus.ALREADY, RowStatus.MOVED_ON}
    assert statuses(again)["a", "orders", 0] is RowStatus.MOVED_ON and scene.target.writes == writes


def test_an_offset_of_0_is_set_like_any_other(tmp_path):
    scene = Scene(plan(row("a", offset=0), row("a", partition=1, target_prior=0)), tmp_path)
    assert scene.apply().exit_code == 0 and scene.target.held("a") == {("A.orders", 0): 0, ("A.orders", 1): 60}
    assert scene.rollback().exit_code == 0 and scene.target.held("a") == {("A.orders", 1): 0}


def test_a_blocked_group_stops_everything_and_allow_partial_leaves_out_whole_groups_and_exits_4(tmp_path):
    blocked = row("b", decision=Decision.BLOCK, reason="rewind", sentence="It would rewind.")
    scene = Scene(plan(row("a"), blocked, row("b", partition=1), row("c")), tmp_path)
    result = scene.apply()
    assert result.exit_code == 3 and scene.target.writes == 0 and list(tmp_path.iterdir()) == []
    assert reasons(result) == "b/orders/0: rewind: It would rewind."
    assert statuses(result)["a", "orders", 0] is RowStatus.PLANNED
    assert statuses(result)["b", "orders", 1] is RowStatus.LEFT_OUT
    scene.target.states["c"] = ALIVE
    result = scene.apply(allow_partial=True)
    assert result.exit_code == 4 and "app@10.0.0.7" in reasons(result)
    fates = {g.group: g.fate for g in result.assessment.groups}
    assert fates == {"a": Fate.WRITE, "b": Fate.BLOCKED, "c": Fate.DRIFTED}
    assert scene.target.held("a") and not scene.target.held("b") and not scene.target.held("c")
    assert set(scene.journal.read().prior) == {"a"}
    assert scene.apply(allow_partial=True, execute=False).exit_code == 4
    scene = Scene(plan(row("c")), tmp_path)
    scene.target.states["c"] = ALIVE
    assert scene.apply(allow_partial=True).exit_code == 3, "nothing is left to write"


def test_what_was_read_back_is_in_the_journal_while_other_groups_are_still_waited_for(scene):
    """Or a run that is killed then would take consumers that have moved on for another client's commits."""
    noted = list[set[str]]()

    def look(call):
        if call == "alter":
            scene.target.script("commits", "c", Script(MOVED), Script(MOVED))
        elif call == "commits" and scene.target.calls["alter"]:
            noted.append({group for group, trace in scene.journal.read().applied.items() if trace.read_back})

    scene.target.on_call = look
    assert scene.apply().exit_code == 0
    assert noted == [set(), {"a", "b"}, {"a", "b"}]


@pytest.mark.parametrize(("there", "told"), [((60, "tim"), "60 with other metadata"), ((99, ""), "99")])
def test_an_offset_that_somebody_overwrote_at_once_is_a_failure(tmp_path, there, told):
    scene = Scene(plan(row("a", target_metadata="time", source_metadata="time")), tmp_path)
    scene.target.when("commits", lambda: scene.target.commit("a", *P0, *there), once_written=True)
    result = scene.apply()
    assert result.exit_code == 4 and statuses(result)["a", "orders", 0] is RowStatus.FAILED
    assert f"read back {told} instead of 60" in result.rows[0].detail
    assert not text(result).startswith("FAILED: no offset was set"), "it was acknowledged"
    assert scene.apply().exit_code == 3


# --- many groups ------------------------------------------------------------------------------------------


def test_intents_go_to_disk_in_chunks_of_at_most_500_groups(tmp_path):
    scene = Scene(plan(*(row(f"g{n:04}") for n in range(1100))), tmp_path)
    assert scene.apply(concurrency=1000).exit_code == 0
    assert scene.target.widest_alter == 500 and scene.target.calls["alter"] == 3


def test_a_group_that_nobody_answers_for_is_tried_with_fresh_clients_for_so_long_and_holds_up_no_other(chunks):
    chunks.target.script("alter", "g00", *[Script(MOVED)] * 1000)
    result = chunks.apply(concurrency=1, group_timeout_seconds=30)
    assert result.exit_code == 4 and 29 <= chunks.clock.waited <= 30 and chunks.target.clients > 5
    assert Counter(statuses(result).values()) == {RowStatus.SET: 14, RowStatus.UNKNOWN: 1}
    assert "NOT_COORDINATOR" in result.rows[0].detail


def test_a_cluster_that_is_gone_ends_the_run_and_every_row_is_told(chunks):
    chunks.target.when("alter", lambda: setattr(chunks.target, "down", True))
    result = chunks.apply(concurrency=1, group_timeout_seconds=30)
    assert result.exit_code == 4 and 30 <= chunks.clock.waited <= 61
    assert set(statuses(result).values()) == {RowStatus.UNKNOWN} and len(chunks.undo().rows) == 15
    chunks.target.down = False
    chunks.target.calm()
    assert chunks.apply().exit_code == 0


def test_interrupted_it_takes_the_answers_of_what_is_in_flight_and_reads_back(chunks):
    chunks.target.when("alter", lambda: chunks.target.writes or os.kill(os.getpid(), signal.SIGINT))
    handler_before = signal.getsignal(signal.SIGINT)
    result = chunks.apply(concurrency=1)
    assert result.exit_code == 4 and "interrupted" in result.trouble
    told = Counter(statuses(result).values())
    assert told[RowStatus.SET] >= 5 and told[RowStatus.SET] + told[RowStatus.PLANNED] == 15
    assert all(set(t.results.values()) == {SET} for t in chunks.journal.read().applied.values())
    assert signal.getsignal(signal.SIGINT) is handler_before
    chunks.target.calm()
    assert chunks.apply().exit_code == 0


def test_an_unexpected_fault_is_an_unknown_outcome_that_the_next_run_goes_on_from(chunks):
    def fail(call):
        if call == "alter" and chunks.target.calls["alter"] == 1:
            raise RuntimeError("bug")

    chunks.target.on_call = fail
    result = chunks.apply(concurrency=1, group_timeout_seconds=0.0)
    unknown = [r for r in result.rows if r.status is RowStatus.UNKNOWN]
    assert result.exit_code == 4 and len(unknown) == WINDOWS_PER_CHUNK and "RuntimeError: bug" in unknown[0].detail
    chunks.target.calm()
    assert chunks.apply().exit_code == 0


# --- the way back -----------------------------------------------------------------------------------------


def test_rollback_restores_offsets_deletes_a_group_that_had_none_and_spends_the_plan(scene):
    before = {g: scene.target.held(g) for g in "abc"}
    scene.apply()
    assert scene.rollback(execute=False).exit_code == 0 and scene.apply().exit_code == 0
    result = scene.rollback()
    assert result.exit_code == 0
    assert {g: scene.target.held(g) for g in "abc"} == before and "b" not in scene.target.groups()
    assert scene.target.calls["missing_capability"] == 0, "every client can write and undo that"
    assert statuses(result)["b", "orders", 0] is RowStatus.REMOVED
    assert statuses(result)["a", "orders", 1] is RowStatus.SET
    with pytest.raises(Refused, match="is spent: a rollback of it has begun"):
        scene.apply(execute=False)


def test_rollback_of_what_consumers_moved_on_is_refused_with_how_far_and_restores_it_where_it_is_told_to(scene):
    scene.apply()
    for place, offset in ((("a", "A.orders", 0), 75), (("a", "A.orders", 1), 4), (("b", "A.bills", 0), 80)):
        scene.target.commit(*place, offset)
    result = scene.rollback()
    assert result.exit_code == 3
    assert "moved on by 15 since: a consumer or another client has committed there" in reasons(result)
    assert scene.rollback(allow_partial=True).exit_code == 4
    assert scene.target.held("a")["A.orders", 0] == 75 and scene.target.held("c") == {("A.orders", 0): 30}
    for result in (scene.rollback(moved=RESTORE_MOVED, execute=False), scene.rollback(moved=RESTORE_MOVED)):
        assert result.exit_code == 0
        said = text(result)
        assert "restored all the same: 65 records are read again, 7 ARE SKIPPED" in said
        assert "a A.orders:0: apply set 60, now 75; back to 10" in said
        assert "a A.orders:1: apply set 61, now 4; back to 11" in said
        assert "b A.bills:0: apply set 71, now 80; its offset is removed: auto.offset.reset decides" in said
    assert scene.target.held("a") == PRIOR_OF_A and "b" not in scene.target.groups()


def test_a_rollback_that_needs_a_client_that_is_not_there_is_refused_before_the_first_write(tmp_path):
    scene = Scene(plan(row("b"), row("c", target_prior=5)), tmp_path)
    scene.apply()
    scene.target.commit("b", "local", 0, 7)
    scene.target.lacking = NO_JAVA
    writes = scene.target.writes
    result = scene.rollback()
    assert result.exit_code == 3 and scene.target.writes == writes
    assert "b/orders/0: this one offset of its group is removed, others stay" in reasons(result)
    assert "JAVA_CLIENT_MISSING: Java was not found" in reasons(result)
    assert scene.rollback(allow_partial=True).exit_code == 4
    assert scene.target.held("b") == {("A.orders", 0): 60, ("local", 0): 7}
    scene.target.lacking = None
    result = scene.rollback()
    assert result.exit_code == 0 and scene.target.calls["delete"] == 0
    assert scene.target.held("b") == {("local", 0): 7} and scene.target.held("c") == {("A.orders", 0): 5}
    assert statuses(result)["b", "orders", 0] is RowStatus.REMOVED


def test_the_client_that_apply_or_its_rollback_needs_is_tried_before_the_first_write(tmp_path):
    made = plan(
        *TWO_ROWS, row("b", target_prior=10, target_prior_metadata="m"), row("c"),
        row("d", source_metadata="m", target_metadata="m"),
    )  # fmt: skip
    scene = Scene(made, tmp_path)
    scene.target.lacking = NO_JAVA
    result = scene.apply()
    assert result.exit_code == 3 and scene.target.writes == 0 and not scene.journal.path.exists()
    refused = {g.group: g.reasons[0] for g in result.assessment.refused}
    assert "a/orders/1: a rollback has to remove this one offset of its group" in refused["a"]
    assert "b/orders/0: a rollback has to write the prior offset's metadata" in refused["b"]
    assert "d/orders/0: it is set with metadata" in refused["d"] and "Java was not found" in refused["d"]
    assert "c" not in refused
    assert scene.apply(allow_partial=True).exit_code == 4 and scene.target.held("c") and not scene.target.held("d")


@pytest.mark.parametrize(
    ("rows", "place"),
    [([row("a")], ("local", 0)), (TWO_ROWS, ("A.orders", 0)), (TWO_ROWS, ("A.orders", 1))],
    ids=["before its deletion", "before one is restored", "before one is removed"],
)
def test_a_group_that_changes_between_the_look_and_its_restoring_is_left_as_it_is_with_all_its_rows(
    tmp_path, rows, place
):
    scene, reads = Scene(plan(*rows), tmp_path), list[int]()
    scene.apply()
    before = scene.target.held("a")

    def somebody_commits():
        reads.append(1)
        if len(reads) == 2:
            scene.target.commit("a", *place, 77)

    scene.target.when("commits", somebody_commits)
    assert scene.rollback().exit_code == 1
    assert scene.target.calls["delete"] == 0 and scene.target.held("a") == before | {place: 77}


def test_a_rollback_refused_for_another_run_does_not_spend_the_plan(scene):
    assert scene.apply().exit_code == 0
    before = scene.journal.read()
    scene.journal.open(APPLY, {}).close()
    with pytest.raises(Refused, match="Another run"):
        scene.journal.open(ROLLBACK, {}, before.events)
    assert not scene.journal.read().is_spent


# --- what is looked at beside the offsets -----------------------------------------------------------------


def test_a_source_group_whose_open_transaction_was_accepted_is_compared_by_what_is_committed(tmp_path):
    for checks, exit_code in (((accepting("pending-transactions"),), 0), ((), 3)):
        scene = Scene(plan(row("a"), checks=checks), tmp_path)
        scene.source.unstable = {"a"}
        assert scene.apply(execute=False).exit_code == exit_code


def emptied(scene: Scene, group: str, hours_ago: int) -> FakeGroupFacts:
    since = scene.clock.now_ms() - hours_ago * 3_600_000
    return FakeGroupFacts(records={group: GroupRecord(GroupKind.CLASSIC, "consumer", since)})


@pytest.mark.parametrize(
    ("told", "notes"),
    [
        (lambda scene: FakeGroupFacts(), ["if the offsets are set at 2023-11-14 22:13 UTC"]),
        (lambda scene: emptied(scene, "a", 100), ["a: consumers must be back on B by"]),
        (lambda scene: FakeGroupFacts(records=DENIED), ["unknown for a, c", "may be minutes"]),
    ],
    ids=["reckoned from the apply", "reckoned from the last member", "nobody can tell"],
)
def test_a_dry_run_and_a_run_say_by_when_the_consumers_must_be_back(scene, told, notes):
    scene.groups = told(scene)
    for result in (scene.apply(execute=False), scene.apply()):
        assert result.exit_code == 0 and all(note in "\n".join(result.assessment.notes) for note in notes)
    assert set(scene.groups.asked) == {"a", "c"}, "b is not on the target: its clock starts with the apply"


def test_a_group_whose_offsets_would_soon_be_gone_is_refused_when_it_is_written_unless_it_is_done_or_the_plan_took_it(
    scene, tmp_path
):
    soon = emptied(scene, "a", 167)
    accepted = Scene(plan(row("a", target_prior=10), checks=(accepting("offsets-expiry"),)), tmp_path, groups=soon)
    assert accepted.apply().exit_code == 0
    scene.groups = soon
    result = scene.apply()
    assert result.exit_code == 3 and scene.target.writes == 0
    assert "a: offsets-expiry" in reasons(result) and "must be back on B by" in reasons(result)
    assert scene.apply(allow_partial=True).exit_code == 4 and scene.target.held("a") == PRIOR_OF_A
    scene.groups = None
    assert scene.apply().exit_code == 0
    scene.groups = emptied(scene, "a", 167)
    assert scene.apply().exit_code == 0 and scene.rollback().exit_code == 0
    assert scene.groups.asked == [], "of groups that are done, and by a rollback, nothing is asked"


def test_groups_that_mm2_writes_by_now_are_refused_unless_the_plan_accepted_it(scene, tmp_path):
    result = scene.apply(synced=frozenset({"a"}), allow_partial=True)
    assert result.exit_code == 4 and scene.target.held("a") == PRIOR_OF_A
    (refused,) = result.assessment.refused
    assert refused.group == "a" and "group-sync" in refused.reasons[0] and "KAFKA-19794" in refused.reasons[0]
    accepted = Scene(plan(row("a", target_prior=10), checks=(accepting("group-sync"),)), tmp_path)
    assert accepted.apply(synced=frozenset({"a"})).exit_code == 0


# --- undo plans -------------------------------------------------------------------------------------------


def undo(made: Plan, prior: dict[str, Commits], results: dict[TopicPartition, str]) -> Plan:
    planned = {p: r.target_offset for r in made.rows for p in [r.target_partition] if p in results}
    state = JournalState(prior=prior, applied={"g": GroupTrace(planned, results)})
    return undo_plan(made, state, 5, "9")


answers = st.sampled_from([SET, UNKNOWN, FAILED])
commits = st.none() | st.tuples(st.integers(0, 100), st.sampled_from(["", "m"])).map(lambda told: Commit(*told))


@given(st.dictionaries(st.integers(0, 30), st.tuples(commits, st.integers(0, 100), answers), min_size=1))
def test_undoing_restores_exactly_the_backup_of_each_row_that_may_have_been_written(given):
    made = plan(*(row("g", partition=p, offset=planned) for p, (_, planned, _) in given.items()), row("g", "bills"))
    of = {TopicPartition("A.orders", p): each for p, each in given.items()}
    before = {place: commit for place, (commit, _, _) in of.items() if commit is not None}
    back = undo(made, {"g": before}, {place: answer for place, (_, _, answer) in of.items()})
    undone = {place: each for place, each in of.items() if each[2] != FAILED}
    assert {r.target_partition: (r.target_commit, r.target_prior) for r in back.rows} == {
        place: (commit, planned) for place, (commit, planned, _) in undone.items()
    }
    told = {r.target_partition: (r.needs_acknowledgement, r.decision is Decision.REMOVE) for r in back.rows}
    assert told == {place: (answer == UNKNOWN, commit is None) for place, (commit, _, answer) in undone.items()}
    assert (back.header.kind, back.header.undoes) == ("undo", made.fingerprint)
    assert all(r.sentence and r.reason for r in back.rows)


def look(scene: Scene) -> Elsewhere:
    return look_elsewhere(scene.plan, scene.plan.rows, scene.target, FakeClock(), 10.0, NoProgress())


def test_rows_that_another_folder_has_set_are_outside_of_this_journal_and_found(scene):
    to_set = [r.key for r in scene.plan.rows if r.decision == "set"]
    assert [r.key for r in outside(scene.plan, JournalState())] == to_set
    assert not look(scene), "they are still at their prior offsets"
    scene.apply()
    assert outside(scene.plan, scene.journal.read()) == ()
    found = look(scene)
    assert [r.key for r in found.rows] == to_set and not found.unread
    made = plan(row("g"), row("g", partition=1), row("h"))
    in_part = JournalState(applied={"g": GroupTrace({P0: 60}, {P0: "set"})})
    assert [r.key for r in outside(made, in_part)] == [("g", "orders", 1), ("h", "orders", 0)]


def test_an_offset_that_was_there_before_counts_only_with_the_planned_metadata():
    planned = row("g", offset=60, target_prior=60, target_metadata="new", target_prior_metadata="old")
    assert as_planned([planned], {"g": {P0: Commit(60, "old")}}) == as_planned([planned], {}) == ()
    assert as_planned([planned], {"g": {P0: Commit(60, "new")}}) == (planned,)


def test_what_cannot_be_read_is_named_with_the_reason_and_another_cluster_is_refused(scene):
    scene.target.script("commits", "a", Script(DENIED))
    found = look(scene)
    assert found.unread == ("a",) and "GROUP_AUTHORIZATION_FAILED" in found.why
    scene.target.cluster_id = "another"
    with pytest.raises(Refused, match="another"):
        look(scene)
    scene.target.down = True
    found = look(scene)
    assert found.unread == ("a", "b", "c") and found.why
