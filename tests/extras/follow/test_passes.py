"""Passes one after the other: how often, until when, what one that fails means, and what is kept between them."""

import os
from types import SimpleNamespace

import pytest

from migrate.apply.journal import JournalLost
from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, ClusterError, MigrateError
from migrate.extras.follow.engine import PassResult
from migrate.extras.follow.judge import Refusal
from migrate.extras.follow.passes import Cadence, follow, read_status, status_path, write_status
from migrate.extras.follow.session import RENEWED_SECONDS, RenewedMirror
from tests.fakes import FakeClock
from tests.unit.journals import FINGERPRINT, P0

DOWN = ClusterError("B cannot be reached.", "Start it.")
LEFT = {"refused": {"g": Refusal("alive-on-target", "It is alive.")}}
GAP = {"trouble": "x; missing in the journal: y", "has_lost_journal": True}
ASKED, ALL_MADE = "it was asked to stop", "it made the 3 passes that it was asked for"
OVER, LOST = "the mandate has ended", "the journal cannot be written any more"


class Passes:
    """Passes that go as `outcomes` say, well after that; each takes so many seconds of the clock."""

    def __init__(self, *outcomes, seconds=1.0):
        self.clock, self.outcomes, self.seconds = FakeClock(), list(outcomes), seconds
        self.began, self.told, self.stopped = [], [], False

    def look_and_write(self, is_wanted):
        self.began.append(self.clock.monotonic())
        self.clock.wait(self.seconds)
        outcome = self.outcomes.pop(0) if self.outcomes else {}
        if isinstance(outcome, Exception):
            raise outcome
        self.stopped = outcome.get("told_to", False)
        values = {name: value for name, value in outcome.items() if name != "told_to"}
        return PassResult(len(self.began), self.clock.now_ms(), groups=1, rows_set=1, **values)

    def run(self, passes=3, until_ms=10**15):
        return follow(self, Cadence(30.0, until_ms, passes), self.clock, lambda: self.stopped, self.tell)

    def tell(self, result, total):
        self.told.append(result)


def test_a_pass_begins_so_long_after_the_one_before_began_and_at_once_after_one_that_took_longer():
    usual, slow = Passes(), Passes(seconds=45.0)
    usual.run()
    slow.run()
    assert [round(at) for at in usual.began] == [0, 30, 60] and slow.began == [0.0, 45.0, 90.0]


@pytest.mark.parametrize(("outcomes", "passes", "failed", "exit_code", "ended"), [
    ([{}, DOWN, {}], 3, 1, EXIT_DONE, ALL_MADE),
    ([LEFT, LEFT, {}], 3, 0, EXIT_DONE, ALL_MADE),
    ([{}, {}, LEFT], 3, 0, EXIT_PARTLY, ALL_MADE),
    ([{}, {}, DOWN], 3, 1, EXIT_PARTLY, ALL_MADE),
    ([DOWN, DOWN, DOWN], 3, 3, EXIT_FAILED, ALL_MADE),
    ([{}, JournalLost(LOST)], 2, 1, EXIT_PARTLY, LOST),
    ([{}, GAP], 2, 1, EXIT_PARTLY, LOST),
    ([{}, {"is_stopped": True}], 1, 0, EXIT_DONE, OVER),
    ([{}, {"is_stopped": True, "told_to": True}], 1, 0, EXIT_DONE, ASKED),
    ([{}, {"told_to": True}], 2, 0, EXIT_DONE, ASKED),
])  # fmt: skip
def test_the_newest_pass_gives_the_exit_code_and_only_a_lost_journal_the_mandates_end_or_a_wish_ends_the_passes(
    outcomes, passes, failed, exit_code, ended
):
    made = Passes(*outcomes)
    total, why = made.run()
    assert (total.passes, total.failed, total.exit_code, why) == (passes, failed, exit_code, ended)
    assert [told.number for told in made.told] == [*range(1, passes + 1)], "one that wrote nothing is not told"
    assert (str(DOWN) in [told.trouble for told in made.told]) is (DOWN in outcomes)


def test_the_mandates_end_and_a_wish_to_stop_end_it_amid_the_wait():
    passes, waiting = Passes(), Passes()
    total, ended = passes.run(passes=0, until_ms=passes.clock.now_ms() + 65_000)
    assert (total.passes, ended) == (3, OVER)
    waiting.clock.wait = lambda seconds: setattr(waiting, "stopped", len(waiting.told) > 0)
    assert waiting.run()[1] == ASKED


@pytest.fixture
def path(tmp_path):
    return status_path(tmp_path / "follow.plan", FINGERPRINT)


def test_the_status_file_lies_beside_the_mandate_and_what_was_written_last_is_read(path):
    assert path.name == f"follow.plan.{FINGERPRINT[:32]}.status.json" and read_status(path) is None
    for number in (1, 2):
        assert write_status(path, {"fingerprint": FINGERPRINT, "pass": number}) == ""
    assert read_status(path) == {"fingerprint": FINGERPRINT, "pass": 2}
    assert path.stat().st_mode & 0o777 == 0o600 and [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_full_disk_is_told_and_leaves_the_status_file_before_and_a_damaged_one_is_an_error(path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    write_status(path, {"pass": 1})
    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in write_status(path, {"pass": 2})
    assert read_status(path) == {"pass": 1} and len(list(path.parent.iterdir())) == 1
    path.write_text("{")
    with pytest.raises(MigrateError, match="cannot be read"):
        read_status(path)


def test_mm2s_topics_are_read_anew_after_an_hour_and_the_chains_are_those_of_the_pass():
    clock, made = FakeClock(), []

    def make():
        number = len(made)
        made.append(SimpleNamespace(sync_pairs=lambda *asked: ((number, number),)))
        return made[-1]

    mirror = RenewedMirror(make, clock)
    clock.wait(RENEWED_SECONDS - 1)
    assert mirror.of_this_pass() is made[0] and mirror.sync_pairs(P0, 9, 9) == ((0, 0),)
    clock.wait(1)
    assert mirror.sync_pairs(P0, 9, 9) == ((0, 0),)
    assert mirror.of_this_pass() is made[1] and mirror.sync_pairs(P0, 9, 9) == ((1, 1),) and len(made) == 2
