"""The writing and the reading back: what breaks in it, what is told of it, and writes whose outcome nobody knows."""

import errno
import logging
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from migrate.apply import read_back
from migrate.apply.history import FAILED, UNKNOWN
from migrate.apply.journal import JournalLost, JournalWriter
from migrate.apply.outcome import RowStatus
from migrate.apply.read_back import read_commits
from migrate.apply.restore import goes_whole
from migrate.apply.write import FRESH_SECONDS, SIGNALS, Interruption
from migrate.errors import MigrateError, Refused
from migrate.model import Commit, Commits, Decision, Failure, TopicPartition
from migrate.plan.file import refuse_replaced, write_plan
from migrate.ports import Outcomes
from migrate.spark.machine import _quieten_py4j
from tests.fakes import Crash, FakeClock, FakeCluster, Script
from tests.unit.answers import DENIED, MOVED, TIMED_OUT
from tests.unit.applyscene import Scene, statuses, text
from tests.unit.plans import clusters, plan, row

P0 = TopicPartition("A.orders", 0)
MOVED_ROW, SECOND_ROW = row("a", target_prior=10), row("a", partition=1, target_prior=11)
ALIVE = Failure("UNKNOWN_MEMBER_ID", "the group has active members")
BETWEEN = "another client has committed this offset since the check"
HIDDEN = Failure("COORDINATOR_NOT_AVAILABLE", "not available", retriable=True, outcome_unknown=True)
LOADING = Failure("COORDINATOR_LOAD_IN_PROGRESS", "loading", retriable=True)


@pytest.fixture
def one(tmp_path: Path) -> Scene:
    """One group at 10, which moves to 60."""
    return Scene(plan(MOVED_ROW), tmp_path)


@pytest.fixture
def hidden(tmp_path: Path) -> Scene:
    """An apply of a group that had no offset has ended; its one write was not acknowledged and is not seen yet."""
    scene = Scene(plan(row("a")), tmp_path)
    scene.target.script("alter", "a", Script(HIDDEN, late=True))
    assert scene.apply(group_timeout_seconds=0.0).exit_code == 4
    return scene


@pytest.mark.parametrize(
    ("failure", "exit_code", "status"), [(ALIVE, 1, RowStatus.FAILED), (HIDDEN, 4, RowStatus.UNKNOWN)]
)
def test_a_removal_is_not_said_to_be_done_where_the_hidden_append_could_not_be_overtaken(
    hidden, failure, exit_code, status
):
    hidden.target.script("alter", "a", Script(failure))
    result = hidden.rollback(group_timeout_seconds=0.0)
    assert result.exit_code == exit_code and list(statuses(result).values()) == [status]
    assert hidden.target.calls["delete"] == 0
    assert hidden.rollback().exit_code == 0 and not hidden.target.unseen["a"] and hidden.target.held("a") == {}


def test_a_group_is_deleted_whole_only_if_every_row_removes_and_nothing_else_is_committed():
    first, second = (row("g", partition=p, offset=None, decision=Decision.REMOVE) for p in (0, 1))
    commits = {r.target_partition: Commit(60) for r in (first, second)}
    assert goes_whole([first, second], commits) and goes_whole([first, second], {})
    assert not goes_whole([first], commits), "another offset would go with it"
    assert not goes_whole([first, row("g", partition=1)], commits), "the other row is set"


def test_a_failure_for_sure_does_not_undo_that_an_earlier_try_may_be_written_and_how_that_ended_is_still_told(one):
    lost = Failure("JVM_LOST", "Java ended by SIGKILL.", retriable=True, outcome_unknown=True)
    one.target.script("alter", "a", Script(lost), Script(LOADING), Script(LOADING), Script(DENIED))
    result = one.apply()
    assert result.exit_code == 4 and list(statuses(result).values()) == [RowStatus.UNKNOWN]
    assert "Java ended by SIGKILL. After that: not allowed" in result.rows[0].detail
    assert "loading" not in result.rows[0].detail
    assert one.journal.read().applied["a"].results == {P0: UNKNOWN} and len(one.undo().rows) == 1
    one.target.offsets["a"][P0] = Commit(77)
    assert one.rollback().exit_code == 3 and one.target.held("a") == {("A.orders", 0): 77}, "that is somebody else's"


