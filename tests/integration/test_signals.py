"""Ctrl-C, a terminal that closes and a kill, while a command waits for clusters that do not answer."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.plan.plan import Plan
from tests.integration.cli import REPOSITORY, CommandLine
from tests.integration.madeplan import made_plan, saved
from tests.lab.proxy import ProxiedCluster
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

TOPIC, COPY = "orders", "A.orders"
PLAN, APPLIED = "cutover.plan", "applied.plan"
DEADLINE_SECONDS = 120.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MM2 = """clusters = A, B
A.bootstrap.servers = {bootstrap}
B.bootstrap.servers = {bootstrap}
A->B.enabled = true
"""


@dataclass
class Ground:
    """One broker behind a network, that is both clusters; a plan that waits, and one that was applied."""

    cluster: ProxiedCluster
    commands: CommandLine
    plan: Plan
    applied: Plan


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("signals")
    cluster = ProxiedCluster("signalled", tmp_path_factory.mktemp("signalled"))
    try:
        cluster.start()
        cluster.create_topic(COPY, 1)
        cluster.create_topic(TOPIC, 1)
        (folder / "mm2.properties").write_text(MM2.format(bootstrap=cluster.proxied_bootstrap))
        flow = ("--mm2-config", "mm2.properties", "--source", "A", "--target", "B")
        commands = CommandLine(folder, flow)
        plan = made_plan(cluster.bootstrap, TOPIC, {"g": {0: (70, None)}}, 1_700_000_000_000)
        applied = made_plan(cluster.bootstrap, TOPIC, {"h": {0: (71, None)}}, 1_700_000_000_001)
        saved(plan, folder / PLAN)
        saved(applied, folder / APPLIED)
        commands.execute(APPLIED).expect(0)
        yield Ground(cluster, commands, plan, applied)
    finally:
        cluster.kill()


def words(ground: Ground, command: str) -> tuple[str, ...]:
    name, *rest = command.split()
    plan = {"apply": (PLAN, ground.plan), "verify": (PLAN, ground.plan), "rollback": (APPLIED, ground.applied)}
    file = (plan[name][0],) if name in plan else ()
    approval = ("--approve", plan[name][1].fingerprint) if "--execute" in rest else ()
    return (*([name, *rest] if name == "mm2" else [name]), *file, *ground.commands.clusters,
            *(() if name == "mm2" else rest), *approval)  # fmt: skip


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def session_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[3])
    except (FileNotFoundError, ProcessLookupError):
        return None


def left_of(session: int) -> list[int]:
    """The processes that a command has left behind."""
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and session_of(int(p.name)) == session]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize(
    "command",
    [
        "doctor",
        "plan --out new.plan",
        "apply",
        "apply --execute",
        "verify",
        "rollback --execute",
        "status",
        "status --watch",
        "mm2 offsets",
    ],
)
def test_a_command_that_waits_ends_at_once_with_one_paragraph_and_leaves_nothing_behind(
    ground: Ground, command: str, number: signal.Signals
) -> None:
    folder, network = ground.commands.folder, ground.cluster.network
    before = snapshot(folder)
    wait_until(lambda: network.is_idle, DEADLINE_SECONDS, "the connections of the command before to end")
    with network.stalled():
        held = network.held
        process = subprocess.Popen(
            [sys.executable, "-m", "migrate", *words(ground, command)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            wait_until(lambda: network.held > held, DEADLINE_SECONDS, f"{command} to wait", poll_seconds=0.01)
            process.send_signal(number)
            sent = time.monotonic()
            stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
        finally:
            process.kill()
        wait_until(lambda: not left_of(process.pid), DEADLINE_SECONDS, "its children to end")
    print(f"{command}, {number.name}: ended after {time.monotonic() - sent:.1f} s")
    story = f"$ {command}\n{stdout}\n{stderr}\nexit {process.returncode}"
    assert "Traceback" not in stderr and "Exception" not in stderr, story
    assert snapshot(folder) == before, story
    if number is signal.SIGINT:
        assert process.returncode == 1, story
        complaints = [line for line in stderr.splitlines() if line.startswith("mm2-migrate: ")]
        assert len(complaints) == 1 and "nterrupted" in complaints[0], story
    else:
        assert process.returncode == 128 + number, story
