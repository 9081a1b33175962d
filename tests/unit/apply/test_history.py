"""What a journal tells: the first backup and the newest attempt count, and what may be written is never forgotten."""

import pytest

from migrate.apply.history import APPLY, FAILED, ROLLBACK, SET, UNKNOWN, by_partition, read_history, sealed
from migrate.apply.runs import UNDONE
from migrate.errors import UnreadablePlan
from migrate.model import Commit, Failure
from tests.unit.journals import DENIED, FINGERPRINT, P0, P1, TIMED_OUT, journal, one_group


def test_state_tells_prior_planned_and_results(tmp_path):
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, DENIED)
    state = journal(tmp_path).read()
    assert state.prior == {"g": {P0: Commit(10)}}
    trace = state.applied["g"]
    assert trace.planned == {P0: 60, P1: 61} and trace.results == {P0: FAILED, P1: SET}
    assert trace.written() == {P1} and trace.read_back is None


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([TIMED_OUT, DENIED], UNKNOWN),
        ([DENIED, TIMED_OUT], UNKNOWN),
        ([SET, DENIED], SET),
        ([TIMED_OUT, SET], SET),
        ([DENIED], FAILED),
    ],
)
def test_what_may_have_been_written_is_never_forgotten(tmp_path, answers: list[str | Failure], expected):
    with journal(tmp_path).open(APPLY, {}) as writer:
        writer.intend({"g": {P0: 60}})
        for answer in answers:
            writer.outcome("g", {P0: answer})
    assert journal(tmp_path).read().applied["g"].results == {P0: expected}


def test_a_begun_rollback_spends_the_plan_and_is_traced_apart(tmp_path):
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET)
    assert not journal(tmp_path).read().is_spent
    with journal(tmp_path).open(ROLLBACK, {}) as writer:
        writer.intend({"g": {P0: 10}})
    state = journal(tmp_path).read()
    assert state.is_spent
    assert state.applied["g"].planned == {P0: 60, P1: 61} and state.rolled_back["g"].planned == {P0: 10}


@pytest.mark.parametrize(
    "damage",
    [
        b"[]",
        b"{}",
        b"\xff",
        b'{"event": "intent", "gro',
        b'{"fingerprint":"FP","event":"end"}',
        sealed({"fingerprint": FINGERPRINT, "event": "backup", "group": "g"}),
        sealed({"fingerprint": FINGERPRINT, "event": "x"}),
        *(
            sealed({"time": "2026", "fingerprint": FINGERPRINT, "event": "intent", "group": "g", **columns})
            for columns in (
                {"topic": ["A.orders", "b"], "partition": [0, 1, 2], "offset": [1]},
                {"topic": ["A.orders"], "partition": [0, 1, 2], "offset": [1, 2]},
                {"topic": [], "partition": [0], "offset": [1]},
                {"topic": ["A.orders"], "partition": [0]},
            )
        ),
    ],
)
def test_what_is_no_event_or_has_columns_that_do_not_fit_each_other_is_damage_and_its_line_is_named(tmp_path, damage):
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET)
    path = journal(tmp_path).path
    first, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, damage.replace(b"FP", FINGERPRINT.encode()), b"\n", *others]))
    with pytest.raises(UnreadablePlan, match="Line 2 of the journal .* is damaged"):
        journal(tmp_path).read()


def test_every_flipped_bit_is_damage_and_never_another_offset(tmp_path):
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET)
    path = journal(tmp_path).path
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(UnreadablePlan, match="of the journal .* is damaged"):
            journal(tmp_path).read()


def test_the_journal_of_another_plan_is_not_taken(tmp_path):
    journal(tmp_path).open(APPLY, {}).close()
    with pytest.raises(UnreadablePlan, match="belongs to plan 0123456789abcdef"):
        journal(tmp_path, "f" * 64).read()


def test_a_run_that_noted_its_end_has_its_exit_code_and_one_that_did_not_has_none(tmp_path):
    with journal(tmp_path).open(APPLY, {"source_not_seen": "A is gone."}) as writer:
        writer.end(4, {"set": 1, "failed": 2})
    with journal(tmp_path).open(ROLLBACK, {}):
        pass
    first, second = journal(tmp_path).read().runs
    assert (first.command, first.exit_code, first.counts) == (APPLY, 4, {"set": 1, "failed": 2})
    assert first.began == first.ended == "2023-11-14T22:13:20.123Z" and first.source_not_seen == "A is gone."
    assert (second.command, second.exit_code, second.ended, second.source_not_seen) == (ROLLBACK, None, "", "")


def test_the_last_run_is_told_by_command_and_an_undo_plan_is_a_run_of_its_own_kind(tmp_path):
    for code in (4, 0):
        with journal(tmp_path).open(APPLY, {}) as writer:
            writer.end(code, {})
    last = journal(tmp_path).read().last(APPLY)
    assert last is not None and last.exit_code == 0 and journal(tmp_path).read().last(ROLLBACK) is None
    with journal(tmp_path).open(APPLY, {}) as writer:
        writer.spent("f" * 64)
    undone = journal(tmp_path).read().runs[-1]
    # It is noted before the first write of the undo: when that ended is not known here.
    assert undone.command == UNDONE and not undone.ended and undone.exit_code is None


