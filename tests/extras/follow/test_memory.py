"""What is remembered of our own writes, event by event, and that a short journal remembers the same."""

import pytest

from migrate.apply.history import FAILED, SET, UNKNOWN, by_partition
from migrate.clock import iso
from migrate.extras.follow.journal import FollowMemory, OwnWrites, planned_columns, same
from migrate.model import Commit, TopicPartition

P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)
BEGIN = {"event": "begin", "command": "follow", "pid": 7, "host": "night", "time": iso(1)}


def intent(offset: int, place: TopicPartition = P0, metadata: str = "", at_ms: int = 1000) -> dict[str, object]:
    planned = planned_columns({place: Commit(offset, metadata)})
    return {"event": "intent", "group": "g", "time": iso(at_ms), **planned}


def outcome(status: str, code: str = "", place: TopicPartition = P0) -> dict[str, object]:
    return {"event": "outcome", "group": "g", **by_partition([place], status=[status], code=[code], message=[""])}


def backup(offset: int | None, place: TopicPartition = P0) -> dict[str, object]:
    return {"event": "backup", "group": "g", **by_partition([place], offset=[offset], metadata=[""])}


def remembered(*events: dict[str, object]) -> FollowMemory:
    memory = FollowMemory()
    for event in events:
        memory.take(event)
    return memory


def own(*events: dict[str, object]) -> OwnWrites:
    return remembered(*events).of("g").own[P0]


def test_the_first_prior_state_of_each_place_counts_and_later_ones_add_only_places():
    memory = remembered(backup(5), backup(9), backup(None, P1))
    assert memory.of("g").prior == {P0: Commit(5), P1: None}


def test_an_acknowledged_write_takes_the_place_of_all_before_it():
    assert own(intent(1), outcome(SET), intent(2), outcome(SET)).all == (Commit(2),)


def test_a_write_without_an_answer_may_stand_there_and_so_may_the_one_before():
    for events in ([intent(1), outcome(SET), intent(2)], [intent(1), outcome(SET), intent(2), outcome(UNKNOWN)]):
        assert own(*events).all == (Commit(1), Commit(2))


@pytest.mark.parametrize("code", ["NON_EMPTY_GROUP", "NOT_COORDINATOR"])
def test_a_failure_for_sure_leaves_what_stood_there_whatever_its_code(code):
    """A group that could not be read was not written, though of a write the same code would prove nothing."""
    assert own(intent(1), outcome(SET), intent(2), outcome(FAILED, code)).all == (Commit(1),)


def test_a_second_try_that_fails_for_sure_does_not_settle_the_first():
    events = [intent(1), outcome(SET), intent(2), outcome(UNKNOWN), intent(2), outcome(FAILED, "NON_EMPTY_GROUP")]
    assert own(*events).all == (Commit(1), Commit(2))


def test_a_reading_settles_which_of_two_stands_there():
    doubt = [intent(1), outcome(SET), intent(2)]
    assert own(*doubt, intent(1), outcome(SET)).all == (Commit(1),)
    assert own(*doubt, outcome(UNKNOWN), outcome(SET)).all == (Commit(2),)


def test_a_refresh_counts_from_when_it_was_begun_and_only_once_it_is_certain():
    first = [intent(1, at_ms=1000), outcome(SET), intent(1, at_ms=2000)]
    assert own(*first, outcome(SET)).written_ms == 2000
    for not_made in (outcome(FAILED, "NOT_SENT"), outcome(FAILED, "GROUP_AUTHORIZATION_FAILED"), outcome(UNKNOWN)):
        assert own(*first, not_made).written_ms == own(*first).written_ms == 1000


def test_a_reading_dates_a_write_in_doubt_by_its_oldest_try_and_never_by_the_reading():
    tries = [intent(2, at_ms=2000), outcome(UNKNOWN), intent(2, at_ms=3000)]
    assert own(intent(1, at_ms=1000), outcome(SET), *tries, outcome(UNKNOWN), outcome(SET)).written_ms == 2000
    assert own(*tries, outcome(FAILED, "NOT_SENT"), outcome(SET)).written_ms == 2000
    assert own(*tries, outcome(SET)).written_ms == 3000, "the answer is to the newest try"


def test_what_stood_there_before_a_write_in_doubt_does_not_prove_it():
    refresh = own(intent(1), outcome(SET), intent(1))
    assert not refresh.is_proven_by(Commit(1), prior=None)
    assert not own(intent(5)).is_proven_by(Commit(5), prior=Commit(5))
    assert own(intent(1), outcome(SET), intent(5)).is_proven_by(Commit(5), prior=Commit(5)), "ours stood there between"
    assert not own(intent(1), outcome(SET)).is_proven_by(Commit(1), prior=None), "nothing is in doubt"


def test_metadata_counts_and_leader_epochs_do_not():
    write = own(intent(1, metadata="m"), outcome(SET))
    assert write.is_ours(Commit(1, "m", 7)) and not write.is_ours(Commit(1)) and not write.is_ours(None)
    assert same(None, None) and not same(None, Commit(0))


def test_a_rollback_is_no_write_of_ours_and_a_group_is_left_for_its_first_reason():
    left = {"event": "left", "group": "g", "reason": "alive-on-target"}
    memory = remembered(BEGIN, left, {**left, "reason": "other"}, {**BEGIN, "command": "rollback"}, intent(9))
    assert (memory.of("g").left, memory.of("g").own) == ("alive-on-target", {})


def test_what_takes_an_offset_away_is_not_ours():
    event = {"event": "intent", "group": "g", "time": iso(1), **by_partition([P0], offset=[None], metadata=[""])}
    assert remembered(event).of("g").written() == {}


def times(write: OwnWrites) -> tuple[int, int]:
    return write.written_ms, write.answered(SET).written_ms


@pytest.mark.parametrize("events", [
    [backup(5), intent(1), outcome(SET), intent(2, at_ms=77_000)],
    [backup(None), intent(1), outcome(UNKNOWN), intent(2), outcome(UNKNOWN)],
    [intent(1), outcome(SET), intent(1, at_ms=77_000), outcome(UNKNOWN), intent(2, at_ms=88_000)],
    [intent(3, P1, "m"), outcome(SET, place=P1), {"event": "left", "group": "g", "reason": "alive-on-target"}],
])  # fmt: skip
def test_a_snapshot_folds_into_the_same_memory(events):
    before = remembered(BEGIN, *events)
    after = remembered(*({"time": iso(5), **event} for event in before.snapshot()))
    assert after.begun["pid"] == 7
    for memory in (before, after):
        group = memory.of("g")
        told = {place: (write.all, write.certain, *times(write)) for place, write in group.own.items()}
        assert told == {p: (w.all, w.certain, *times(w)) for p, w in before.of("g").own.items()}
        assert (group.prior, group.left) == (before.of("g").prior, before.of("g").left)
