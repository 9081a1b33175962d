"""The undo of a plan: what goes back, and what it cannot take back, being written elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.apply.history import GroupTrace, JournalState
from migrate.apply.undo import Elsewhere, as_planned, look_elsewhere, outside, undo_plan
from migrate.errors import Refused
from migrate.model import Commit, Commits, Decision, TopicPartition
from migrate.plan.plan import Plan
from tests.fakes import FakeClock, NoProgress, Script
from tests.unit.answers import DENIED
from tests.unit.applyscene import Scene
from tests.unit.plans import plan, row

P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)


def undo(made: Plan, prior: dict[str, Commits], results: dict[TopicPartition, str]) -> Plan:
    planned = {p: r.target_offset for r in made.rows for p in [r.target_partition] if p in results}
    state = JournalState(prior=prior, applied={"g": GroupTrace(planned, results)})
    return undo_plan(made, state, 5, "9")


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["", "m"])), min_size=1, max_size=4))
def test_a_row_is_undone_alike_whether_or_not_another_of_its_group_was_acknowledged(given: list[tuple[int, str]]):
    rows = [row("g", partition=p, offset=o, target_metadata=m) for p, (o, m) in enumerate(given)]
    last = row("g", partition=len(rows))
    certain: dict[TopicPartition, str] = dict.fromkeys([r.target_partition for r in rows], "set")
    whole = undo(plan(*rows, last), {"g": {}}, certain | {last.target_partition: "set"}).rows
    other = undo(plan(*rows, last), {"g": {}}, certain | {last.target_partition: "unknown"}).rows
    assert whole[:-1] == other[:-1] and whole[-1] != other[-1]
    assert undo(plan(*rows, last), {"g": {}}, certain).rows == whole[:-1]


def test_what_was_never_reached_or_failed_for_sure_is_not_in_the_undo():
    assert undo(plan(row("g"), row("other")), {"g": {}}, {P0: "set"}).groups().keys() == {"g"}
    assert undo_plan(plan(row("g")), JournalState(), 0, "9").rows == ()
    (r,) = undo(plan(row("g"), row("g", partition=1)), {"g": {}}, {P0: "unknown", P1: "failed"}).rows
    assert (r.partition, r.decision, r.target_prior, r.target_offset) == (0, Decision.REMOVE, 60, None)


@given(st.dictionaries(st.integers(0, 30), st.none() | st.integers(0, 100), min_size=1), st.data())
def test_undoing_restores_exactly_the_backup(priors: dict[int, int | None], data: st.DataObject):
    made = plan(*(row("g", partition=p, offset=data.draw(st.integers(0, 100))) for p in priors))
    before = {TopicPartition("A.orders", p): Commit(o) for p, o in priors.items() if o is not None}
    back = undo(made, {"g": before}, {TopicPartition("A.orders", p): "set" for p in priors})
    assert {r.partition: r.target_offset for r in back.rows} == priors
    assert [r.target_prior for r in back.rows] == [r.target_offset for r in made.rows], "what apply set is expected"
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
