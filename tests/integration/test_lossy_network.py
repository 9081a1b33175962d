"""A whole cutover over a line that loses 2 % of its packets: the same plan, the same offsets, nothing but time lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli import Ran, planned_offsets
from tests.integration.clusters import by_place, commits_on
from tests.integration.proxied import PLAN, chosen, commands_from_afar, replicated_scene, rows_from_near
from tests.integration.running import started
from tests.lab.fixtures import own_clusters_only
from tests.lab.lab import Lab
from tests.lab.lossy import LossyWire, behind, why_not
from tests.seeds import new_seed

pytestmark = pytest.mark.long

LOSS = 0.02
GROUPS = 10


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
        scene = replicated_scene(lab, "lossy", GROUPS)
        rows = rows_from_near(scene, tmp_path_factory.mktemp("near"))
        far = commands_from_afar(lab, tmp_path)

        def run(*words: str) -> Ran:
            """From the near end of the wire, where nothing else leads to the brokers."""
            with started(far, *words, in_child=wire.near.enter) as running:
                return running.result()

        run("plan", *far.clusters, "--settle", "1", "--out", PLAN, *chosen(scene)).expect(0)
        document = far.document(PLAN)
        assert document["rows"] == rows
        approval = ("--approve", document["fingerprint"], "--execute")
        run("apply", PLAN, *far.clusters, *approval).expect(0)
        held = commits_on(lab.target_bootstrap, scene.commits)
        planned = planned_offsets(rows)
        assert by_place(held) == planned
        run("verify", PLAN, *far.clusters, "--records").expect(0)
        run("rollback", PLAN, *far.clusters, *approval).expect(0)
        assert not commits_on(lab.target_bootstrap, scene.commits)
        assert wire.lost, f"nothing was lost of {wire.carried} packets"
