"""The lab itself: what it promises to the tests and demos that stand on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer

from tests.integration.clusters import AnyLab, create_topic
from tests.lab.fixtures import external_lab
from tests.lab.lab import Lab
from tests.lab.process import GuardedProcess
from tests.lab.reading import Record, topic_reader
from tests.lab.waiting import LabError, wait_until
from tests.mockcluster import LIST_OFFSETS, NOT_LEADER_OR_FOLLOWER, MockCluster

REPOSITORY = Path(__file__).resolve().parents[2]
GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RECORDS = 300

OWNER = """
import sys
from pathlib import Path
from tests.lab.lab import Lab
# Every JVM of a lab has a guard of the same kind: two tell as much as three, and MM2 is slow to start.
lab = Lab(Path(sys.argv[1]), start_mirror=False).up()
print(*lab.pids(), flush=True)
sys.stdin.read()
"""


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody has fetched yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    try:
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def produce(bootstrap: str, topic: str, first: int, count: int, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(first, first + count):
        producer.produce(topic, key=f"k{number}", value=f"v{number}", partition=number % partitions)
    assert producer.flush(30) == 0


def consume_and_commit(bootstrap: str, topic: str, group: str, count: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0}
    )
    try:
        consumer.subscribe([topic])
        seen: list[object] = []

        def enough() -> bool:
            seen.extend(consumer.consume(100, timeout=1.0))
            return len(seen) >= count

        wait_until(enough, 60, f"{count} records of {topic}", lambda: f"{len(seen)} so far")
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def test_readers_see_records_without_a_value(lab: AnyLab) -> None:
    bootstrap, topic = lab.source_bootstrap, f"without-values-{uuid4().hex[:8]}"
    create_topic(bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for value in (b"x", None, b"", None):
        producer.produce(topic, value, b"k")
    assert producer.flush(30) == 0
    with topic_reader(bootstrap) as reader:
        assert [message.value() for message in reader.records(topic, 0)] == [b"x", None, b"", None]
        assert reader.last_record(topic, 0) == Record(3, b"k", None)


def test_readers_wait_until_a_young_partition_has_a_leader() -> None:
    young = MockCluster(1)
    young.create_topic("young", 1)
    young.will_answer(LIST_OFFSETS, [NOT_LEADER_OR_FOLLOWER] * 3)
    with topic_reader(young.bootstrap) as reader:
        assert reader.bounds("young", 0) == (0, 0)


@pytest.fixture(scope="module")
def own_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("own-lab")) as lab:
        yield lab


@pytest.mark.long
def test_copies_records_and_checkpoints_through_a_kill(own_lab: Lab) -> None:
    mirror = own_lab.mirror
    own_lab.source.create_topic("t1", partitions=2)
    produce(own_lab.source_bootstrap, "t1", 0, RECORDS, partitions=2)
    consume_and_commit(own_lab.source_bootstrap, "t1", "g1", RECORDS)
    mirror.wait_until_replicated(["t1"])
    mirror.wait_checkpoints(["g1"], caught_up=True)
    half = RECORDS // 2
    found = mirror.progress.checkpoints()
    assert {key: pair.downstream for key, pair in found.items()} == {
        ("g1", "A.t1", 0): half,
        ("g1", "A.t1", 1): half,
    }

    killed = mirror.pid
    assert killed is not None
    mirror.kill()
    assert not alive(killed)
    produce(own_lab.source_bootstrap, "t1", RECORDS, RECORDS, partitions=2)
    with pytest.raises(LabError, match="t1-0 copied to 149 of 299"):
        mirror.wait_until_replicated(["t1"], deadline_seconds=1)
    mirror.restart()
    assert mirror.pid != killed
    mirror.wait_until_replicated(["t1"])
    consume_and_commit(own_lab.source_bootstrap, "t1", "g1", RECORDS)
    mirror.wait_checkpoints(["g1"], caught_up=True)
    advanced = mirror.progress.checkpoints()
    assert all(pair.downstream >= RECORDS for pair in advanced.values())


def test_a_paused_mirror_copies_nothing_until_it_is_resumed(own_lab: Lab) -> None:
    own_lab.source.create_topic("t2", partitions=1)
    produce(own_lab.source_bootstrap, "t2", 0, 10, partitions=1)
    own_lab.mirror.wait_until_replicated(["t2"])
    own_lab.mirror.pause()
    try:
        produce(own_lab.source_bootstrap, "t2", 10, 10, partitions=1)
        with pytest.raises(LabError, match="t2-0 copied to 9 of 19"):
            own_lab.mirror.wait_until_replicated(["t2"], deadline_seconds=2)
    finally:
        own_lab.mirror.resume()
    own_lab.mirror.wait_until_replicated(["t2"])


def test_a_broker_keeps_its_address_and_data_through_a_restart(own_lab: Lab) -> None:
    own_lab.source.create_topic("kept", partitions=3)
    before = own_lab.source_bootstrap
    own_lab.source.kill()
    own_lab.source.start()
    assert own_lab.source_bootstrap == before
    assert len(own_lab.source.admin().list_topics(timeout=10).topics["kept"].partitions) == 3


def test_kafkas_own_tools_run(own_lab: Lab) -> None:
    done = own_lab.kafka_tool(GROUP_COMMAND, "--bootstrap-server", own_lab.target_bootstrap, "--list")
    assert (done.returncode, done.stderr) == (0, "")


def test_clusters_of_your_own_take_the_labs_place(own_lab: Lab, tmp_path: Path) -> None:
    environment = {
        "MM2_MIGRATE_TEST_SOURCE": str(own_lab.source_properties),
        "MM2_MIGRATE_TEST_TARGET": own_lab.target_bootstrap,
        "MM2_MIGRATE_TEST_MM2_CONFIG": str(own_lab.mm2_properties),
    }
    other = external_lab(environment, tmp_path)
    assert other is not None
    assert (other.source_bootstrap, other.target_bootstrap) == (
        own_lab.source_bootstrap,
        own_lab.target_bootstrap,
    )
    assert other.target_properties.read_text() == f"bootstrap.servers={own_lab.target_bootstrap}\n"
    assert other.options.checkpoints_topic == own_lab.options.checkpoints_topic
    with pytest.raises(pytest.skip.Exception, match="left alone"):
        other.mirror.kill()
    with pytest.raises(LabError, match="set all of"):
        external_lab({"MM2_MIGRATE_TEST_SOURCE": "127.0.0.1:9"}, tmp_path)


def test_nothing_outlives_a_killed_owner(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "lab")]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pids = [int(pid) for pid in owner.stdout.readline().split()]
        assert len(pids) == 2
        assert all(alive(pid) for pid in pids)
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(alive(pid) for pid in pids), 10, "the end of the JVMs")


@pytest.mark.long
def test_the_script_starts_reports_and_stops_a_background_lab(tmp_path: Path) -> None:
    def lab_script(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.lab", *args, "--dir", str(tmp_path / "lab")]
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=240)

    assert lab_script("status").returncode == 3
    try:
        up = lab_script("up", "--offset-syncs-location", "target")
        assert up.returncode == 0, up.stderr
        assert str(tmp_path / "lab" / "mm2.properties") in up.stdout
        again = lab_script("up")
        assert again.returncode == 0
        assert "already up" in again.stdout
        assert lab_script("status").returncode == 0
    finally:
        assert lab_script("down").returncode == 0
    assert lab_script("status").returncode == 3


def test_a_process_that_ends_early_is_noticed_at_once_with_its_last_words(tmp_path: Path) -> None:
    process = GuardedProcess("thing", ["sh", "-c", "echo last words; exit 3"], tmp_path / "thing.log")
    process.start()
    with pytest.raises(LabError, match=r"thing ended with status 3 before it was there(.|\n)*last words"):
        process.wait_ready(lambda: False, 60, "it was there")
    assert process.wait_exit(10) == 3


def test_a_process_that_ignores_sigterm_is_killed_after_the_deadline(tmp_path: Path) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    process = GuardedProcess("stubborn", ["sh", "-c", script], tmp_path / "stubborn.log")
    process.start()
    process.wait_ready(lambda: "ready" in process.log_file.read_text(), 10, "it said ready")
    assert process.stop(deadline_seconds=0.5) is False
    assert process.exit_status == 128 + signal.SIGKILL
    assert process.pid is not None
    assert not alive(process.pid)


BUSY = """
import hashlib, threading
def work():
    while True:
        hashlib.sha256(bytes(10_000_000)).digest()
for _ in range(20):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


def test_no_thread_of_a_paused_process_still_runs(tmp_path: Path) -> None:
    process = GuardedProcess("busy", [sys.executable, "-c", BUSY], tmp_path / "busy.log")
    process.start()
    try:
        process.wait_ready(lambda: "ready" in process.log_file.read_text(), 30, "it said ready")
        process.pause()
        states = [
            line.read_text().rpartition(")")[2].split()[0] for line in Path(f"/proc/{process.pid}/task").glob("*/stat")
        ]
        assert len(states) == 21 and set(states) == {"T"}
    finally:
        process.kill()


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    process = GuardedProcess("nothing", ["/no/such/program"], tmp_path / "nothing.log")
    with pytest.raises(LabError, match="nothing could not be started: .*No such file"):
        process.start()


def test_a_command_dies_with_a_killed_guard(tmp_path: Path) -> None:
    process = GuardedProcess("orphan", ["sleep", "600"], tmp_path / "orphan.log")
    process.start()
    assert process.pid is not None
    guard = process._guard
    assert guard is not None
    guard.kill()
    process.stop()
    pid = process.pid
    wait_until(lambda: not alive(pid), 10, "the end of the command")
