"""plan, status and verify --records over a network that is slow, stalls or breaks: the same answer, or a clear one."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tests.integration.cli import CommandLine, Ran, planned_offsets
from tests.integration.clusters import commits_on, groups_on
from tests.integration.proxied import PLAN, chosen, commands_from_afar, replicated_scene, rows_from_near
from tests.integration.running import Running, started
from tests.integration.scene import Scene
from tests.lab.fixtures import own_clusters_only
from tests.lab.lab import Lab
from tests.lab.proxy import Network, ProxiedCluster, breaking
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

GROUPS = 12
SLOW_SECONDS = 0.1
STALL_SECONDS = 3.0
RESET_EVERY_SECONDS = 0.4
# How long a cluster may be silent before a command gives up.
IMPATIENT = ("--request-timeout", "8")
# Steps of `plan` as it names them, each asked by another client: the admin, Spark, Kafka's Java client, the consumers.
ASKED_BY_ADMIN, READ_BY_SPARK, ASKED_BY_JAVA, COMPARED = (
    "listing groups on A", "reading MM2's offset syncs", "reading commits of", "comparing ",
)  # fmt: skip

# Verdicts of rows whose records were read and are as planned: a group that has read all has no next one.
PROVEN = {"equal", "at-end"}


@dataclass(frozen=True)
class Ground:
    """Two clusters behind networks, an MM2 that needs none, and the plan that is right: made next door."""

    scene: Scene
    rows: Sequence[dict[str, Any]]
    lab: Lab

    @property
    def networks(self) -> tuple[Network, Network]:
        source, target = cast(ProxiedCluster, self.lab.source), cast(ProxiedCluster, self.lab.target)
        return source.network, target.network

    @property
    def chosen(self) -> tuple[str, ...]:
        return chosen(self.scene)


@dataclass(frozen=True)
class Far:
    """The commands of one test, through the networks."""

    ground: Ground
    commands: CommandLine

    @property
    def plan_path(self) -> Path:
        return self.commands.folder / PLAN

    def plan_words(self, *options: str) -> tuple[str, ...]:
        return ("plan", *self.commands.clusters, "--settle", "1", "--out", PLAN, *self.ground.chosen, *options)

    def status_words(self, *options: str) -> tuple[str, ...]:
        return ("status", *self.commands.clusters, "--settle", "1", "--format", "json", *self.ground.chosen, *options)

    def expect_the_plan(self, ran: Ran) -> None:
        ran.expect(0)
        assert self.commands.document(PLAN)["rows"] == self.ground.rows

    def expect_a_clear_end(self, ran: Ran, *words: str) -> None:
        """One paragraph with these words, and no plan."""
        ran.expect(1)
        told = " ".join(ran.complaint().split())
        assert "Error:" not in told and len(told) < 900, str(ran)
        for word in words:
            assert word in told, f"{word!r} is not told\n{ran}"
        assert ran.stdout == "" and not self.plan_path.exists(), str(ran)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    own_clusters_only()
    with Lab(tmp_path_factory.mktemp("far"), kind=ProxiedCluster) as lab:
        scene = replicated_scene(lab, "far", GROUPS)
        yield Ground(scene, rows_from_near(scene, tmp_path_factory.mktemp("near")), lab)


@pytest.fixture
def far(ground: Ground, tmp_path: Path) -> Iterator[Far]:
    yield Far(ground, commands_from_afar(ground.lab, tmp_path))
    for network in ground.networks:
        network.latency_seconds = 0.0
        network.flow()


def stalled(network: Network, running: Running) -> None:
    """Stall until something was held back."""
    before = network.held
    network.stall()
    wait_until(lambda: network.held > before or running.has_ended, 60, "something to be held back", None, 0.01)
    assert network.held > before, f"it ended before\n{running.result()}"


def verdicts_of(document: dict[str, Any]) -> set[str]:
    return {record["verdict"] for record in document["records"]}


def test_over_lines_of_100_ms_all_answers_are_those_of_next_door(far: Far) -> None:
    ground, target = far.ground, far.ground.lab.target_bootstrap
    for network in ground.networks:
        network.latency_seconds = SLOW_SECONDS
    far.expect_the_plan(far.commands.run(*far.plan_words()))
    ready = json.loads(far.commands.run(*far.status_words()).expect(0).stdout)
    assert ready["ready"] and {g["group"] for g in ready["groups"]} == set(ground.scene.commits)
    far.commands.execute(PLAN).expect(0)
    planned = planned_offsets(ground.rows)
    held = commits_on(target, ground.scene.commits)
    assert {(g, t, p): o for g, at in held.items() for (t, p), o in at.items()} == planned
    proven = json.loads(far.commands.verify(PLAN, "--records", "--format", "json").expect(0).stdout)
    assert len(proven["records"]) == len(ground.rows) and verdicts_of(proven) <= PROVEN
    far.commands.undo(PLAN).expect(0)
    assert not groups_on(target) & set(ground.scene.commits)


@pytest.mark.parametrize("step", [ASKED_BY_ADMIN, READ_BY_SPARK, ASKED_BY_JAVA, COMPARED])
def test_a_stall_that_ends_costs_a_plan_time_and_nothing_else(far: Far, step: str) -> None:
    source, _ = far.ground.networks
    with started(far.commands, *far.plan_words()) as running:
        running.wait_for(step)
        stalled(source, running)
        assert not running.ends_within(STALL_SECONDS), "it ended while nothing could be known"
        source.flow()
        far.expect_the_plan(running.result())


@pytest.mark.parametrize("step", [ASKED_BY_ADMIN, READ_BY_SPARK, ASKED_BY_JAVA, COMPARED])
def test_a_network_that_is_cut_for_good_ends_a_plan_with_the_name_of_the_cluster(far: Far, step: str) -> None:
    source, _ = far.ground.networks
    with started(far.commands, *far.plan_words(*IMPATIENT)) as running:
        running.wait_for(step)
        stalled(source, running)
        far.expect_a_clear_end(running.result(), "A", far.ground.lab.source.proxied_bootstrap)  # type: ignore[attr-defined]


def test_connections_that_break_again_and_again_leave_the_same_plan_or_a_clear_end(far: Far) -> None:
    networks = far.ground.networks
    before = [network.resets for network in networks]
    with breaking(networks, RESET_EVERY_SECONDS), started(far.commands, *far.plan_words()) as running:
        ran = running.result()
    assert all(network.resets > then for network, then in zip(networks, before, strict=True))
    if ran.exit_code == 0:
        far.expect_the_plan(ran)
    else:
        far.expect_a_clear_end(ran)
    # The network is sound again.
    far.expect_the_plan(far.commands.run(*far.plan_words()))


def test_status_waits_for_a_stall_to_end_and_does_not_call_a_cut_network_ready(far: Far) -> None:
    source, target = far.ground.networks
    with started(far.commands, *far.status_words()) as running:
        running.wait_for(ASKED_BY_ADMIN)
        stalled(source, running)
        assert not running.ends_within(STALL_SECONDS), "it ended while nothing could be known"
        source.flow()
        ran = running.result().expect(0)
    assert json.loads(ran.stdout)["ready"]
    for network, alias in ((source, "A"), (target, "B")):
        with started(far.commands, *far.status_words(*IMPATIENT)) as running:
            running.wait_for(ASKED_BY_ADMIN)
            stalled(network, running)
            ran = running.result().expect(1)
        network.flow()
        told = " ".join(ran.complaint().split())
        assert f" {alias} " in told and ran.stdout == "" and len(told) < 900, str(ran)


def test_over_connections_that_break_again_and_again_status_answers_or_says_what_is_wrong(far: Far) -> None:
    with breaking(far.ground.networks, RESET_EVERY_SECONDS), started(far.commands, *far.status_words()) as running:
        ran = running.result()
    assert ran.exit_code in (0, 1, 3) and "Traceback" not in ran.stderr, str(ran)
    if ran.exit_code == 1:
        assert ran.stdout == "" and len(ran.complaint()) < 900, str(ran)
    else:
        assert json.loads(ran.stdout)["ready"] == (ran.exit_code == 0), str(ran)
    assert json.loads(far.commands.run(*far.status_words()).expect(0).stdout)["ready"]


def test_a_proof_over_a_network_that_breaks_is_whole_or_says_what_was_not_read(far: Far) -> None:
    far.expect_the_plan(far.commands.run(*far.plan_words()))
    far.commands.execute(PLAN).expect(0)
    words = ("verify", PLAN, *far.commands.clusters, "--records", "--format", "json")
    with ExitStack() as stack:
        stack.callback(lambda: far.commands.undo(PLAN).expect(0))
        with breaking(far.ground.networks, RESET_EVERY_SECONDS), started(far.commands, *words) as running:
            ran = running.result()
        assert ran.exit_code in (0, 1, 4) and "Traceback" not in ran.stderr, str(ran)
        if ran.stdout:
            assert (verdicts_of(json.loads(ran.stdout)) <= PROVEN) == (ran.exit_code == 0), str(ran)
        else:
            assert ran.exit_code == 1 and len(ran.complaint()) < 900, str(ran)
        source, _ = far.ground.networks
        source.latency_seconds = SLOW_SECONDS
        with started(far.commands, *words, *IMPATIENT) as running:
            running.wait_for("reading the next records")
            source.stall()
            ran = running.result()
        assert ran.exit_code == 1 and "Traceback" not in ran.stderr, str(ran)
        source.flow()
        source.latency_seconds = 0.0
        far.commands.run(*words).expect(0)
