"""Brokers under IPv6 addresses, and under a name with two addresses of which they listen on one: the whole way."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.cli import CommandLine, planned_offsets
from tests.integration.clusters import all_syncs, by_place, commits_on, member
from tests.integration.judge import Judge, told
from tests.integration.placement import commit_densely
from tests.integration.scene import Scene
from tests.lab.cluster import Cluster
from tests.lab.fixtures import own_clusters_only
from tests.lab.ipv6 import NAME, SIX, SixCluster, has_ipv6
from tests.lab.lab import Lab
from tests.lab.ports import HOST
from tests.seeds import new_seed

pytestmark = pytest.mark.long

GROUPS = 12
IMPATIENT = ("--request-timeout", "10")
PREFER_SIX = "JAVA_TOOL_OPTIONS=-Djava.net.preferIPv6Addresses=true"
ADDRESSES = f"import socket; print({{a[4][0] for a in socket.getaddrinfo({NAME!r}, 1)}} >= {{{HOST!r}, {SIX!r}}})"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Two clusters on ::1, MM2 between them, and groups anywhere on what it has copied."""
    own_clusters_only()
    if not has_ipv6():
        pytest.skip(f"this machine has no IPv6: nobody can listen on {SIX}")
    lab = Lab(tmp_path_factory.mktemp("six"))
    lab.source = SixCluster("source", lab.folder / "source", named_on=HOST)
    lab.target = SixCluster("target", lab.folder / "target", named_on=SIX)
    with lab:
        made = Scene(lab, "addresses", new_seed())
        plain, tx = made.create("plain", 2), made.create("tx", 1)
        made.write([(plain, 0), (plain, 1)], 2000)
        made.write_transactions([(tx, 0)], 600)
        made.wait_replicated()
        commit_densely(made, GROUPS)
        yield made


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


def test_a_cutover_goes_the_whole_way_between_brokers_with_ipv6_addresses(scene: Scene, tmp_path: Path) -> None:
    lab = scene.lab
    assert f"B.bootstrap.servers = [{SIX}]:" in lab.mm2_properties.read_text()
    commands = CommandLine.of(lab, tmp_path)
    walk(scene, commands)
    # As a command to paste: bash would take bare brackets for a pattern.
    told_to_paste = commands.run("show", "c.plan", "--format", "kcg").expect(0).stderr
    assert f"--bootstrap-server '{lab.target_bootstrap}'" in told_to_paste, told_to_paste
    group = next(iter(scene.commits))
    with member(lab.source_bootstrap, group, scene.topic("plain")):
        status = commands.run("status", *commands.clusters, "--group", group, "--settle", "0").expect(3)
    assert f"{group}: Stable on A, 1 member: " in status.stdout and "@0:0:0:0:0:0:0:1" in status.stdout, str(status)


def by_name(cluster: Cluster, scene: Scene, folder: Path) -> CommandLine:
    """The command line that is given `localhost` for one of the clusters, where that name has two addresses."""
    assert isinstance(cluster, SixCluster)
    config, launcher = folder / "named.properties", with_two_addresses(folder)
    config.write_text(scene.lab.mm2_properties.read_text().replace(cluster.bootstrap, cluster.named_bootstrap))
    assert f"= {NAME}:" in config.read_text()
    return CommandLine(folder, ("--mm2-config", str(config), "--source", "A", "--target", "B"), launcher)


def test_of_a_name_with_two_addresses_a_broker_may_listen_on_the_ipv4_one_alone(scene: Scene, tmp_path: Path) -> None:
    """librdkafka tries ::1 first, where nobody listens."""
    walk(scene, by_name(scene.lab.source, scene, tmp_path))


def test_where_a_broker_listens_on_the_ipv6_one_alone_javas_choice_is_said_and_can_be_changed(
    scene: Scene, tmp_path: Path
) -> None:
    """Kafka's Java client tries addresses of one family only, and Java's first are IPv4."""
    commands, chosen = by_name(scene.lab.target, scene, tmp_path), ("--group", f".*{scene.suffix}")
    told = commands.run("doctor", *commands.clusters, *chosen, *IMPATIENT).expect(1).stdout
    assert "ok    target B: cluster" in told and "FAIL  target B, by Kafka's Java client" in told, told
    assert PREFER_SIX in told, told
    complaint = commands.plan("c.plan", *chosen, *IMPATIENT).expect(1).complaint()
    assert scene.lab.target.name in complaint and PREFER_SIX in complaint, complaint
    walk(scene, replace(commands, launcher=(*commands.launcher, "env", PREFER_SIX)))


def with_two_addresses(folder: Path) -> tuple[str, ...]:
    """What a command is started with so that `localhost` has two addresses: nothing, or a name space of its own."""
    hosts = folder / "hosts"
    hosts.write_text(f"{Path('/etc/hosts').read_text()}\n{SIX} {NAME}\n{HOST} {NAME}\n")
    apart = ("unshare", "-rm", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(hosts))
    for launcher in ((), apart) if shutil.which("unshare") else ((),):
        words = [*launcher, sys.executable, "-c", ADDRESSES]
        if subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() == "True":
            return launcher
    pytest.skip(f"{NAME} has not both {SIX} and {HOST} here, and no name space with another /etc/hosts can be made")
