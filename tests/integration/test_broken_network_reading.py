"""plan, status and verify --records over a network that is slow, stalls or breaks: the same answer, or a clear one."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tests.integration.cli import CommandLine, Ran
from tests.integration.judge import judged_cutover
from tests.integration.placement import commit_densely
from tests.integration.repeated import breaking
from tests.integration.running import Running, started
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.proxy import Network, ProxiedCluster
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long

PLAN, GROUPS = "cutover.plan", 12
SLOW_SECONDS = 0.1
STALL_SECONDS = 3.0
RESET_EVERY_SECONDS = 0.4
# How long a cluster may be silent before a command gives up.
IMPATIENT = ("--request-timeout", "8")
# Steps of `plan` as it names them, each asked by another client: the admin, Spark, Kafka's Java client, the consumers.
ASKED_BY_ADMIN, READ_BY_SPARK, ASKED_BY_JAVA, COMPARED = (
    "listing groups on A", "reading MM2's offset syncs", "reading commits of", "comparing ",
)  # fmt: skip


@dataclass(frozen=True)
class Far:
    """Commands against two clusters behind networks, and the plan that is right: made past them."""

    scene: Scene
    rows: Sequence[dict[str, Any]]
    commands: CommandLine

    @property
    def source(self) -> ProxiedCluster:
        return cast(ProxiedCluster, self.scene.lab.source)

    @property
    def networks(self) -> tuple[Network, Network]:
        return self.source.network, cast(ProxiedCluster, self.scene.lab.target).network

    @property
    def chosen(self) -> tuple[str, ...]:
        return ("--group", f".*{self.scene.suffix}", "--settle", "1")

    def plan_words(self, *options: str) -> tuple[str, ...]:
        return ("plan", *self.commands.clusters, "--out", PLAN, *self.chosen, *options)

    def status_words(self, *options: str) -> tuple[str, ...]:
        return ("status", *self.commands.clusters, "--format", "json", *self.chosen, *options)

    def expect_the_plan(self, ran: Ran) -> None:
        ran.expect(0)
        assert self.commands.document(PLAN)["rows"] == self.rows

    def expect_a_clear_end(self, ran: Ran, *words: str) -> None:
        """One paragraph with these words, and no plan."""
        ran.expect(1)
        told = " ".join(ran.complaint().split())
        assert "Error:" not in told and len(told) < 900, str(ran)
        for word in words:
            assert word in told, f"{word!r} is not told\n{ran}"
        assert ran.stdout == "" and not (self.commands.folder / PLAN).exists(), str(ran)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Plain records and transactions, all copied by an MM2 that needs no proxy, and groups anywhere among them."""
    with Lab(tmp_path_factory.mktemp("far"), kind=ProxiedCluster) as lab:
        scene = Scene(lab, "far", new_seed())
        plain, tx = scene.create("plain", 3), scene.create("tx", 2)
        scene.write([(plain, p) for p in range(3)], 2000)
        scene.write_transactions([(tx, 0), (tx, 1)], 600)
        scene.wait_replicated()
        commit_densely(scene, GROUPS)
        yield scene


