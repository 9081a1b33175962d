"""The JVM that writes commit metadata is killed, or the terminal closes: what was asked is read back and finished."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from migrate.apply.history import SET, UNKNOWN, read_history
from migrate.plan.companions import journal_path
from migrate.plan.plan import Plan
from tests.integration.cli import REPOSITORY, CommandLine, Ran
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.integration.madeplan import made_plan, options_for, saved
from tests.integration.running import started
from tests.lab.cluster import Cluster
from tests.lab.jars import java_executable
from tests.lab.waiting import wait_until

PLAN, TOPIC, COPY = "cutover.plan", "orders", "A.orders"
METADATA = "é\x00m"
GROUPS, PARTITIONS = 60, 2
DEADLINE_SECONDS = 120.0
# Few groups at a time, so that much is left to write when something happens.
NARROW = ("--concurrency", "1")
# On a slow machine the look before is soon too old, and is made again before each write: what the broker keeps back has
# to be a write.
UNHURRIED = "from migrate.apply import write; write.FRESH_SECONDS = 3600.0"


@dataclass
class Ground:
    """A broker, and a plan whose every offset carries metadata: only Kafka's Java client can write it."""

    cluster: Cluster
    judge: JavaJudge
    plans: int = 0

    def cutover(self, folder: Path) -> "Cutover":
        self.plans += 1
        names = [f"run{self.plans}-{n:03}" for n in range(GROUPS)]
        offsets = {g: {p: (10 * n + p, None) for p in range(PARTITIONS)} for n, g in enumerate(names)}
        plan = made_plan(self.cluster.bootstrap, TOPIC, offsets, 1_700_000_000_000 + self.plans, METADATA)
        wanted = {g: {(COPY, p): (o, METADATA) for p, (o, _) in at.items()} for g, at in offsets.items()}
        commands = CommandLine(folder, options_for(folder, self.cluster.bootstrap))
        return Cutover(self, plan, saved(plan, folder / PLAN), commands, wanted)


@dataclass
class Cutover:
    """One plan of the ground's, and what it is to set."""

    ground: Ground
    plan: Plan
    path: Path
    commands: CommandLine
    wanted: HeldByGroup
    _looks: list[int] = field(default_factory=list)

    @property
    def journal(self) -> Path:
        return journal_path(self.path, self.plan.fingerprint)

    def events(self, kind: str) -> int:
        return self.journal.read_bytes().count(b'"event":"%s"' % kind.encode()) if self.journal.exists() else 0

    def stands_still(self) -> bool:
        """True once the journal has not grown in three looks."""
        self._looks.append(self.journal.stat().st_size)
        return self._looks[-3:] == 3 * self._looks[-1:]

    def held(self) -> HeldByGroup:
        return {group: held for group, held in self.ground.judge.held().items() if group in self.wanted and held}

    def all_set_in_the_journal(self) -> bool:
        history = read_history(self.journal.read_bytes(), self.journal.name, self.plan.fingerprint)
        traces = history.applied
        return traces.keys() == self.wanted.keys() and all(
            set(trace.results.values()) == {SET} and trace.read_back for trace in traces.values()
        )


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    cluster = Cluster("dying", tmp_path_factory.mktemp("dying"))
    try:
        cluster.start()
        cluster.create_topic(COPY, PARTITIONS)
        with JavaJudge(cluster) as judge:
            yield Ground(cluster, judge)
    finally:
        cluster.kill()


def interfered(cutover: Cutover, meddle: Callable[[int], None], environment: Mapping[str, str] | None = None) -> Ran:
    """Run apply, and meddle with it (its process id is given) while the broker keeps an answer to a write back."""
    unhurried = cutover.commands.folder / "unhurried"
    unhurried.mkdir()
    (unhurried / "sitecustomize.py").write_text(UNHURRIED)
    words = ("apply", PLAN, *cutover.commands.clusters, "--approve", cutover.plan.fingerprint, "--execute", *NARROW)
    settings = {"PYTHONPATH": f"{unhurried}:{REPOSITORY}", **(environment or {})}
    broker = cutover.ground.cluster.brokers[0].process
    # Who works with core dumps on must not get one of ours.
    with_dumps = ("sh", "-c", 'ulimit -c unlimited 2>/dev/null; exec "$0" "$@"')
    with started(cutover.commands, *words, before=with_dumps, environment=settings) as running:
        wait_until(
            lambda: cutover.events("outcome") >= 5,
            DEADLINE_SECONDS, "the first groups to be written", poll_seconds=0.002,
        )  # fmt: skip
        broker.pause()
        try:
            wait_until(cutover.stands_still, DEADLINE_SECONDS, "a write to be kept back")
            meddle(running.process.pid)
        finally:
            broker.resume()
        return running.result()


