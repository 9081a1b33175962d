"""A journal: who may read it, what a crash leaves of it, and what it tells: what may be written is not forgotten."""

import json
import os
import resource
import stat

import pytest

from migrate.apply.history import APPLY, FAILED, ROLLBACK, SET, UNKNOWN, by_partition, read_history, sealed
from migrate.apply.journal import Journal
from migrate.apply.runs import UNDONE
from migrate.errors import MigrateError, UnreadablePlan
from migrate.model import Commit
from tests.unit.journals import DENIED, FINGERPRINT, P0, P1, journal, one_group


@pytest.fixture
def mine(tmp_path) -> Journal:
    return journal(tmp_path)


@pytest.fixture
def applied(tmp_path) -> Journal:
    """The journal of an apply that set both partitions of g."""
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET)
    return journal(tmp_path)


def test_it_is_its_owners_only_every_event_has_time_and_fingerprint_and_names_that_are_not_utf8_survive(mine):
    old, odd = os.umask(0), b"g\xff".decode("utf-8", "surrogateescape")
    try:
        with mine.open(APPLY, {"approved": "0123456789ab"}) as writer:
            one_group(writer, DENIED, odd)
            writer.read_back(odd, False, {P0: None})
            writer.end(4, {"set": 1})
    finally:
        os.umask(old)
    assert stat.S_IMODE(mine.path.stat().st_mode) == 0o600
    events = [json.loads(line) for line in mine.path.read_text().splitlines()]
    assert [e["event"] for e in events] == ["begin", "backup", "intent", "outcome", "readback", "end"]
    assert {(e["time"], e["fingerprint"]) for e in events} == {("2023-11-14T22:13:20.123Z", FINGERPRINT)}
    assert events[0]["approved"] == "0123456789ab" and events[0]["pid"] == os.getpid()
    places = {"topic": ["A.orders"], "partition": [0, 1]}
    assert events[1].items() >= {**places, "offset": [10, None], "metadata": [""]}.items()
    assert set(mine.read().prior) == {odd}


def test_every_torn_last_line_is_dropped_and_the_rest_is_kept(applied):
    whole = applied.path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(last + 1, len(whole)):
        applied.path.write_bytes(whole[:cut])
        state = applied.read()
        assert state.torn and state.applied["g"].written() == {P0, P1}
    with applied.open(APPLY, {}) as writer:
        assert writer.before.torn is False
    state = applied.read()
    assert not state.torn and state.events == 4


def test_a_begin_that_finds_no_folder_or_no_room_changes_nothing_and_leaves_the_journal_as_it_was_or_none(mine):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fails(at: Journal, room: int):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            with pytest.raises(MigrateError, match="Nothing was changed"):
                at.open(APPLY, {})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    fails(Journal(mine.path.parent / "gone" / "p.journal.jsonl", FINGERPRINT, lambda: 0), soft)
    fails(mine, 10)
    assert not mine.path.exists()
    mine.open(APPLY, {}).close()
    before = mine.path.read_bytes()
    fails(mine, len(before) + 10)
    assert mine.path.read_bytes() == before


# --- what it tells --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        b"\xff",
        b'{"fingerprint":"%s","event":"end"}' % FINGERPRINT.encode(),
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
def test_what_is_no_event_or_has_columns_that_do_not_fit_each_other_is_damage_and_its_line_is_named(applied, damage):
    first, *others = applied.path.read_bytes().splitlines(keepends=True)
    applied.path.write_bytes(b"".join([first, damage, b"\n", *others]))
    with pytest.raises(UnreadablePlan, match="Line 2 of the journal .* is damaged"):
        applied.read()


def test_every_flipped_bit_is_damage_and_never_another_offset(applied):
    whole = applied.path.read_bytes()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        applied.path.write_bytes(flipped)
        with pytest.raises(UnreadablePlan, match="of the journal .* is damaged"):
            applied.read()


def test_the_journal_of_another_plan_is_not_taken(applied, tmp_path):
    with pytest.raises(UnreadablePlan, match="belongs to plan 0123456789abcdef"):
        journal(tmp_path, "f" * 64).read()


