"""The journal of a mandate: one folding in memory and from disk, one writer, and a file that stays short."""

import pytest

from migrate.apply.history import SET, read_history
from migrate.apply.journal import Journal, JournalLost
from migrate.errors import Refused, UnreadablePlan
from migrate.extras.follow.journal import FollowJournal, read_memory
from migrate.model import Commit
from migrate.plan.companions import journal_path
from tests.unit.journals import FINGERPRINT, P0, P1


@pytest.fixture
def journal(tmp_path):
    path = journal_path(tmp_path / "follow.plan", FINGERPRINT)
    return FollowJournal(path, FINGERPRINT, lambda: 1_700_000_000_123)


def write_group(writer, offset, group="g"):
    writer.expect({group: {P0: Commit(offset, "m")}})
    writer.intend({group: {P0: offset}})
    writer.outcome(group, {P0: SET})


def test_what_is_written_is_in_memory_at_once_and_the_same_as_what_is_read_from_disk(journal):
    with journal.open("follow", {}) as writer:
        writer.backup({"g": {P0: Commit(5)}}, {"g": [P0, P1]})
        write_group(writer, 60)
        writer.leave("h", "alive-on-target")
        assert read_memory(journal.path).groups == writer.memory.groups
    assert writer.memory.of("g").own[P0].certain == Commit(60, "m")


def test_a_second_run_goes_on_with_what_the_first_one_knew(journal):
    with journal.open("follow", {}) as writer:
        write_group(writer, 60)
    with journal.open("follow", {}) as writer:
        assert writer.memory.of("g").own[P0].certain == Commit(60, "m")


def test_a_write_that_is_proven_later_is_no_doubt_any_more(journal):
    with journal.open("follow", {}) as writer:
        writer.expect({"g": {P0: Commit(60)}})
        writer.intend({"g": {P0: 60}})
        assert writer.memory.of("g").own[P0].certain is None
        writer.prove("g", {P0: Commit(60)})
        assert writer.memory.of("g").own[P0].certain == Commit(60)


def test_a_journal_that_has_grown_is_made_short_and_remembers_the_same_and_is_still_locked(journal):
    with journal.open("follow", {}) as writer:
        writer.backup({"g": {P0: Commit(5)}}, {"g": [P0]})
        for offset in range(500):
            write_group(writer, offset)
        before, long = dict(writer.memory.groups), journal.path.stat().st_size
        writer.shorten()
        assert journal.path.stat().st_size < long / 50 and read_memory(journal.path).groups == before
        with pytest.raises(Refused, match="in use"):
            Journal(journal.path, FINGERPRINT, lambda: 0).open("rollback", {})
        write_group(writer, 501)
        assert read_memory(journal.path).of("g").own[P0].certain == Commit(501, "m")
    state = read_history(journal.path.read_bytes(), "journal", FINGERPRINT)
    assert state.prior == {"g": {P0: Commit(5)}} and state.applied["g"].planned == {P0: 501}
    assert [path.name for path in journal.path.parent.iterdir()] == [journal.path.name]


def test_it_is_not_made_short_again_before_it_has_grown(journal):
    with journal.open("follow", {}) as writer:
        writer.shorten()
        first = journal.path.stat().st_ino
        write_group(writer, 1)
        writer.shorten()
        assert journal.path.stat().st_ino == first


def test_where_it_cannot_be_made_short_nothing_more_is_written(journal, monkeypatch):
    with journal.open("follow", {}) as writer:
        monkeypatch.setattr("migrate.extras.follow.journal.write_all", _full)
        with pytest.raises(JournalLost, match="shorter"):
            writer.shorten()
    assert read_memory(journal.path).begun


def _full(descriptor, line):
    raise OSError(28, "No space left on device")


def test_a_damaged_line_is_named_and_a_torn_one_dropped(journal):
    with journal.open("follow", {}) as writer:
        write_group(writer, 60)
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-20])
    assert read_memory(journal.path).of("g").own[P0].certain is None
    journal.path.write_bytes(whole.replace(b'"intent"', b'"intend"'))
    with pytest.raises(UnreadablePlan, match="Line 2"):
        read_memory(journal.path)


def test_without_a_journal_nothing_is_remembered(journal):
    assert read_memory(journal.path).groups == {}
