"""The journal of a mandate: an ordinary one, of many rounds, that stays short."""

from contextlib import closing

import pytest

from migrate.apply.history import SET, read_history
from migrate.apply.journal import Journal, JournalLost
from migrate.errors import Refused
from migrate.extras.follow.journal import Followed, FollowJournal, same
from migrate.model import Commit
from migrate.plan.companions import journal_path
from tests.unit.journals import DENIED, FINGERPRINT, P0, P1, TIMED_OUT


@pytest.fixture
def journal(tmp_path):
    path = journal_path(tmp_path / "follow.plan", FINGERPRINT)
    return FollowJournal(path, FINGERPRINT, lambda: 1_700_000_000_123, 10**15)


def write_group(writer, offset, answer=SET, group="g"):
    writer.intend({group: {P0: offset}}, {group: {P0: "m"}})
    if answer is not None:
        writer.outcome(group, {P0: answer})


def known(journal, group="g"):
    return Followed.by(journal.read(), group)


def test_what_is_ours_is_what_was_written_last_with_its_metadata_and_leader_epochs_do_not_count(journal):
    with closing(journal.open("follow", {})) as writer:
        writer.backup({"g": {P0: Commit(5)}}, {"g": [P0, P1]})
        write_group(writer, 50)
        write_group(writer, 60)
    write = known(journal)
    assert write.writes(P0) == (Commit(60, "m"),) and write.written == {P0} and not write.may_be_as_before(P0)
    assert write.is_ours(P0, Commit(60, "m", 7)) and not write.is_ours(P0, Commit(60)) and not write.is_ours(P0, None)
    assert (write.prior, write.is_saved, write.left) == ({P0: Commit(5)}, True, "")
    assert same(None, None) and not same(None, Commit(0))


def test_a_rollback_is_no_write_of_ours_and_a_group_is_left_for_its_first_reason(journal):
    with closing(journal.open("follow", {})) as writer:
        writer.note("g", "alive-on-target")
        writer.note("g", "other")
    with journal.open("rollback", {}) as writer:
        write_group(writer, 9)
    assert known(journal).left == "alive-on-target" and not known(journal).written


ROUNDS = {
    "killed amid a write": [(50, SET), (60, None)],
    "never answered": [(50, TIMED_OUT), (60, TIMED_OUT)],
    "in doubt after the same": [(50, SET), (50, TIMED_OUT), (60, TIMED_OUT)],
    "refused": [(50, SET), (60, DENIED)],
    "never written": [(50, DENIED)],
    "many": [(offset, SET) for offset in range(500)],
}


def test_a_journal_that_has_grown_is_made_short_once_and_says_the_same_and_is_still_locked(journal):
    def said():
        for group in (*ROUNDS, "left"):
            of = known(journal, group)
            yield of.prior, of.is_saved, of.left, of.written, of.trace.may_stand(P0), of.may_be_as_before(P0)

    with closing(journal.open("follow", {})) as writer:
        for group, rounds in ROUNDS.items():
            writer.backup({group: {P1: Commit(5)}}, {group: [P0, P1]})
            for offset, answer in rounds:
                write_group(writer, offset, answer, group)
        writer.note("left", "alive-on-target")
        before, long, many = list(said()), journal.path.stat().st_size, known(journal, "many")
        writer.shorten(journal.read())
        assert list(said()) == before and known(journal, "many") == many and journal.path.stat().st_size < long / 20
        with pytest.raises(Refused, match="in use"):
            Journal(journal.path, FINGERPRINT, lambda: 0).open("rollback", {})
        short = journal.path.stat().st_ino
        write_group(writer, 501, group="many")
        writer.shorten(journal.read())
        assert journal.path.stat().st_ino == short, "it has to grow again first"
        assert known(journal, "many").writes(P0) == (Commit(501, "m"),)
    state = read_history(journal.path.read_bytes(), "journal", FINGERPRINT)
    assert state.prior["many"] == {P1: Commit(5)} and state.applied["many"].planned == {P0: 501}
    assert [path.name for path in journal.path.parent.iterdir()] == [journal.path.name]


def test_where_it_cannot_be_made_short_nothing_more_is_written(journal, monkeypatch):
    def full(descriptor, line):
        raise OSError(28, "No space left on device")

    with closing(journal.open("follow", {})) as writer:
        monkeypatch.setattr("migrate.extras.follow.journal.write_all", full)
        with pytest.raises(JournalLost, match="shorter"):
            writer.shorten(journal.read())
    assert journal.read().runs