def test_each_run_is_told_by_its_command_with_its_end_or_without_and_an_undo_plan_is_of_its_own_kind(mine):
    for code in (4, 0):
        with mine.open(APPLY, {"source_not_seen": "A is gone."}) as writer:
            writer.end(code, {"set": 1, "failed": 2})
    first, last = mine.read().runs
    assert (first.command, first.exit_code, first.counts) == (APPLY, 4, {"set": 1, "failed": 2})
    assert first.began == first.ended == "2023-11-14T22:13:20.123Z" and first.source_not_seen == "A is gone."
    assert mine.read().last(APPLY) == last and last.exit_code == 0 and mine.read().last(ROLLBACK) is None
    with mine.open(APPLY, {}) as writer:
        writer.spent("f" * 64)
    mine.open(ROLLBACK, {}).close()
    # An undo is noted before its first write: when it ended is not known here.
    told = [(run.command, run.exit_code, run.ended, run.source_not_seen) for run in mine.read().runs[2:]]
    assert told == [(UNDONE, None, "", ""), (ROLLBACK, None, "", "")]


def intent(offset, place=P0, metadata=""):
    return {"event": "intent", **by_partition([place], offset=[offset], metadata=[metadata])}


def outcome(status):
    return {"event": "outcome", **by_partition([P0], status=[status], code=[""], message=[""])}


def backup(offset, place=P0):
    return {"event": "backup", **by_partition([place], offset=[offset], metadata=[""])}


def state(*events):
    lines = [sealed({"time": "2026", "group": "g", **event, "fingerprint": FINGERPRINT}) for event in events]
    return read_history(b"\n".join(lines) + b"\n", "journal", FINGERPRINT)


def test_the_first_prior_state_of_each_place_counts_and_later_ones_add_only_places_that_are_written():
    assert state(backup(5), backup(9), backup(7, P1)).prior["g"] == {P0: Commit(5)}
    assert state(backup(5), backup(9), intent(1)).prior["g"] == {P0: Commit(5)}
    written = backup(5), backup(9), backup(7, P1), backup(8, P1), intent(3, P1)
    assert state(*written).prior["g"] == {P0: Commit(5), P1: Commit(7)}
    assert state(*written, backup(6, P1), intent(2, P1)).prior["g"] == {P0: Commit(5), P1: Commit(7)}
    assert state(backup(None), backup(9)).prior["g"] == {}, "nothing was committed there before us"


DOUBT = [intent(1), outcome(SET), intent(2)]
FAILS = [*DOUBT[:2], intent(2, metadata="m"), outcome(FAILED)]


@pytest.mark.parametrize(
    ("events", "stands"),
    [
        # An acknowledged write takes the place of all before it.
        ([*DOUBT, outcome(SET)], [2]),
        # A write without an answer may stand there, and so may those before, and what was there before us.
        (DOUBT, [1, 2]),
        ([*DOUBT, outcome(UNKNOWN)], [1, 2]),
        ([intent(1), intent(2)], [None, 1, 2]),
        ([intent(1)], [None, 1]),
        # A failure for sure leaves what stood there, and settles no earlier try.
        (FAILS, [1]),
        ([*FAILS, intent(3), outcome(UNKNOWN)], [1, 3]),
        ([intent(1), outcome(UNKNOWN), intent(2), outcome(FAILED)], [None, 1]),
        ([intent(1), outcome(FAILED)], [None]),
        ([*DOUBT, outcome(UNKNOWN), intent(2), outcome(FAILED)], [1, 2]),
        ([intent(1), outcome(FAILED), outcome(UNKNOWN)], [None, 1]),
        ([intent(1), outcome(UNKNOWN), outcome(FAILED)], [None, 1]),
        ([intent(1), outcome(SET), outcome(FAILED)], [1]),
        # A reading settles which of two stands there.
        ([*DOUBT, intent(1), outcome(SET)], [1]),
        # A value that is written again is a round of its own.
        ([intent(1), outcome(SET), intent(1), outcome(SET)], [1]),
        ([intent(1), outcome(SET), intent(1), outcome(UNKNOWN)], [1, 1]),
        ([intent(1), outcome(SET), intent(1), outcome(FAILED)], [1]),
    ],
)
def test_what_may_stand_there_follows_from_all_writes_and_their_answers(events, stands):
    trace = state(*events).applied["g"]
    assert trace.may_stand(P0) == tuple(offset and Commit(offset) for offset in stands)
    assert trace.is_certain(P0) is (len(stands) == 1 and None not in stands)


def test_metadata_is_of_its_round_and_other_places_are_as_they_were():
    trace = state(intent(1, metadata="m"), outcome(SET), intent(1), intent(4, P1, "n")).applied["g"]
    assert trace.may_stand(P0) == (Commit(1, "m"), Commit(1)) and trace.may_stand(P1) == (None, Commit(4, "n"))


def test_the_first_note_of_a_group_counts_and_is_of_no_command():
    note = {"event": "note", "text": "first"}
    begin = {"event": "begin", "command": "follow", "pid": 7, "host": "night"}
    assert state(begin, note, {**note, "text": "second"}).notes == {"g": "first"} and not state(note).applied
