"""Brokers under IPv6 addresses: a cutover goes the whole way."""

from pathlib import Path

import pytest

from tests.integration.cli import CommandLine
from tests.integration.clusters import member
from tests.integration.judge import judged_cutover
from tests.integration.placement import commit_densely
from tests.integration.scene import Scene
from tests.lab.ipv6 import SIX, SixCluster, has_ipv6
from tests.lab.lab import Lab
from tests.seeds import new_seed

pytestmark = pytest.mark.long

GROUPS = 12


def test_a_cutover_goes_the_whole_way_between_brokers_with_ipv6_addresses(tmp_path: Path) -> None:
    if not has_ipv6():
        pytest.skip(f"this machine has no IPv6: nobody can listen on {SIX}")
    with Lab(tmp_path / "six", kind=SixCluster) as lab:
        assert f"B.bootstrap.servers = [{SIX}]:" in lab.mm2_properties.read_text()
        scene, commands = Scene(lab, "addresses", new_seed()), CommandLine.of(lab, tmp_path)
        plain, tx = scene.create("plain", 2), scene.create("tx", 1)
        scene.write([(plain, 0), (plain, 1)], 2000)
        scene.write_transactions([(tx, 0)], 600)
        scene.wait_replicated()
        commit_densely(scene, GROUPS)
        commands.run("doctor", *commands.clusters, "--group", f".*{scene.suffix}").expect(0)
        commands.plan("c.plan", "--group", f".*{scene.suffix}").expect(0)
        judged_cutover(scene, commands, "c.plan")
        # As a command to paste: bash would take bare brackets for a pattern.
        told_to_paste = commands.run("show", "c.plan", "--format", "kcg").expect(0).stderr
        assert f"--bootstrap-server '{lab.target_bootstrap}'" in told_to_paste, told_to_paste
        group = next(iter(scene.commits))
        with member(lab.source_bootstrap, group, plain):
            status = commands.run("status", *commands.clusters, "--group", group, "--settle", "0").expect(3)
        assert f"{group}: Stable on A, 1 member: " in status.stdout and "@0:0:0:0:0:0:0:1" in status.stdout, str(status)
