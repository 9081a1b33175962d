"""The journal of a mandate: an ordinary one, of many rounds, that stays short."""

from contextlib import closing

import pytest

from migrate.apply.history import SET, read_history
from migrate.apply.journal import Journal, JournalLost
from migrate.errors import Refused
from migrate.extras.follow.journal import Followed, FollowJournal, same
from migrate.model import Commit, Failure
from migrate.plan.companions import journal_path
from tests.unit.journals import FINGERPRINT, P0, P1

LOST = Failure("_TIMED_OUT", "no answer", True, True)
REFUSED = Failure("GROUP_AUTHORIZATION_FAILED", "no")


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


@pytest.mark.parametrize("rounds", [
    [(50, SET), (60, None)],
    [(50, LOST), (60, LOST)],
    [(50, SET), (50, LOST), (60, LOST)],
    [(50, SET), (60, REFUSED)],
    [(50, REFUSED)],
])  # fmt: skip
def test_a_short_journal_says_the_same(journal, rounds):
    with closing(journal.open("follow", {})) as writer:
        writer.backup({"g": {P1: Commit(5)}}, {"g": [P0, P1]})
        for round in rounds:
            write_group(writer, *round)
        writer.note("h", "alive-on-target")
        before = journal.read()
        writer.shorten(before)
        after = journal.read()
    for group in "gh":
        was, now = Followed.by(before, group), Followed.by(after, group)
        assert (now.prior, now.is_saved, now.left, now.written) == (was.prior, was.is_saved, was.left, was.written)
        assert now.trace.may_stand(P0) == was.trace.may_stand(P0) and now.may_be_as_before(P0) == was.may_be_as_before(
            P0
        )


def test_a_journal_that_has_grown_is_made_short_and_says_the_same_and_is_still_locked(journal):
    with closing(journal.open("follow", {})) as writer:
        writer.backup({"g": {P0: Commit(5)}}, {"g": [P0]})
        for offset in range(500):
            write_group(writer, offset)
        before, long = known(journal), journal.path.stat().st_size
        writer.shorten(journal.read())
        assert journal.path.stat().st_size < long / 50 and known(journal) == before
        with pytest.raises(Refused, match="in use"):
            Journal(journal.path, FINGERPRINT, lambda: 0).open("rollback", {})
        write_group(writer, 501)
        assert known(journal).writes(P0) == (Commit(501, "m"),)
    state = read_history(journal.path.read_bytes(), "journal", FINGERPRINT)
    assert state.prior == {"g": {P0: Commit(5)}} and state.applied["g"].planned == {P0: 501}
    assert [path.name for path in journal.path.parent.iterdir()] == [journal.path.name]


def test_it_is_not_made_short_again_before_it_has_grown(journal):
    with closing(journal.open("follow", {})) as writer:
        writer.shorten(journal.read())
        first = journal.path.stat().st_ino
        write_group(writer, 1)
        writer.shorten(journal.read())
        assert journal.path.stat().st_ino == first


def test_where_it_cannot_be_made_short_nothing_more_is_written(journal, monkeypatch):
    with closing(journal.open("follow", {})) as writer:
        monkeypatch.setattr("migrate.extras.follow.journal.write_all", _full)
        with pytest.raises(JournalLost, match="shorter"):
            writer.shorten(journal.read())
    assert journal.read().runs


def _full(descriptor, line):
    raise OSError(28, "No space left on device")