def children_of(pid: int) -> list[int]:
    return [int(c) for each in Path(f"/proc/{pid}/task").glob("*/children") for c in each.read_text().split()]


def jvm_of(pid: int) -> int:
    """The process id of the command's JVM."""
    (jvm,) = (child for child in children_of(pid) if Path(f"/proc/{child}/comm").read_text().strip() == "java")
    return jvm


def kill_jvm(pid: int) -> None:
    os.kill(jvm_of(pid), signal.SIGKILL)


def test_what_a_killed_jvm_was_asked_is_read_back_and_a_new_one_writes_the_rest(ground: Ground, tmp_path: Path) -> None:
    cutover = ground.cutover(tmp_path)
    ran = interfered(cutover, kill_jvm).expect(0)
    assert f'"{UNKNOWN}"'.encode() in cutover.journal.read_bytes(), "it was asked nothing when it was killed"
    assert ran.stdout.startswith(f"APPLIED: {len(cutover.plan.rows)} offsets")
    assert "journal can" not in ran.stdout and "py4j" not in ran.stderr.lower()
    assert cutover.held() == cutover.wanted and cutover.all_set_in_the_journal()
    cutover.commands.undo(PLAN).expect(0)
    assert cutover.held() == {}


@pytest.mark.long
def test_where_no_new_jvm_starts_nothing_that_was_asked_counts_as_failed(ground: Ground, tmp_path: Path) -> None:
    cutover, home, gone = ground.cutover(tmp_path), tmp_path / "java", tmp_path / "gone"
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\n[ -e "{gone}" ] && exit 1\nexec "{java_executable()}" "$@"\n')
    java.chmod(0o755)

    def kill_for_good(pid: int) -> None:
        gone.touch()
        kill_jvm(pid)

    ran = interfered(cutover, kill_for_good, {"JAVA_HOME": str(home)}).expect(4)
    assert "journal can" not in ran.stdout and "py4j" not in ran.stderr.lower()
    history = read_history(cutover.journal.read_bytes(), cutover.journal.name, cutover.plan.fingerprint)
    for group, held in cutover.held().items():
        assert held.keys() <= {tuple(place) for place in history.applied[group].written()}, ran
    assert "SIGKILL" in ran.stdout, ran
    gone.unlink()
    cutover.commands.execute(PLAN).expect(0)
    assert cutover.held() == cutover.wanted and cutover.all_set_in_the_journal()


def test_a_terminal_that_closes_ends_apply_between_two_groups_and_no_process_that_it_needs(
    ground: Ground, tmp_path: Path
) -> None:
    cutover = ground.cutover(tmp_path)
    # What the kernel does to all that run in a terminal.
    ran = interfered(cutover, lambda pid: os.killpg(pid, signal.SIGHUP)).expect(4)
    assert "interrupted: stopped before all groups were set" in ran.stdout
    held = cutover.held()
    assert held and held.items() < cutover.wanted.items()
    assert f"{len(held) * PARTITIONS} set" in " ".join(ran.stdout.split()), ran
    cutover.commands.execute(PLAN).expect(0)
    assert cutover.held() == cutover.wanted and cutover.all_set_in_the_journal()


@pytest.mark.long
def test_no_process_of_a_run_can_dump_its_memory_or_is_reached_by_its_terminal(ground: Ground, tmp_path: Path) -> None:
    cutover = ground.cutover(tmp_path)
    seen: dict[str, tuple[str, bool]] = {}

    def look(pid: int) -> None:
        for member in (pid, *children_of(pid)):
            (limit,) = (x for x in Path(f"/proc/{member}/limits").read_text().splitlines() if "core file" in x)
            words = Path(f"/proc/{member}/cmdline").read_bytes().decode().split("\0")
            seen[f"{member} {words[0]}"] = (limit.split()[4], member != pid and os.getpgid(member) == pid)

    interfered(cutover, look).expect(0)
    assert len(seen) >= 3
    # Less than a page is no dump. 0 would still be piped to a program, but is what nobody may raise.
    assert set(seen.values()) <= {("0", False), ("1", False)}
