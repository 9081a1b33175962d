"""The lab itself: what it promises to the tests and demos that stand on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from tests.integration.clusters import create_topic
from tests.lab.lab import Lab
from tests.lab.reading import topic_reader
from tests.lab.waiting import LabError, wait_until
from tests.mockcluster import LIST_OFFSETS, NOT_LEADER_OR_FOLLOWER, MockCluster

REPOSITORY = Path(__file__).resolve().parents[2]

OWNER = """
import sys
from pathlib import Path
from tests.lab.process import GuardedProcess
# Every JVM of a lab has a guard of this kind.
process = GuardedProcess("sleeper", ["sleep", "600"], Path(sys.argv[1]))
process.start()
print(process.pid, flush=True)
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


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(count):
        producer.produce(topic, key=f"k{number}", value=f"v{number}")
    assert producer.flush(30) == 0


def test_readers_wait_until_a_young_partition_has_a_leader() -> None:
    young = MockCluster(1)
    young.create_topic("young", 1)
    young.will_answer(LIST_OFFSETS, [NOT_LEADER_OR_FOLLOWER] * 3)
    with topic_reader(young.bootstrap) as reader:
        assert reader.bounds("young", 0) == (0, 0)


def test_a_paused_mirror_copies_nothing_until_it_is_resumed(lab: Lab) -> None:
    topic = f"paused-{uuid4().hex[:8]}"
    create_topic(lab.source_bootstrap, topic, 1)
    produce(lab.source_bootstrap, topic, 10)
    lab.mirror.wait_until_replicated([topic])
    lab.mirror.pause()
    try:
        produce(lab.source_bootstrap, topic, 10)
        with pytest.raises(LabError, match=f"{topic}-0 copied to 9 of 19"):
            lab.mirror.wait_until_replicated([topic], deadline_seconds=2)
    finally:
        lab.mirror.resume()
    lab.mirror.wait_until_replicated([topic])


def test_nothing_outlives_a_killed_owner(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "sleeper.log")]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert alive(pid)
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not alive(pid), 10, "the end of what it has started")


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
        assert again.returncode == 0 and "already up" in again.stdout
        assert lab_script("status").returncode == 0
    finally:
        assert lab_script("down").returncode == 0
    assert lab_script("status").returncode == 3
