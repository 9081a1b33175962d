"""apply, verify and rollback over a network that is slow, stalls or breaks: the right answer, or a clear one."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.cli import CommandLine
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.integration.madeplan import made_plan, options_for, saved
from tests.integration.running import applying
from tests.lab.proxy import Network, ProxiedCluster

pytestmark = pytest.mark.long

GROUPS, PARTITIONS = 60, 3
TOPIC, COPY = "orders", "A.orders"
PLAN = "cutover.plan"
SLOW_SECONDS = 0.1
RESET_EVERY_SECONDS = 0.4
# How long a stall may last before a command gives up.
IMPATIENT = ("--request-timeout", "3", "--group-timeout", "3")


@dataclass(frozen=True)
class Cutover:
    """A plan of groups that stand somewhere, the commands for it through a network, and who tells what they hold."""

    network: Network
    judge: JavaJudge
    commands: CommandLine
    before: HeldByGroup
    wanted: HeldByGroup

    def finish_and_undo(self) -> None:
        """The network is sound again: the same command finishes, verify agrees, and rollback brings all back."""
        self.commands.execute(PLAN).expect(0)
        assert self.judge.held() == self.wanted
        self.commands.verify(PLAN).expect(0)
        self.commands.undo(PLAN).expect(0)
        assert self.judge.held() == self.before


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProxiedCluster, JavaJudge]]:
    cluster = ProxiedCluster("proxied", tmp_path_factory.mktemp("proxied"))
    try:
        cluster.start()
        cluster.create_topic(COPY, PARTITIONS)
        with JavaJudge(cluster) as judge:
            judge.commit({f"g{n:02}": {(COPY, p): (n + p, "") for p in range(PARTITIONS)} for n in range(GROUPS)})
            yield cluster, judge
    finally:
        cluster.kill()


@pytest.fixture
def cutover(judged: tuple[ProxiedCluster, JavaJudge], tmp_path: Path) -> Iterator[Cutover]:
    cluster, judge = judged
    before = judge.held()
    wanted = {g: {(COPY, p): (o + 1_000, "") for (_, p), (o, _) in held.items()} for g, held in before.items()}
    offsets = {g: {p: (o, before[g][copy, p][0]) for (copy, p), (o, _) in at.items()} for g, at in wanted.items()}
    saved(made_plan(cluster.bootstrap, TOPIC, offsets, time.time_ns() // 1_000_000), tmp_path / PLAN)
    commands = CommandLine(tmp_path, options_for(tmp_path, cluster.proxied_bootstrap))
    yield Cutover(cluster.network, judge, commands, before, wanted)
    cluster.network.latency_seconds = 0.0
    cluster.network.flow()


def test_over_a_line_of_100_ms_a_cutover_goes_as_it_does_next_door(cutover: Cutover) -> None:
    cutover.network.latency_seconds = SLOW_SECONDS
    cutover.commands.apply(PLAN).expect(0)
    cutover.finish_and_undo()


def test_a_line_that_stalls_for_a_while_costs_time_and_nothing_else(cutover: Cutover) -> None:
    with applying(cutover.commands, PLAN) as running:
        with cutover.network.stalled():
            assert not running.ends_within(3.0), "it ended while nothing could be known"
        running.result().expect(0)
    assert cutover.judge.held() == cutover.wanted
    cutover.finish_and_undo()


def test_a_line_that_stalls_for_good_ends_in_what_is_known_and_the_same_command_finishes(cutover: Cutover) -> None:
    network = cutover.network
    with applying(cutover.commands, PLAN, *IMPATIENT) as running, network.stalled():
        ran = running.result().expect(4)
    assert "unknown" in ran.stdout and "Traceback" not in ran.stdout
    cutover.finish_and_undo()


def test_connections_that_break_again_and_again_lose_nothing(cutover: Cutover) -> None:
    network = cutover.network
    broken_before = network.resets
    with applying(cutover.commands, PLAN) as running:
        for _ in range(10):
            network.reset()
            if running.ends_within(RESET_EVERY_SECONDS):
                break
        ran = running.result()
    assert network.resets > broken_before
    is_through = ran.stdout.startswith("APPLIED: ")
    ran.expect(0 if is_through else 4)
    if is_through:
        assert cutover.judge.held() == cutover.wanted
    cutover.finish_and_undo()
