"""The client process: started late, asked again when it dies, gone with its owner, and holding what it is given."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from migrate.apply.history import APPLY, SET
from migrate.apply.journal import Journal
from migrate.apply.write import GroupWriter
from migrate.clock import SystemClock
from migrate.errors import ClusterError
from migrate.kafka.cluster import KafkaCluster
from migrate.kafka.settings import ClientSettings
from migrate.model import Commit, Side, TopicPartition
from migrate.plan.companions import journal_path
from migrate.silence import silence_text
from tests import mockcluster
from tests.mockcluster import COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, MockCluster
from tests.unit.plans import plan, row

DEADLINE_SECONDS = 30.0
PASSWORD = "hidden-from-everybody"
PLACE = TopicPartition("t", 0)


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def state_of(pid: int) -> str:
    """What the kernel says of a process: "T" is stopped, "Z" over, "" gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def alive(pid: int) -> bool:
    return state_of(pid) not in ("", "Z")


def locks(file: IO[str]) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def silent_port() -> socket.socket:
    """A broker that takes connections and says nothing."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(20)
    return listener


def admin(listener: socket.socket, deadline_seconds: float = 3600.0) -> KafkaCluster:
    bootstrap = f"127.0.0.1:{listener.getsockname()[1]}"
    config = {"bootstrap.servers": bootstrap, "sasl.password": PASSWORD}
    return KafkaCluster(ClientSettings(Side.TARGET, "B", f"target B ({bootstrap})", config), deadline_seconds)


def test_no_process_before_the_first_call_no_setting_on_its_command_line_and_none_after_the_end() -> None:
    with silent_port() as listener:
        hosted = admin(listener, 0.2)
        assert hosted.client.pid is None
        with pytest.raises(ClusterError, match="target B .* cannot be reached"):
            hosted.facts()
        pid = hosted.client.pid
        assert pid is not None and alive(pid)
        assert PASSWORD.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        hosted.close()
        assert hosted.client.pid is None and not alive(pid)


@contextmanager
def in_thread(call: Callable[[], object]) -> Iterator[list[Any]]:
    """What the call answers or raises, at the end of the block at the latest."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(call())
        except ClusterError as error:
            answers.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield answers
    thread.join(DEADLINE_SECONDS)


def kill(hosted: KafkaCluster, listener: socket.socket, number: signal.Signals) -> int:
    """Kill the process once it is at work: it has called the broker."""
    listener.accept()[0].close()
    pid = hosted.client.pid
    assert pid is not None
    os.kill(pid, number)
    return pid


def test_while_it_waits_for_a_cluster_that_says_nothing_that_cluster_is_named(monkeypatch) -> None:
    monkeypatch.setattr("migrate.silence.SILENT_SECONDS", 0.0)
    with silent_port() as listener:
        hosted = admin(listener)
        with in_thread(hosted.facts):
            until(lambda: silence_text().startswith("no answer from target B for "), "nobody says who is waited for")
            assert silence_text().endswith(" of 3600 s")
            hosted.close()
        assert silence_text() == ""


def test_a_question_is_asked_again_of_a_new_process_when_one_dies_over_it() -> None:
    with silent_port() as listener:
        hosted = admin(listener, 8.0)
        with in_thread(lambda: hosted.commits(["g"])) as answers:
            first = kill(hosted, listener, signal.SIGSEGV)
            until(lambda: hosted.client.pid not in (None, first), "no second process")
            assert hosted.client.deaths == 1 and not answers
        assert isinstance(answers[0], ClusterError) and hosted.client.deaths == 1
        hosted.close()


def test_a_write_over_which_it_dies_is_unknown_and_not_done_again() -> None:
    with silent_port() as listener:
        hosted = admin(listener)
        with in_thread(lambda: hosted.alter({"g": {PLACE: Commit(7)}})) as answers:
            kill(hosted, listener, signal.SIGABRT)
        failure = answers[0]["g"][PLACE]
        assert failure.outcome_unknown and failure.retriable and failure.code == "_CLIENT_DIED"
        assert "SIGABRT" in failure.message and hosted.client.pid is None
        with in_thread(lambda: hosted.delete_groups(["g"])) as answers:
            kill(hosted, listener, signal.SIGSEGV)
        assert answers[0]["g"].outcome_unknown