@pytest.fixture(scope="module")
def rows(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Sequence[dict[str, Any]]:
    near = CommandLine.of(scene.lab, tmp_path_factory.mktemp("near"))
    near.plan(PLAN, "--group", f".*{scene.suffix}").expect(0)
    rows: Sequence[dict[str, Any]] = near.document(PLAN)["rows"]
    assert len(rows) == len(scene.places) and {row["grade"] for row in rows} == {"exact"}
    return rows


@pytest.fixture
def far(scene: Scene, rows: Sequence[dict[str, Any]], tmp_path: Path) -> Iterator[Far]:
    """The product reaches both clusters through their proxies only."""
    clusters = (cast(ProxiedCluster, cluster) for cluster in (scene.lab.source, scene.lab.target))
    lines = scene.lab.options.properties(*(cluster.proxied_bootstrap for cluster in clusters))
    (tmp_path / "proxied.properties").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    flow = ("--source", scene.lab.options.source_alias, "--target", scene.lab.options.target_alias)
    made = Far(scene, rows, CommandLine(tmp_path, ("--mm2-config", "proxied.properties", *flow)))
    yield made
    for network in made.networks:
        network.latency_seconds = 0.0
        network.flow()


def stalled(network: Network, running: Running) -> None:
    """Stall until something was held back."""
    before = network.held
    network.stall()
    wait_until(lambda: network.held > before or running.has_ended, 60, "something to be held back", None, 0.01)
    assert network.held > before, f"it ended before\n{running.result()}"


def test_over_lines_of_100_ms_all_answers_are_those_of_next_door(far: Far) -> None:
    for network in far.networks:
        network.latency_seconds = SLOW_SECONDS
    far.expect_the_plan(far.commands.run(*far.plan_words()))
    ready = json.loads(far.commands.run(*far.status_words()).expect(0).stdout)
    assert ready["ready"] and {g["group"] for g in ready["groups"]} == set(far.scene.commits)
    judged_cutover(far.scene, far.commands, PLAN)


@pytest.mark.parametrize("step", [ASKED_BY_ADMIN, READ_BY_SPARK, ASKED_BY_JAVA, COMPARED])
def test_a_stall_that_ends_costs_a_plan_time_and_nothing_else(far: Far, step: str) -> None:
    source, _ = far.networks
    with started(far.commands, *far.plan_words()) as running:
        running.wait_for(step)
        stalled(source, running)
        assert not running.ends_within(STALL_SECONDS), "it ended while nothing could be known"
        source.flow()
        far.expect_the_plan(running.result())


@pytest.mark.parametrize("step", [ASKED_BY_ADMIN, READ_BY_SPARK, ASKED_BY_JAVA, COMPARED])
def test_a_network_that_is_cut_for_good_ends_a_plan_with_the_name_of_the_cluster(far: Far, step: str) -> None:
    source, _ = far.networks
    with started(far.commands, *far.plan_words(*IMPATIENT)) as running:
        running.wait_for(step)
        stalled(source, running)
        far.expect_a_clear_end(running.result(), "A", far.source.proxied_bootstrap)


def test_connections_that_break_again_and_again_leave_the_same_plan_or_a_clear_end(far: Far) -> None:
    networks = far.networks
    before = [network.resets for network in networks]
    with ExitStack() as stack:
        for network in networks:
            stack.enter_context(breaking(network, RESET_EVERY_SECONDS))
        ran = stack.enter_context(started(far.commands, *far.plan_words())).result()
    assert all(network.resets > then for network, then in zip(networks, before, strict=True))
    if ran.exit_code == 0:
        far.expect_the_plan(ran)
    else:
        far.expect_a_clear_end(ran)
    # The network is sound again.
    far.expect_the_plan(far.commands.run(*far.plan_words()))


def test_status_waits_for_a_stall_to_end_and_does_not_call_a_cut_network_ready(far: Far) -> None:
    source, target = far.networks
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


def test_a_proof_over_a_network_that_is_cut_is_no_proof(far: Far) -> None:
    far.expect_the_plan(far.commands.run(*far.plan_words()))
    far.commands.execute(PLAN).expect(0)
    words, network = ("verify", PLAN, *far.commands.clusters, "--records"), far.source.network
    try:
        network.latency_seconds = SLOW_SECONDS
        with started(far.commands, *words, *IMPATIENT) as running:
            running.wait_for("reading the next records")
            network.stall()
            ran = running.result()
        assert ran.exit_code == 1 and "Traceback" not in ran.stderr, str(ran)
        network.flow()
        network.latency_seconds = 0.0
        far.commands.run(*words).expect(0)
    finally:
        network.flow()
        far.commands.undo(PLAN).expect(0)
