"""Passes one after the other: how often, until when, what one that fails means for the others; their status file."""

import os

import pytest

from migrate.apply.journal import JournalLost
from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, ClusterError, MigrateError
from migrate.extras.follow.engine import PassResult
from migrate.extras.follow.judge import Refusal
from migrate.extras.follow.passes import Cadence, follow, read_status, status_path, write_status
from tests.fakes import FakeClock
from tests.unit.journals import FINGERPRINT

DOWN = ClusterError("B cannot be reached.", "Start it.")


class Passes:
    """Passes that go as `outcomes` say, well after that; each takes a second of the clock."""

    def __init__(self, *outcomes, seconds=1.0):
        self.clock, self.outcomes, self.seconds = FakeClock(), list(outcomes), seconds
        self.began, self.told, self.stopped = [], [], False

    def look_and_write(self, is_wanted):
        self.began.append(self.clock.monotonic())
        self.clock.wait(self.seconds)
        outcome = self.outcomes.pop(0) if self.outcomes else {}
        if isinstance(outcome, Exception):
            raise outcome
        self.stopped = self.stopped or outcome.pop("told_to", False)
        return PassResult(len(self.began), self.clock.now_ms(), groups=1, rows_set=1, **outcome)

    def run(self, passes=3, every=30.0, until_ms=10**15):
        cadence = Cadence(every, until_ms, passes)
        return follow(self, cadence, self.clock, lambda: self.stopped, lambda result, total: self.tell(result))

    def tell(self, result):
        self.told.append(result)


def test_a_pass_begins_so_long_after_the_one_before_began_and_at_once_after_one_that_took_longer():
    usual, slow = Passes(), Passes(seconds=45.0)
    usual.run()
    slow.run()
    assert [round(at) for at in usual.began] == [0, 30, 60] and slow.began == [0.0, 45.0, 90.0]


def test_it_ends_with_the_mandate():
    passes = Passes()
    total, ended = passes.run(passes=0, until_ms=passes.clock.now_ms() + 65_000)
    assert (total.passes, ended) == (3, "the mandate has ended")


def test_a_wish_to_stop_ends_it_after_the_pass_and_amid_the_wait():
    passes = Passes()
    passes.tell = lambda result: setattr(passes, "stopped", True)
    assert passes.run()[0].passes == 1
    waiting = Passes()
    waiting.clock.wait = lambda seconds: setattr(waiting, "stopped", True)
    assert waiting.run()[1] == "it was asked to stop"


def test_a_pass_that_was_told_to_stop_before_it_wrote_says_nothing_of_how_the_passes_ended():
    passes = Passes({}, {"is_stopped": True, "told_to": True})
    total, ended = passes.run()
    assert (total.passes, total.exit_code, ended, len(passes.told)) == (1, EXIT_DONE, "it was asked to stop", 1)


def test_a_pass_that_did_not_write_because_the_mandate_had_ended_is_told_as_that():
    total, ended = Passes({}, {"is_stopped": True}).run()
    assert (total.passes, ended) == (1, "the mandate has ended")


def test_a_cluster_that_does_not_answer_ends_a_pass_and_not_the_passes():
    passes = Passes({}, DOWN, {})
    total, _ = passes.run()
    assert (total.passes, total.failed, total.exit_code) == (3, 1, EXIT_DONE)
    assert passes.told[1].trouble == "B cannot be reached. Start it." and passes.told[1].number == 2


def test_the_exit_code_is_that_of_the_newest_pass():
    left = {"refused": {"g": Refusal("alive-on-target", "It is alive.")}}
    assert Passes(left, {}).run(passes=2)[0].exit_code == EXIT_DONE
    assert Passes({}, left).run(passes=2)[0].exit_code == EXIT_PARTLY
    assert Passes({}, DOWN).run(passes=2)[0].exit_code == EXIT_PARTLY
    assert Passes(DOWN, DOWN).run(passes=2)[0].exit_code == EXIT_FAILED


def test_without_its_journal_no_more_passes_are_made():
    gap = {"trouble": "x; missing in the journal: y", "has_lost_journal": True}
    for trouble in (JournalLost("the journal cannot be written any more"), gap):
        passes = Passes({}, trouble)
        total, ended = passes.run(passes=9)
        assert (total.passes, ended) == (2, "the journal cannot be written any more")
        assert total.exit_code == EXIT_PARTLY


@pytest.fixture
def path(tmp_path):
    return status_path(tmp_path / "follow.plan", FINGERPRINT)


def test_it_lies_beside_the_mandate_and_what_was_written_last_is_read(path):
    assert path.name == f"follow.plan.{FINGERPRINT[:32]}.status.json" and read_status(path) is None
    for number in (1, 2):
        assert write_status(path, {"fingerprint": FINGERPRINT, "pass": number}) == ""
    assert read_status(path) == {"fingerprint": FINGERPRINT, "pass": 2}
    assert path.stat().st_mode & 0o777 == 0o600 and [p.name for p in path.parent.iterdir()] == [path.name]


def test_whoever_reads_it_meanwhile_has_the_old_one_or_the_new_one_and_never_a_part(path, monkeypatch):
    write_status(path, {"pass": 1})
    seen = []
    monkeypatch.setattr(os, "fsync", lambda fd, fsync=os.fsync: seen.append(read_status(path)) or fsync(fd))
    assert write_status(path, {"pass": 2}) == "" and read_status(path) == {"pass": 2}
    assert seen == [{"pass": 1}, {"pass": 2}], "at the sync of the file, and at that of its folder"


def test_a_full_disk_is_told_and_leaves_the_one_before(path, monkeypatch):
    write_status(path, {"pass": 1})
    monkeypatch.setattr(os, "fsync", _full)
    assert "No space left" in write_status(path, {"pass": 2})
    assert read_status(path) == {"pass": 1} and len(list(path.parent.iterdir())) == 1


def _full(descriptor):
    raise OSError(28, "No space left on device")


def test_one_that_is_damaged_is_an_error(path):
    path.write_text("{")
    with pytest.raises(MigrateError, match="cannot be read"):
        read_status(path)
