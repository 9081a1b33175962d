"""Ctrl-C, a terminal that closes and a kill, while a command waits for clusters that do not answer."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.plan.plan import Plan
from tests.integration.cli import CommandLine
from tests.integration.madeplan import made_plan, saved
from tests.integration.running import started
from tests.lab.proxy import ProxiedCluster
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

TOPIC, COPY = "orders", "A.orders"
PLAN, APPLIED = "cutover.plan", "applied.plan"
DEADLINE_SECONDS = 120.0
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
    file, plan = (APPLIED, ground.applied) if name == "rollback" else (PLAN, ground.plan)
    files = [file] if name in ("apply", "verify", "rollback") else []
    approval = ["--approve", plan.fingerprint] if "--execute" in rest else []
    first, last = (rest, []) if name == "mm2" else (files, rest)
    return (name, *first, *ground.commands.clusters, *last, *approval)


def snapshot(folder: Path) -> dict[str, bytes]:
    """The folder's files, but for what commands have said."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("command-"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def session_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[3])
    except (FileNotFoundError, ProcessLookupError):
        return None


def left_of(session: int) -> list[int]:
    """The processes that a command has left behind."""
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and session_of(int(p.name)) == session]


COMMANDS = (
    "doctor", "plan --out new.plan", "apply", "apply --execute", "verify", "rollback --execute", "status",
    "status --watch", "mm2 offsets",
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "number"),
    [
        *((command, signal.SIGINT) for command in COMMANDS),
        *(
            (command, number)
            for command in ("plan --out new.plan", "apply --execute", "status --watch")
            for number in (signal.SIGTERM, signal.SIGHUP)
        ),
    ],
)
def test_a_command_that_waits_ends_at_once_with_one_paragraph_and_leaves_nothing_behind(
    ground: Ground, command: str, number: signal.Signals
) -> None:
    folder, network = ground.commands.folder, ground.cluster.network
    wait_until(lambda: network.is_idle, DEADLINE_SECONDS, "the connections of the command before to end")
    before, held = snapshot(folder), network.held
    with network.stalled(), started(ground.commands, *words(ground, command)) as running:
        wait_until(lambda: network.held > held, DEADLINE_SECONDS, f"{command} to wait", poll_seconds=0.01)
        running.process.send_signal(number)
        ran = running.result()
        wait_until(lambda: not left_of(running.process.pid), DEADLINE_SECONDS, "its children to end")
    assert "Traceback" not in ran.stderr and "Exception" not in ran.stderr, str(ran)
    assert snapshot(folder) == before, str(ran)
    if number is signal.SIGINT:
        complaints = [line for line in ran.stderr.splitlines() if line.startswith("mm2-migrate: ")]
        assert len(complaints) == 1 and "nterrupted" in complaints[0], str(ran)
    assert ran.exit_code == (1 if number is signal.SIGINT else 128 + number), str(ran)
