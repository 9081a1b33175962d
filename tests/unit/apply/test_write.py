"""The writing and the reading back: what a signal stops, what is deleted whole, what is told of each group."""

import os
import signal
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from migrate.apply import read_back
from migrate.apply.history import FAILED
from migrate.apply.read_back import read_commits
from migrate.apply.restore import goes_whole
from migrate.apply.write import FRESH_SECONDS, SIGNALS, Interruption
from migrate.model import Commit, Commits, Decision, Failure, TopicPartition
from migrate.survey.groups import NO_ANSWER
from tests.fakes import FakeClock, FakeCluster, Script
from tests.unit.answers import DENIED, MOVED
from tests.unit.applyscene import Scene
from tests.unit.plans import clusters, plan, row

P0 = TopicPartition("A.orders", 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_wish_also_of_the_one_outside_and_the_handlers_are_back_after_it(number):
    before = [signal.getsignal(each) for each in SIGNALS]
    with Interruption() as outer:
        with Interruption() as inner:
            assert not inner and not outer
            os.kill(os.getpid(), number)
            assert inner and outer
            assert [signal.getsignal(each) for each in SIGNALS] == before, "the second one acts as it always does"
        assert outer
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_a_terminal_that_closes_says_so_twice_and_ends_no_write():
    """Its shell sends SIGHUP, and so does the kernel: what is being written is finished, read back and told."""
    before = signal.getsignal(signal.SIGHUP)
    try:
        with Interruption() as outer, Interruption() as inner:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGHUP)
            assert inner and outer and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_outside_the_main_thread_it_is_never_true():
    seen: list[bool] = []

    def enter():
        with Interruption() as interrupted:
            seen.append(bool(interrupted))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [False]


def test_a_group_is_deleted_whole_only_if_every_row_removes_and_nothing_else_is_committed():
    first, second = (row("g", partition=p, offset=None, decision=Decision.REMOVE) for p in (0, 1))
    commits = {r.target_partition: Commit(60) for r in (first, second)}
    assert goes_whole([first, second], commits) and goes_whole([first, second], {})
    assert not goes_whole([first], commits), "another offset would go with it"
    assert not goes_whole([first, row("g", partition=1)], commits), "the other row is set"


def test_a_signal_that_comes_while_the_handlers_are_being_set_is_noted_once(monkeypatch):
    handler, set_one = signal.getsignal(SIGNALS[0]), signal.signal
    interrupted = Interruption()

    def interrupting(number: signal.Signals, action: Any) -> Any:
        before = set_one(number, action)
        if action == interrupted._note and not interrupted:
            interrupted._note(number, None)
        return before

    monkeypatch.setattr(signal, "signal", interrupting)
    with interrupted:
        assert interrupted
    assert signal.getsignal(SIGNALS[0]) == handler


def meanwhile(scene: Scene, seconds: float, act: Callable[[], object]):
    """Let time pass between the look at the groups and the first write, and something happen."""

    def wait():
        if scene.clock.waited == 0:
            scene.clock.wait(seconds)
            act()

    scene.target.when("log_ranges", wait)


@pytest.mark.parametrize(("seconds", "there"), [(FRESH_SECONDS + 1, 65), (FRESH_SECONDS - 1, 60)])
def test_what_somebody_has_committed_since_the_look_is_not_overwritten_where_that_look_is_old(tmp_path, seconds, there):
    scene = Scene(plan(row("a", target_prior=10), row("b", target_prior=20)), tmp_path)
    meanwhile(scene, seconds, lambda: scene.target.commit("a", *P0, 65))
    result = scene.apply()
    assert scene.target.held("a") == {("A.orders", 0): there} and scene.target.held("b") == {("A.orders", 0): 60}
    (of_a,) = [each for each in result.rows if each.key[0] == "a"]
    assert ("another client has committed this offset since the check" in of_a.detail) == (there == 65)
    assert result.exit_code == (4 if there == 65 else 0)
    assert scene.rollback().exit_code == 0 and scene.target.held("b") == {("A.orders", 0): 20}
    assert scene.target.held("a") == {("A.orders", 0): 65 if there == 65 else 10}


@pytest.mark.parametrize("failure", [DENIED, MOVED])
def test_a_group_that_cannot_be_read_again_before_it_is_written_is_not_written_and_leaves_nothing_to_undo(
    tmp_path, failure
):
    """Of a write the second code would prove nothing."""
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)
    meanwhile(scene, FRESH_SECONDS + 1, lambda: scene.target.script("commits", "a", Script(failure)))
    assert scene.apply(group_timeout_seconds=0.0).exit_code == 1 and scene.target.calls["alter"] == 0
    assert scene.target.held("a") == {("A.orders", 0): 10}
    assert scene.journal.read().applied["a"].results == {P0: FAILED}
    assert scene.undo().rows == ()


GOOD = {P0: Commit(10)}
PASSING = Failure("_TIMED_OUT", "no answer", retriable=True)


class Reads:
    """A cluster whose next readings are answered by `answers`: a failure for every group, or None for the commits."""

    def __init__(self, cluster: FakeCluster, answers: list[Failure | None]):
        self.cluster, self.answers, self.clients = cluster, answers, 0

    def renewed(self) -> "Reads":
        self.clients += 1
        return self

    def commits(self, groups: Collection[str]) -> Mapping[str, Commits | Failure]:
        answer = self.answers.pop(0)
        return self.cluster.commits(groups) if answer is None else dict.fromkeys(groups, answer)


def test_a_reading_that_failed_in_passing_is_made_again_until_the_time_is_up():
    target, _ = clusters(plan(row("g", target_prior=10)))
    answers: list[Failure | None] = [PASSING, None]
    reads = Reads(target, answers)
    commits = read_commits(reads, ["g"], FakeClock(), 60.0)
    assert commits["g"] == {P0: Commit(10)} and reads.clients == 2
    denied = Failure("GROUP_AUTHORIZATION_FAILED", "no")
    answers.append(denied)
    assert read_commits(reads, ["g"], FakeClock(), 60.0) == {"g": denied}, "that one does not pass"


def test_a_group_that_the_answer_leaves_out_is_told_as_unread():
    target, _ = clusters(plan(row("g", target_prior=10)))

    class LeavesOut(Reads):
        def commits(self, groups: Collection[str]) -> Mapping[str, Commits | Failure]:
            return super().commits(["g"])

    read = read_commits(LeavesOut(target, [None]), ["g", "h"], FakeClock(), 60.0)
    assert read == {"g": {P0: Commit(10)}, "h": NO_ANSWER}


@pytest.mark.parametrize(
    ("answers", "seconds", "told"),
    [
        ([None, PASSING, None, None], 60.0, (GOOD, GOOD, GOOD)),
        ([None, PASSING, None], 0.0, (GOOD, PASSING.code, GOOD)),
        ([None, None], 0.0, (GOOD, GOOD, "NO_ANSWER")),
        ([None, PASSING], 0.0, (GOOD, PASSING.code, "NO_ANSWER")),
    ],
    ids=["what passed", "what did not pass in time", "a client that breaks keeps what was read", "and why it was not"],
)
def test_of_groups_that_are_read_one_by_one_each_is_told(monkeypatch, answers, seconds, told):
    monkeypatch.setattr(read_back, "READ_CHUNK", 1)
    target, _ = clusters(plan(*(row(group, target_prior=10) for group in "abc")))
    read = read_commits(Reads(target, list(answers)), ["a", "b", "c"], FakeClock(), seconds)
    shown = {g: r.code if isinstance(r, Failure) else r for g, r in read.items()}
    assert shown == dict(zip("abc", told, strict=True))
