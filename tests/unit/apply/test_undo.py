from hypothesis import given
from hypothesis import strategies as st

from migrate.apply.history import GroupTrace, JournalState
from migrate.apply.undo import undo_plan
from migrate.model import Commit, Commits, Decision, TopicPartition
from migrate.plan.plan import Plan
from tests.unit.plans import plan, row

P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)


def undo(made: Plan, prior: dict[str, Commits], results: dict[TopicPartition, str]) -> Plan:
    planned = {p: r.target_offset for r in made.rows for p in [r.target_partition] if p in results}
    state = JournalState(prior=prior, applied={"g": GroupTrace(planned, results)})
    return undo_plan(made, state, 5, "9")


def test_a_written_row_goes_back_to_where_the_backup_says_it_was_not_to_what_the_plan_saw():
    made = plan(row("g", target_prior=10))
    back = undo(made, {"g": {P0: Commit(12)}}, {P0: "set"})
    (only,) = back.rows
    assert (only.decision, only.target_prior, only.target_offset) == (Decision.SET, 60, 12)
    assert (back.header.kind, back.header.undoes) == ("undo", made.fingerprint)
    assert back.fingerprint != made.fingerprint


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["", "m"])), min_size=1, max_size=4))
def test_a_row_is_undone_alike_whether_or_not_another_of_its_group_was_acknowledged(
    given: list[tuple[int, str]],
):
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
    rows = undo(plan(row("g"), row("g", partition=1)), {"g": {}}, {P0: "unknown", P1: "failed"}).rows
    assert [(r.partition, r.decision, r.target_prior, r.target_offset) for r in rows] == [
        (0, Decision.REMOVE, 60, None)
    ]


def test_metadata_comes_back_with_its_offset_and_what_apply_wrote_is_expected_there():
    made = plan(row("g", target_metadata="new"))
    (only,) = undo(made, {"g": {P0: Commit(10, "AAA=\x00", 7)}}, {P0: "set"}).rows
    assert (only.decision, only.target_commit) == (Decision.SET, Commit(10, "AAA=\x00"))
    assert (only.target_prior, only.target_prior_metadata) == (60, "new")


@given(st.dictionaries(st.integers(0, 30), st.none() | st.integers(0, 100), min_size=1), st.data())
def test_undoing_restores_exactly_the_backup(priors: dict[int, int | None], data: st.DataObject):
    made = plan(*(row("g", partition=p, offset=data.draw(st.integers(0, 100))) for p in priors))
    before = {TopicPartition("A.orders", p): Commit(o) for p, o in priors.items() if o is not None}
    back = undo(made, {"g": before}, {TopicPartition("A.orders", p): "set" for p in priors})
    assert {r.partition: r.target_offset for r in back.rows} == priors
    assert all(r.sentence and r.reason for r in back.rows)