@pytest.mark.parametrize(("answer", "exit_code"), [(HIDDEN, 4), (LOADING, 1)])
@pytest.mark.parametrize("rows", [[MOVED_ROW], [MOVED_ROW, SECOND_ROW]], ids=["one row", "one of two rows"])
def test_what_somebody_has_committed_between_two_tries_is_not_overwritten_nor_the_rest_of_its_group_written(
    tmp_path, answer, exit_code, rows
):
    scene = Scene(plan(*rows), tmp_path)
    before = scene.target.held("a")
    scene.target.script("alter", "a", Script(answer))
    scene.target.when("commits", lambda: scene.target.offsets["a"].update({P0: Commit(65)}), once_written=True)
    result = scene.apply()
    assert result.exit_code == exit_code and BETWEEN in result.rows[0].detail
    assert scene.target.held("a") == before | {("A.orders", 0): 65} and scene.target.calls["alter"] == 1


def test_a_group_that_could_not_be_read_between_two_tries_is_read_again_before_the_next_one(one):
    one.target.script("alter", "a", *[Script(LOADING)] * 8)
    moved: list[str] = []

    def move(call):
        if call == "alter" and one.target.calls["alter"]:
            one.target.script("commits", "a", Script(LOADING))  # the look between this try and the next
        if call == "commits" and one.clock.waited > 20 and not moved:
            moved.append(call)
            one.target.offsets["a"][P0] = Commit(65)

    one.target.on_call = move
    result = one.apply()
    assert one.clock.waited > 20 and one.target.held("a") == {("A.orders", 0): 65}
    assert result.exit_code == 1 and BETWEEN in result.rows[0].detail


def test_a_partition_that_the_answer_leaves_out_is_unknown_and_written_again(tmp_path):
    scene = Scene(plan(MOVED_ROW, SECOND_ROW), tmp_path)
    alter = scene.target.alter

    def forgetful(wanted: Mapping[str, Commits]) -> Outcomes:
        # Neither carried out nor answered.
        first = scene.target.calls["alter"] == 0
        return alter({g: {p: c for p, c in commits.items() if p == P0 or not first} for g, commits in wanted.items()})

    scene.target.alter = forgetful
    result = scene.apply()
    assert result.exit_code == 0 and scene.target.calls["alter"] == 2
    assert scene.target.held("a") == {("A.orders", 0): 60, ("A.orders", 1): 60}


NO_SPACE = os.strerror(errno.ENOSPC)


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


def test_what_py4j_logs_by_the_root_logger_is_kept_off_the_terminal_and_nothing_else_is() -> None:
    root, before = logging.getLogger(), list(logging.getLogger().filters)

    def shown(path: str) -> bool:
        said = "KeyboardInterrupt while sending command."
        return bool(root.filter(logging.LogRecord("root", logging.INFO, path, 1, said, None, None)))

    try:
        _quieten_py4j()
        assert not shown("/venv/site-packages/py4j/clientserver.py")
        assert shown("/app/migrate/py4j_like.py") and not logging.getLogger("py4j").propagate
    finally:
        root.filters[:] = before


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
    said = BETWEEN in result.rows[0].detail
    assert (result.exit_code, said) == ((4, True) if there == 65 else (0, False))
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


@pytest.mark.parametrize(
    ("failure", "breaks", "seconds", "told", "clients"),
    [
        (TIMED_OUT, False, 60.0, [GOOD, GOOD, GOOD], 2),
        (DENIED, False, 60.0, [GOOD, DENIED.code, GOOD], 1),
        (TIMED_OUT, False, 0.0, [GOOD, TIMED_OUT.code, GOOD], 1),
        (TIMED_OUT, True, 0.0, [GOOD, TIMED_OUT.code, "NO_ANSWER"], 1),
    ],
    ids=[
        "what passes is read again",
        "what is denied is not",
        "nor what passes too late",
        "the client breaks after it",
    ],
)
def test_of_groups_that_are_read_back_each_is_told(monkeypatch, failure, breaks, seconds, told, clients):
    monkeypatch.setattr(read_back, "READ_CHUNK", 1)
    target, _ = clusters(plan(*(row(group, target_prior=10) for group in "abc")))
    target.script("commits", "b", Script(failure))
    target.when("commits", lambda: setattr(target, "down", breaks and target.calls["commits"] == 2))
    read = read_commits(target, list("abc"), FakeClock(), seconds)
    assert [r.code if isinstance(r, Failure) else r for r in (read[group] for group in "abc")] == told
    assert target.clients == 1 + clients