def test_the_last_answer_and_the_last_reading_count(tmp_path):
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, DENIED)
        writer.read_back("g", False, {P0: None, P1: 61})
    trace = journal(tmp_path).read().applied["g"]
    assert trace.errors == {P0: "GROUP_AUTHORIZATION_FAILED: no"} and trace.seen == {P0: None, P1: 61}
    with journal(tmp_path).open(APPLY, {}) as writer:
        writer.outcome("g", {P0: SET})
        writer.read_back("g", True, {P0: 60, P1: 61})
    trace = journal(tmp_path).read().applied["g"]
    assert trace.errors == {} and trace.seen == {P0: 60, P1: 61}


BEGIN = {"event": "begin", "command": "follow", "pid": 7, "host": "night"}


def intent(offset, place=P0, metadata=""):
    return {"event": "intent", **by_partition([place], offset=[offset], metadata=[metadata])}


def outcome(status, place=P0):
    return {"event": "outcome", **by_partition([place], status=[status], code=[""], message=[""])}


def backup(offset, place=P0):
    return {"event": "backup", **by_partition([place], offset=[offset], metadata=[""])}


def state(*events):
    lines = [sealed({"time": "2026", "group": "g", **event, "fingerprint": FINGERPRINT}) for event in events]
    return read_history(b"\n".join(lines) + b"\n", "journal", FINGERPRINT)


def stands(*events):
    return state(*events).applied["g"].may_stand(P0)


def test_the_first_prior_state_of_each_place_counts_and_later_ones_add_only_places_that_are_written():
    assert state(backup(5), backup(9), backup(7, P1)).prior["g"] == {P0: Commit(5)}
    assert state(backup(5), backup(9), intent(1)).prior["g"] == {P0: Commit(5)}
    written = backup(5), backup(9), backup(7, P1), backup(8, P1), intent(3, P1)
    assert state(*written).prior["g"] == {P0: Commit(5), P1: Commit(7)}
    assert state(*written, backup(6, P1), intent(2, P1)).prior["g"] == {P0: Commit(5), P1: Commit(7)}
    assert state(backup(None), backup(9)).prior["g"] == {}, "nothing was committed there before us"


def test_an_acknowledged_write_takes_the_place_of_all_before_it():
    assert stands(intent(1), outcome(SET), intent(2), outcome(SET)) == (Commit(2),)
    assert stands(intent(1), outcome(UNKNOWN), intent(2), outcome(SET)) == (Commit(2),)


def test_a_write_without_an_answer_may_stand_there_and_so_may_those_before():
    for answers in ([], [outcome(UNKNOWN)]):
        assert stands(intent(1), outcome(SET), intent(2), *answers) == (Commit(1), Commit(2))
        assert stands(intent(1), intent(2), *answers) == (None, Commit(1), Commit(2))
        assert stands(intent(1), *answers) == (None, Commit(1)), "what was there before us may stand there still"


def test_a_failure_for_sure_leaves_what_stood_there():
    failed = intent(1), outcome(SET), intent(2, metadata="m"), outcome(FAILED)
    assert stands(*failed) == (Commit(1),)
    assert stands(*failed, intent(3), outcome(UNKNOWN)) == (Commit(1), Commit(3))
    assert stands(intent(1), outcome(UNKNOWN), intent(2), outcome(FAILED)) == (None, Commit(1))
    assert stands(intent(1), outcome(FAILED)) == (None,)
    assert state(*failed).applied["g"].is_certain(P0)


def test_a_second_try_that_fails_for_sure_does_not_settle_the_first():
    events = [intent(1), outcome(SET), intent(2), outcome(UNKNOWN), intent(2), outcome(FAILED)]
    assert stands(*events) == (Commit(1), Commit(2))
    assert stands(intent(1), outcome(SET), intent(2), intent(2), outcome(FAILED)) == (Commit(1), Commit(2))


def test_a_reading_settles_which_of_two_stands_there():
    doubt = [intent(1), outcome(SET), intent(2)]
    assert stands(*doubt, intent(1), outcome(SET)) == (Commit(1),)
    assert stands(*doubt, outcome(UNKNOWN), outcome(SET)) == (Commit(2),)


@pytest.mark.parametrize(("answer", "left"), [(SET, 1), (UNKNOWN, 2), (FAILED, 1)])
def test_a_value_that_is_written_again_is_a_round_of_its_own(answer, left):
    assert stands(intent(1), outcome(SET), intent(1), outcome(answer)) == (Commit(1),) * left


def test_metadata_is_of_its_round_and_other_places_are_as_they_were():
    trace = state(intent(1, metadata="m"), outcome(SET), intent(1), intent(4, P1, "n")).applied["g"]
    assert trace.may_stand(P0) == (Commit(1, "m"), Commit(1)) and trace.may_stand(P1) == (None, Commit(4, "n"))


def test_the_first_note_of_a_group_counts_and_is_of_no_command():
    note = {"event": "note", "text": "first"}
    assert state(BEGIN, note, {**note, "text": "second"}).notes == {"g": "first"} and not state(note).applied