OWNER = """
import fcntl, os, sys
from migrate.kafka.cluster import KafkaCluster
from migrate.kafka.settings import ClientSettings
from migrate.model import Commit, Side, TopicPartition
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
config = {"bootstrap.servers": sys.argv[2]}
hosted = KafkaCluster(ClientSettings(Side.TARGET, "B", "target B (silent)", config), 3600.0).holding(lock)
hosted.alter({"g": {TopicPartition("t", 0): Commit(7)}})
"""


def test_killed_its_owner_takes_it_along_and_the_lock_falls_with_the_last_of_them(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with silent_port() as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        # Of the tree that is tested, also where another one is installed.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        owner = subprocess.Popen([sys.executable, "-c", OWNER, str(file), address], env=environment)
        caller, _ = listener.accept()
        (child,) = map(int, Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split())
        os.kill(child, signal.SIGSTOP)
        until(lambda: state_of(child) == "T", "the client process goes on")
        owner.kill()
        owner.wait(DEADLINE_SECONDS)
        with file.open() as again:
            assert not locks(again), "the lock fell with the owner alone"
            os.kill(child, signal.SIGCONT)
            until(lambda: not alive(child), "the client process outlives its owner")
            until(lambda: locks(again), "the lock outlives them both")
        caller.close()


@pytest.fixture(scope="module")
def mock() -> MockCluster:
    made = MockCluster()
    made.create_topic("A.orders", 3)
    return made


def of(mock: MockCluster) -> KafkaCluster:
    config = {"bootstrap.servers": mock.bootstrap}
    return KafkaCluster(ClientSettings(Side.TARGET, "B", "target B (mock)", config), DEADLINE_SECONDS)


@pytest.mark.parametrize("code", [NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE])
def test_an_answer_that_librdkafka_dies_of_is_asked_for_again_and_is_no_silence(mock, monkeypatch, code):
    heard: list[str] = []
    monkeypatch.setattr("migrate.kafka.cluster.heard", heard.append)
    hosted = of(mock)
    assert hosted.topics()["A.orders"] == 3
    mock.will_answer(mockcluster.OFFSET_FETCH, [code, code])
    assert hosted.commits(["g"]) == {"g": {}} and set(heard) == {"target B (mock)"}
    # Two deaths by librdkafka 2.16 (#5040); a later one may have learned to live with it.
    assert hosted.client.deaths in (0, 2)
    hosted.close()


def test_applied_while_coordinators_move_load_and_go_away(mock: MockCluster, tmp_path: Path) -> None:
    rows = [row(f"g{n}", partition=p, offset=50 + n) for n in range(20) for p in range(3)]
    made = plan(*rows)
    hosted = of(mock)
    trouble = [NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE] * 4
    mock.will_answer(mockcluster.OFFSET_COMMIT, trouble)
    journal = Journal(journal_path(tmp_path / "p", made.fingerprint), made.fingerprint, SystemClock().now_ms)
    with journal.open(APPLY, {}) as told:
        writer = GroupWriter(hosted.holding(told.lock), told, SystemClock(), DEADLINE_SECONDS, 5)
        written = writer.write_offsets(made.groups(), {}, SystemClock().monotonic())
    assert not written.trouble
    assert {a for results in written.answers.values() for a in results.values()} == {SET}
    assert all(set(t.results.values()) == {SET} for t in journal.read().applied.values())


def test_a_thread_that_outlives_the_command_gets_no_new_client_to_read_or_write_with() -> None:
    """It would write without the journal's lock, which another run has by then."""
    with silent_port() as listener:
        hosted = admin(listener)
        with in_thread(lambda: hosted.commits(["g"])) as answers:
            listener.accept()[0].close()
            hosted.close()
        assert isinstance(answers[0], ClusterError) and "the command is over" in str(answers[0])
        assert hosted.alter({"g": {PLACE: Commit(5)}})["g"][PLACE] is not None
        with pytest.raises(ClusterError, match="is not asked any more"):
            hosted.facts()
        assert hosted.client.pid is None
