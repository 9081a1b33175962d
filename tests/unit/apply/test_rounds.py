"""What a journal says of places that were written in several rounds, each with a value of its own."""

import pytest

from migrate.apply.history import FAILED, SET, UNKNOWN, by_partition, read_history, sealed
from migrate.model import Commit
from tests.unit.journals import FINGERPRINT, P0, P1

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