@pytest.fixture(params=["write", "sync"])
def full_disk(request, monkeypatch):
    """Let the disk be full from the first event of a kind on, or at the sync that follows it, while a function runs."""

    def during(event: str, act):
        write, sync, came = JournalWriter.write, os.fsync, []

        def writing(self: JournalWriter, name: str, **fields: object):
            came.extend([name] if name == event else [])
            if came and request.param == "write":
                raise JournalLost(f"the journal cannot be written any more ({NO_SPACE})")
            write(self, name, **fields)

        def syncing(descriptor: int):
            if came:
                raise OSError(errno.ENOSPC, NO_SPACE)
            sync(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(JournalWriter, "write", writing)
            patch.setattr("migrate.apply.journal.os.fsync", syncing)
            return act()

    return during


@pytest.mark.parametrize(
    ("event", "missing"),
    [
        ("outcome", "what the cluster answered from then on"),
        ("readback", "what was read back, and how this run ended"),
        ("end", "how this run ended"),
    ],
)
def test_a_disk_that_fills_after_the_last_write_loses_no_result(scene, full_disk, event, missing):
    result = full_disk(event, scene.apply)
    assert result.exit_code == 4 and set(statuses(result).values()) == {RowStatus.SET}
    assert missing in result.journal_gap and NO_SPACE in text(result)
    assert text(result).startswith("APPLIED, BUT THE JOURNAL IS INCOMPLETE: see below\n")
    assert scene.apply().exit_code == 0, "with room again the same command finishes"
    assert scene.rollback().exit_code == 0 and scene.target.held("a") == {("A.orders", 0): 10, ("A.orders", 1): 11}


def test_a_disk_that_is_full_before_the_first_write_stops_there(scene, full_disk):
    for event in ("begin", "backup"):
        with pytest.raises(MigrateError, match="Nothing was (written|changed)"):
            full_disk(event, scene.apply)
    result = full_disk("intent", scene.apply)
    assert result.exit_code == 1 and scene.target.writes == 0 and set(statuses(result).values()) == {RowStatus.PLANNED}
    assert text(result).startswith("FAILED: no offset was set") and NO_SPACE in text(result)
    assert scene.apply().exit_code == 0


def test_a_disk_that_is_full_where_only_an_earlier_write_is_to_be_noted_stops_there(scene, full_disk):
    scene.target.crash_after = 3
    with pytest.raises(Crash):
        scene.apply()
    with pytest.raises(MigrateError, match="Nothing was written"):
        full_disk("outcome", scene.apply)
    assert scene.apply().exit_code == 0 and scene.target.calls["alter"] == 1


def test_a_cluster_that_goes_while_offsets_are_removed_leaves_their_outcome_unknown(scene):
    scene.apply()
    scene.target.when("delete", lambda: setattr(scene.target, "down", True))
    result = scene.rollback(group_timeout_seconds=0.0)
    assert result.exit_code == 4 and statuses(result)["b", "orders", 0] is RowStatus.UNKNOWN
    scene.target.calm()
    scene.target.down = False
    assert scene.rollback().exit_code == 0 and "b" not in scene.target.groups()


@pytest.mark.parametrize(
    ("fails", "status", "said"),
    [(1000, RowStatus.UNKNOWN, "Too many open files"), (1, RowStatus.SET, "APPLIED, AND ENDED EARLY")],
)
def test_a_client_that_can_not_be_started_again_does_not_hide_what_was_written(
    tmp_path, monkeypatch, fails, status, said
):
    scene, calls = Scene(plan(row("a")), tmp_path), list[int]()
    scene.target.script("alter", "a", Script(MOVED, applied=True))

    def renewing(self: FakeCluster) -> FakeCluster:
        calls.append(1)
        if len(calls) <= fails:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self

    monkeypatch.setattr(FakeCluster, "renewed", renewing)
    result = scene.apply(group_timeout_seconds=0.5)
    assert result.exit_code == 4 and set(statuses(result).values()) == {status} and said in text(result)


@pytest.mark.parametrize("replaced_by", ["another plan", "nothing", "no plan"])
def test_a_plan_file_that_was_replaced_while_it_was_assessed_is_not_applied(scene, tmp_path, replaced_by):
    path = tmp_path / "cutover.plan"
    write_plan(scene.plan, path)

    def replace_it(call):
        path.unlink(missing_ok=True)
        if replaced_by == "another plan":
            write_plan(plan(row("z")), path)
        elif replaced_by == "no plan":
            path.write_text("a letter")

    scene.target.on_call = replace_it
    with pytest.raises(Refused, match="while it was being looked at"):
        scene.apply(begun=lambda: refuse_replaced(scene.plan, path))
    assert scene.target.writes == 0 and not scene.journal.read().applied
    scene.target.calm()
    path.unlink(missing_ok=True)
    write_plan(scene.plan, path)
    assert scene.apply(begun=lambda: refuse_replaced(scene.plan, path)).exit_code == 0
