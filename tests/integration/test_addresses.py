"""Brokers under IPv6 addresses: a cutover goes the whole way."""

from pathlib import Path

import pytest

from tests.integration.cli import CommandLine, planned_offsets
from tests.integration.clusters import all_syncs, by_place, commits_on, member
from tests.integration.judge import Judge, told
from tests.integration.placement import commit_densely
from tests.integration.scene import Scene
from tests.lab.fixtures import own_clusters_only
from tests.lab.ipv6 import SIX, SixCluster, has_ipv6
from tests.lab.lab import Lab
from tests.seeds import new_seed

pytestmark = pytest.mark.long

GROUPS = 12


def replicated(lab: Lab) -> Scene:
    """Groups anywhere on what MM2 has copied."""
    made = Scene(lab, "addresses", new_seed())
    plain, tx = made.create("plain", 2), made.create("tx", 1)
    made.write([(plain, 0), (plain, 1)], 2000)
    made.write_transactions([(tx, 0)], 600)
    made.wait_replicated()
    commit_densely(made, GROUPS)
    return made


def walk(scene: Scene, commands: CommandLine) -> None:
    """Plan, apply, verify and roll back; every row judged, and what the target holds after each step."""
    target, chosen = scene.lab.target_bootstrap, ("--group", f".*{scene.suffix}")
    commands.run("doctor", *commands.clusters, *chosen).expect(0)
    commands.plan("c.plan", *chosen).expect(0)
    rows = commands.document("c.plan")["rows"]
    assert {(r["group"], r["source_topic"], r["partition"]): r["source_committed"] for r in rows} == scene.places
    truth = scene.truth()
    score = Judge(scene, truth, all_syncs(scene.lab), whole=True).score(rows)
    assert score.judged["best"] > 0 and score.judged["loss"] == len(rows) == GROUPS * len(scene.partitions)
    assert not scene.contradictions(truth) and not score.complaints, told(score.complaints)
    commands.execute("c.plan").expect(0)
    found = commits_on(target, scene.commits)
    assert by_place(found) == planned_offsets(rows)
    commands.verify("c.plan", "--records").expect(0)
    commands.undo("c.plan").expect(0)
    assert not commits_on(target, scene.commits)


def test_a_cutover_goes_the_whole_way_between_brokers_with_ipv6_addresses(tmp_path: Path) -> None:
    own_clusters_only()
    if not has_ipv6():
        pytest.skip(f"this machine has no IPv6: nobody can listen on {SIX}")
    with Lab(tmp_path / "six", kind=SixCluster) as lab:
        assert f"B.bootstrap.servers = [{SIX}]:" in lab.mm2_properties.read_text()
        scene, commands = replicated(lab), CommandLine.of(lab, tmp_path)
        walk(scene, commands)
        # As a command to paste: bash would take bare brackets for a pattern.
        told_to_paste = commands.run("show", "c.plan", "--format", "kcg").expect(0).stderr
        assert f"--bootstrap-server '{lab.target_bootstrap}'" in told_to_paste, told_to_paste
        group = next(iter(scene.commits))
        with member(lab.source_bootstrap, group, scene.topic("plain")):
            status = commands.run("status", *commands.clusters, "--group", group, "--settle", "0").expect(3)
        assert f"{group}: Stable on A, 1 member: " in status.stdout and "@0:0:0:0:0:0:0:1" in status.stdout, str(status)
