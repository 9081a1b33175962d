import json
import os
import resource
import stat
from pathlib import Path

import pytest

from migrate.apply.history import APPLY, FAILED, ROLLBACK, SET, UNKNOWN, JournalState
from migrate.apply.journal import Journal, JournalWriter
from migrate.errors import MigrateError, Refused, UnreadablePlan
from migrate.model import Commit, Failure, TopicPartition
from migrate.plan.companions import journal_path, sealed

FINGERPRINT = "0123456789abcdef" * 4
P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)
DENIED = Failure("GROUP_AUTHORIZATION_FAILED", "no")
TIMED_OUT = Failure("_TIMED_OUT", "no answer", True, True)


def journal(folder: Path, fingerprint: str = FINGERPRINT) -> Journal:
    return Journal(journal_path(folder / "cutover.plan", FINGERPRINT), fingerprint, lambda: 1_700_000_000_123)


def one_group(writer: JournalWriter, result: str | Failure, group: str = "g") -> None:
    writer.backup({group: {P0: Commit(10)}}, {group: [P0, P1]})
    writer.intend({group: {P0: 60, P1: 61}})
    writer.outcome(group, {P0: result, P1: SET})


def test_no_journal_is_an_empty_state(tmp_path: Path) -> None:
    assert journal(tmp_path).read() == JournalState()


def test_it_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with journal(tmp_path).open(APPLY, {}):
            assert stat.S_IMODE(journal(tmp_path).path.stat().st_mode) == 0o600
    finally:
        os.umask(old)


def test_every_event_has_time_event_and_fingerprint(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {"approved": "0123456789ab"}) as writer:
        one_group(writer, DENIED)
        writer.read_back("g", False, {P0: None})
        writer.end(4, {"set": 1})
    events = [json.loads(line) for line in journal(tmp_path).path.read_text().splitlines()]
    assert [e["event"] for e in events] == ["begin", "backup", "intent", "outcome", "readback", "end"]
    assert {(e["time"], e["fingerprint"]) for e in events} == {("2023-11-14T22:13:20.123Z", FINGERPRINT)}
    assert events[0]["approved"] == "0123456789ab" and events[0]["pid"] == os.getpid()
    assert events[1]["prior"] == [
        {"topic": "A.orders", "partition": 0, "offset": 10, "metadata": ""},
        {"topic": "A.orders", "partition": 1, "offset": None},
    ]


def test_state_tells_prior_planned_and_results(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, DENIED)
    state = journal(tmp_path).read()
    assert state.prior == {"g": {P0: Commit(10)}}
    trace = state.applied["g"]
    assert trace.planned == {P0: 60, P1: 61} and trace.results == {P0: FAILED, P1: SET}
    assert trace.written() == {P1} and trace.read_back is None


def test_the_first_backup_of_a_group_counts(tmp_path: Path) -> None:
    for offset in (10, 60):
        with journal(tmp_path).open(APPLY, {}) as writer:
            writer.backup({"g": {P0: Commit(offset)}}, {})
    assert journal(tmp_path).read().prior == {"g": {P0: Commit(10)}}


def test_an_intent_without_outcome_counts_as_written(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        writer.intend({"g": {P0: 60}})
    assert journal(tmp_path).read().applied["g"].written() == {P0}


def test_an_intent_after_a_failure_counts_as_written_until_its_answer_is_there(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, DENIED)
        writer.intend({"g": {P0: 60}})
    assert journal(tmp_path).read().applied["g"].written() == {P0, P1}


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
def test_what_may_have_been_written_is_never_forgotten(
    tmp_path: Path, answers: list[str | Failure], expected: str
) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        writer.intend({"g": {P0: 60}})
        for answer in answers:
            writer.outcome("g", {P0: answer})
    assert journal(tmp_path).read().applied["g"].results == {P0: expected}


def test_a_begun_rollback_spends_the_plan_and_is_traced_apart(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET)
    assert not journal(tmp_path).read().is_spent
    with journal(tmp_path).open(ROLLBACK, {}) as writer:
        writer.intend({"g": {P0: 10}})
    state = journal(tmp_path).read()
    assert state.is_spent
    assert state.applied["g"].planned == {P0: 60, P1: 61} and state.rolled_back["g"].planned == {P0: 10}


def test_every_torn_last_line_is_dropped_and_the_rest_is_kept(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET)
    path = journal(tmp_path).path
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(last + 1, len(whole)):
        path.write_bytes(whole[:cut])
        state = journal(tmp_path).read()
        assert state.torn and state.applied["g"].written() == {P0, P1}
    with journal(tmp_path).open(APPLY, {}) as writer:
        assert writer.before.torn is False
    state = journal(tmp_path).read()
    assert not state.torn and state.events == 4


def test_a_damaged_inner_line_is_an_error_that_names_it(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET)
    path = journal(tmp_path).path
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1][:20] + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(UnreadablePlan, match="Line 2 of the journal"):
        journal(tmp_path).read()


@pytest.mark.parametrize(
    "damage",
    [
        b"[]",
        b"{}",
        b"\xff",
        b'{"fingerprint":"FP","event":"end"}',
        sealed({"fingerprint": FINGERPRINT, "event": "backup", "group": "g"}),
        sealed({"fingerprint": FINGERPRINT, "event": "x"}),
    ],
)
def test_what_is_no_event_is_damage(tmp_path: Path, damage: bytes) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET)
    path = journal(tmp_path).path
    path.write_bytes(damage.replace(b"FP", FINGERPRINT.encode()) + b"\n" + path.read_bytes())
    with pytest.raises(UnreadablePlan, match="Line 1 of the journal"):
        journal(tmp_path).read()


def test_every_flipped_bit_is_damage_and_never_another_offset(tmp_path: Path) -> None:
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


def test_the_journal_of_another_plan_is_not_taken(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}):
        pass
    with pytest.raises(UnreadablePlan, match="belongs to plan 0123456789abcdef"):
        journal(tmp_path, "f" * 64).read()


def test_a_second_writer_is_refused_by_name(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}):
        with pytest.raises(Refused, match=f"in use by process {os.getpid()} on"):
            journal(tmp_path).open(APPLY, {})
        assert journal(tmp_path).read().events == 1
    with journal(tmp_path).open(APPLY, {}) as writer:
        assert writer.before.events == 1


def test_a_folder_that_cannot_be_written_stops_before_anything_is_changed(tmp_path: Path) -> None:
    missing = Journal(tmp_path / "gone" / "p.journal.jsonl", FINGERPRINT, lambda: 0)
    with pytest.raises(MigrateError, match="Nothing was changed"):
        missing.open(APPLY, {})


def test_a_begin_that_finds_no_room_leaves_the_journal_as_it_was_or_none(tmp_path: Path) -> None:
    mine = journal(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def without_room(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
        try:
            with pytest.raises(MigrateError, match="Nothing was changed"):
                mine.open(APPLY, {})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    without_room(0)
    assert not mine.path.exists()
    mine.open(APPLY, {}).close()
    before = mine.path.read_bytes()
    without_room(len(before))
    assert mine.path.read_bytes() == before


def test_names_that_are_not_utf8_survive(tmp_path: Path) -> None:
    odd = b"g\xff".decode("utf-8", "surrogateescape")
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET, odd)
    assert set(journal(tmp_path).read().prior) == {odd}
