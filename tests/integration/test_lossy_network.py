"""A whole cutover over a line that loses 2 % of its packets: the same plan, the same offsets, nothing but time lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import commits_on
from tests.integration.running import started
from tests.integration.scene import Scene
from tests.lab.fixtures import own_clusters_only
from tests.lab.lab import Lab
from tests.lab.lossy import LossyWire, behind, why_not
from tests.lab.proxy import ProxiedCluster
from tests.seeds import new_seed

pytestmark = [pytest.mark.kafka, pytest.mark.long]

LOSS = 0.02
GROUPS = 10
PLAN = "cutover.plan"


@pytest.fixture
def wire() -> Iterator[LossyWire]:
    own_clusters_only()
    if lacking := why_not():
        pytest.skip(f"no line that loses packets can be made: {lacking}")
    with LossyWire(LOSS, new_seed()) as wire:
        yield wire


def test_over_a_line_that_loses_packets_a_cutover_goes_as_it_does_next_door(
    wire: LossyWire, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    with Lab(tmp_path_factory.mktemp("lossy"), kind=behind(wire)) as lab:
        scene = Scene(lab, "lossy", new_seed())
        plain, tx = scene.create("plain", 3), scene.create("tx", 2)
        scene.write([(plain, p) for p in range(3)], 2000)
        scene.write_transactions([(tx, 0), (tx, 1)], 600)
        ends = scene.source_ends()
        for number in range(GROUPS):
            scene.commit({scene.group(f"g{number}"): {p: scene.dice.randint(*ends[p]) for p in scene.partitions}})
        scene.wait_replicated()
        lab.mirror.wait_checkpoints([scene.group("g0")], quiet_seconds=1.0)
        chosen = ("--group", f".*{scene.suffix}")
        near = CommandLine.of(lab, tmp_path_factory.mktemp("near"))
        near.plan(PLAN, *chosen).expect(0)
        rows = near.document(PLAN)["rows"]
        assert len(rows) == GROUPS * len(scene.partitions) and {row["grade"] for row in rows} == {"exact"}

        lines = lab.options.properties(*(cast(ProxiedCluster, c).proxied_bootstrap for c in (lab.source, lab.target)))
        (tmp_path / "mm2.properties").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        flow = ("--source", lab.options.source_alias, "--target", lab.options.target_alias)
        far = CommandLine(tmp_path, ("--mm2-config", "mm2.properties", *flow))

        def run(*words: str) -> Ran:
            """From the near end of the wire, where nothing else leads to the brokers."""
            lost = wire.lost
            with started(far, *words, in_child=wire.near.enter) as running:
                ran = running.result()
            assert wire.lost > lost, f"nothing was lost of {wire.carried} packets"
            return ran

        run("plan", *far.clusters, "--settle", "1", "--out", PLAN, *chosen).expect(0)
        document = far.document(PLAN)
        assert document["rows"] == rows
        approval = ("--approve", document["fingerprint"], "--execute")
        run("apply", PLAN, *far.clusters, *approval).expect(0)
        held = commits_on(lab.target_bootstrap, scene.commits)
        planned = {(row["group"], row["target_topic"], row["partition"]): row["target_offset"] for row in rows}
        assert {(g, t, p): offset for g, at in held.items() for (t, p), offset in at.items()} == planned
        run("verify", PLAN, *far.clusters, "--records").expect(0)
        run("rollback", PLAN, *far.clusters, *approval).expect(0)
        assert not commits_on(lab.target_bootstrap, scene.commits)
