"""The JVM that writes commit metadata is killed, or the terminal closes: what was asked is read back and finished."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from migrate.apply.history import SET, UNKNOWN, read_history
from migrate.plan.companions import journal_path
from tests.integration.cli import REPOSITORY, CommandLine, Ran
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.integration.madeplan import made_plan, options_for, saved
from tests.integration.running import applying
from tests.lab.cluster import Cluster
from tests.lab.waiting import wait_until

PLAN, TOPIC, COPY = "cutover.plan", "orders", "A.orders"
# Only Kafka's Java client can write it.
METADATA = "é\x00m"
GROUPS, PARTITIONS = 60, 2
DEADLINE_SECONDS = 120.0
# On a slow machine the look before is soon too old, and is made again before each write: what the broker keeps back has
# to be a write.
UNHURRIED = "from migrate.apply import write; write.FRESH_SECONDS = 3600.0"


@dataclass
class Cutover:
    """A plan whose every offset carries metadata, what it is to set, and who tells what is set."""

    cluster: Cluster
    judge: JavaJudge
    commands: CommandLine
    journal: Path
    wanted: HeldByGroup
    _looks: list[int] = field(default_factory=list)

    def stands_still(self) -> bool:
        """True once the journal has not grown in three looks."""
        self._looks.append(self.journal.stat().st_size)
        return self._looks[-3:] == 3 * self._looks[-1:]

    def held(self) -> HeldByGroup:
        return {group: held for group, held in self.judge.held().items() if group in self.wanted and held}

    def is_set(self) -> bool:
        """True if all stands there, and in the journal as well."""
        fingerprint = self.commands.approved(PLAN)[1]
        traces = read_history(self.journal.read_bytes(), self.journal.name, fingerprint).applied
        assert traces.keys() == self.wanted.keys()
        assert all(set(trace.results.values()) == {SET} and trace.read_back for trace in traces.values())
        return self.held() == self.wanted


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, JavaJudge]]:
    cluster = Cluster("dying", tmp_path_factory.mktemp("dying"))
    try:
        cluster.start()
        cluster.create_topic(COPY, PARTITIONS)
        with JavaJudge(cluster) as judge:
            yield cluster, judge
    finally:
        cluster.kill()


@pytest.fixture
def cutover(judged: tuple[Cluster, JavaJudge], tmp_path: Path) -> Cutover:
    cluster, judge = judged
    offsets = {f"{tmp_path.name}-{n}": {p: (10 * n + p, None) for p in range(PARTITIONS)} for n in range(GROUPS)}
    plan = made_plan(cluster.bootstrap, TOPIC, offsets, 1_700_000_000_000, METADATA)
    journal = journal_path(saved(plan, tmp_path / PLAN), plan.fingerprint)
    wanted = {g: {(COPY, p): (o, METADATA) for p, (o, _) in at.items()} for g, at in offsets.items()}
    return Cutover(cluster, judge, CommandLine(tmp_path, options_for(tmp_path, cluster.bootstrap)), journal, wanted)


def interfered(cutover: Cutover, meddle: Callable[[int], None]) -> Ran:
    """Run apply, and meddle with it (its process id is given) while the broker keeps an answer to a write back."""
    unhurried = cutover.commands.folder / "unhurried"
    unhurried.mkdir()
    (unhurried / "sitecustomize.py").write_text(UNHURRIED)
    broker, path = cutover.cluster.brokers[0].process, {"PYTHONPATH": f"{unhurried}:{REPOSITORY}"}
    with applying(cutover.commands, PLAN, groups=5, concurrency=1, environment=path) as running:
        broker.pause()
        try:
            wait_until(cutover.stands_still, DEADLINE_SECONDS, "a write to be kept back")
            meddle(running.process.pid)
        finally:
            broker.resume()
        return running.result()


def kill_jvm(pid: int) -> None:
    """Kill the JVM that a command has started."""
    children = [int(c) for each in Path(f"/proc/{pid}/task").glob("*/children") for c in each.read_text().split()]
    (jvm,) = (child for child in children if Path(f"/proc/{child}/comm").read_text().strip() == "java")
    os.kill(jvm, signal.SIGKILL)


def test_what_a_killed_jvm_was_asked_is_read_back_and_a_new_one_writes_the_rest(cutover: Cutover) -> None:
    ran = interfered(cutover, kill_jvm).expect(0)
    assert f'"{UNKNOWN}"'.encode() in cutover.journal.read_bytes(), "it was asked nothing when it was killed"
    assert ran.stdout.startswith(f"APPLIED: {GROUPS * PARTITIONS} offsets")
    assert "journal can" not in ran.stdout and "py4j" not in ran.stderr.lower()
    assert cutover.is_set()
    cutover.commands.undo(PLAN).expect(0)
    assert cutover.held() == {}


def test_a_terminal_that_closes_ends_apply_between_two_groups_and_no_process_that_it_needs(cutover: Cutover) -> None:
    # What the kernel does to all that run in a terminal.
    ran = interfered(cutover, lambda pid: os.killpg(pid, signal.SIGHUP)).expect(4)
    assert "interrupted: stopped before all groups were set" in ran.stdout
    held = cutover.held()
    assert held and held.items() < cutover.wanted.items()
    assert f"{len(held) * PARTITIONS} set" in " ".join(ran.stdout.split()), ran
    cutover.commands.execute(PLAN).expect(0)
    assert cutover.is_set()
