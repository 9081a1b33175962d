"""The file itself: who may read it, who holds it, what a crash or a full disk leaves of it."""

import json
import os
import resource
import stat

import pytest

from migrate.apply.history import APPLY, SET
from migrate.apply.journal import Journal
from migrate.errors import MigrateError, Refused
from tests.unit.journals import DENIED, FINGERPRINT, P0, P1, journal, one_group


def test_it_is_readable_by_its_owner_only(tmp_path):
    old = os.umask(0)
    try:
        with journal(tmp_path).open(APPLY, {}):
            assert stat.S_IMODE(journal(tmp_path).path.stat().st_mode) == 0o600
    finally:
        os.umask(old)


def test_every_event_has_time_event_and_fingerprint(tmp_path):
    with journal(tmp_path).open(APPLY, {"approved": "0123456789ab"}) as writer:
        one_group(writer, DENIED)
        writer.read_back("g", False, {P0: None})
        writer.end(4, {"set": 1})
    events = [json.loads(line) for line in journal(tmp_path).path.read_text().splitlines()]
    assert [e["event"] for e in events] == ["begin", "backup", "intent", "outcome", "readback", "end"]
    assert {(e["time"], e["fingerprint"]) for e in events} == {("2023-11-14T22:13:20.123Z", FINGERPRINT)}
    assert events[0]["approved"] == "0123456789ab" and events[0]["pid"] == os.getpid()
    places = {"topic": ["A.orders"], "partition": [0, 1]}
    assert events[1].items() >= {**places, "offset": [10, None], "metadata": [""]}.items()


def test_every_torn_last_line_is_dropped_and_the_rest_is_kept(tmp_path):
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


def test_a_second_writer_is_refused_by_name(tmp_path):
    with journal(tmp_path).open(APPLY, {}):
        with pytest.raises(Refused, match=f"in use by process {os.getpid()} on"):
            journal(tmp_path).open(APPLY, {})
        assert journal(tmp_path).read().events == 1
    with journal(tmp_path).open(APPLY, {}) as writer:
        assert writer.before.events == 1


def test_a_folder_that_cannot_be_written_stops_before_anything_is_changed(tmp_path):
    missing = Journal(tmp_path / "gone" / "p.journal.jsonl", FINGERPRINT, lambda: 0)
    with pytest.raises(MigrateError, match="Nothing was changed"):
        missing.open(APPLY, {})


def test_a_begin_that_finds_no_room_leaves_the_journal_as_it_was_or_none(tmp_path):
    mine = journal(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def without_room(size: int):
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


def test_names_that_are_not_utf8_survive(tmp_path):
    odd = b"g\xff".decode("utf-8", "surrogateescape")
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, SET, odd)
    assert set(journal(tmp_path).read().prior) == {odd}
