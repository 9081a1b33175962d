"""apply, verify and rollback over a network that is slow, stalls or breaks: the right answer, or a clear one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.plan.companions import journal_path
from migrate.plan.plan import Plan
from tests.integration.cli import CommandLine
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.integration.madeplan import made_plan, options_for, saved
from tests.integration.running import Running, started
from tests.lab.proxy import ProxiedCluster
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

GROUPS, PARTITIONS = 60, 3
TOPIC, COPY = "orders", "A.orders"
PLAN = "cutover.plan"
SLOW_SECONDS = 0.1
RESET_EVERY_SECONDS = 0.4
DEADLINE_SECONDS = 150.0
# A few groups in flight at a time, so that there is an amid.
NARROW = ("--concurrency", "2")
# How long a stall may last before a command gives up.
IMPATIENT = ("--request-timeout", "3", "--group-timeout", "3")


@dataclass
class Ground:
    """A broker behind a network, with groups that stand somewhere, and who tells where."""

    cluster: ProxiedCluster
    judge: JavaJudge
    plans: int = 0

    def plan(self, before: HeldByGroup) -> Plan:
        self.plans += 1
        offsets = {
            f"g{n:02}": {p: (1_000 + 10 * n + p, before[f"g{n:02}"][COPY, p][0]) for p in range(PARTITIONS)}
            for n in range(GROUPS)
        }
        return made_plan(self.cluster.bootstrap, TOPIC, offsets, 1_700_000_000_000 + self.plans)


@dataclass
class Cutover:
    """One plan, where it goes through the network, and what stood there before."""

    ground: Ground
    plan: Plan
    path: Path
    commands: CommandLine
    before: HeldByGroup

    @property
    def wanted(self) -> HeldByGroup:
        return self.before | {
            group: {(COPY, r.partition): (r.target_offset, "") for r in self.plan.rows if r.group == group}
            for group in {r.group for r in self.plan.rows}
        }

    def is_under_way(self) -> bool:
        journal = journal_path(self.path, self.plan.fingerprint)
        return journal.exists() and b'"event":"outcome"' in journal.read_bytes()


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    cluster = ProxiedCluster("proxied", tmp_path_factory.mktemp("proxied"))
    try:
        cluster.start()
        cluster.create_topic(COPY, PARTITIONS)
        with JavaJudge(cluster) as judge:
            judge.commit({f"g{n:02}": {(COPY, p): (n + p, "") for p in range(PARTITIONS)} for n in range(GROUPS)})
            yield Ground(cluster, judge)
    finally:
        cluster.kill()


@pytest.fixture
def cutover(ground: Ground, tmp_path: Path) -> Iterator[Cutover]:
    before = ground.judge.held()
    plan = ground.plan(before)
    path = saved(plan, tmp_path / PLAN)
    commands = CommandLine(tmp_path, options_for(tmp_path, ground.cluster.proxied_bootstrap))
    yield Cutover(ground, plan, path, commands, before)
    ground.cluster.network.latency_seconds = 0.0
    ground.cluster.network.flow()


@contextmanager
def under_way(cutover: Cutover, *options: str) -> Iterator[Running]:
    """An apply that has written the first groups."""
    words = ("apply", PLAN, *cutover.commands.clusters, "--approve", cutover.plan.fingerprint, "--execute", *NARROW)
    with started(cutover.commands, *words, *options) as running:
        wait_until(
            lambda: cutover.is_under_way() or running.has_ended,
            DEADLINE_SECONDS, "the first groups to be written", poll_seconds=0.002,
        )  # fmt: skip
        yield running


def finished_and_undone(cutover: Cutover) -> None:
    """The network is sound again: the same command finishes, verify agrees, and rollback brings all back."""
    held = cutover.ground.judge.held
    cutover.commands.execute(PLAN).expect(0)
    assert held() == cutover.wanted
    cutover.commands.verify(PLAN).expect(0)
    cutover.commands.undo(PLAN).expect(0)
    assert held() == cutover.before


def test_over_a_line_of_100_ms_a_cutover_goes_as_it_does_next_door(cutover: Cutover) -> None:
    cutover.ground.cluster.network.latency_seconds = SLOW_SECONDS
    cutover.commands.apply(PLAN).expect(0)
    finished_and_undone(cutover)


def test_a_line_that_stalls_for_a_while_costs_time_and_nothing_else(cutover: Cutover) -> None:
    with under_way(cutover) as running:
        with cutover.ground.cluster.network.stalled():
            assert not running.ends_within(3.0), "it ended while nothing could be known"
        running.result().expect(0)
    assert cutover.ground.judge.held() == cutover.wanted
    finished_and_undone(cutover)


def test_a_line_that_stalls_for_good_ends_in_what_is_known_and_the_same_command_finishes(cutover: Cutover) -> None:
    network = cutover.ground.cluster.network
    with under_way(cutover, *IMPATIENT) as running, network.stalled():
        ran = running.result().expect(4)
    assert "unknown" in ran.stdout and "Traceback" not in ran.stdout
    finished_and_undone(cutover)


def test_connections_that_break_again_and_again_lose_nothing(cutover: Cutover) -> None:
    network = cutover.ground.cluster.network
    broken_before = network.resets
    with under_way(cutover) as running:
        for _ in range(10):
            network.reset()
            if running.ends_within(RESET_EVERY_SECONDS):
                break
        ran = running.result()
    assert network.resets > broken_before
    is_through = ran.stdout.startswith("APPLIED: ")
    ran.expect(0 if is_through else 4)
    if is_through:
        assert cutover.ground.judge.held() == cutover.wanted
    finished_and_undone(cutover)
