"""`flows plan`: one source, three targets, each behind a MirrorMaker 2 of its own."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from tests.integration.cli import CommandLine
from tests.integration.clusters import CALL_SECONDS, admin
from tests.integration.scene import Scene
from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.lab.mirror import MirrorMaker
from tests.lab.options import MirrorOptions
from tests.lab.proxy import ProxiedCluster
from tests.seeds import new_seed

pytestmark = pytest.mark.long

TARGETS = ("B", "C", "D")
GROUPS, PARTITIONS, METADATA = 40, 3, "m" * 3000


def planned(scene: Scene, command: CommandLine, *targets: str) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """Plan the flows to these targets by one file; return the rows of each plan, and how many bytes of A that took."""
    flows = [{"name": f"to-{t}", "target": t, "target_config": f"{t}.properties"} for t in targets]
    defaults = {
        "source": "A", "source_config": "A.properties", "groups": [f".*{scene.suffix}"], "settle": 1,
        "policies": {"max_rereads": 100_000},
    }  # fmt: skip
    # JSON is YAML.
    (command.folder / "flows.yaml").write_text(json.dumps({"defaults": defaults, "flows": flows}))
    network = cast(ProxiedCluster, cast(Lab, scene.lab).source).network
    before = network.passed
    command.run("flows", "plan", "--out-dir", "plans").expect(0)
    return {t: command.document(f"plans/to-{t}.plan")["rows"] for t in targets}, network.passed - before


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A source that is reached through a proxy, which counts its bytes, and three targets; their files are there."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(tmp_path / "lab", kind=ProxiedCluster))
        scene = Scene(lab, "flows", new_seed())
        topic = scene.create("plain", PARTITIONS)
        scene.write(scene.partitions, 600)
        targets, mirrors = {"B": lab.target}, [lab.mirror]
        for alias in TARGETS[1:]:
            targets[alias] = Cluster(alias, tmp_path / alias)
            stack.callback(targets[alias].kill)
            targets[alias].start()
            options = MirrorOptions(target_alias=alias)
            to = targets[alias].bootstrap
            mirrors.append(MirrorMaker(tmp_path / f"to-{alias}", lab.source_bootstrap, to, options))
            stack.callback(mirrors[-1].kill)
            mirrors[-1].start()
        commit_all(scene, topic)
        for mirror in mirrors:
            mirror.wait_ready()
            mirror.progress.wait_until_replicated(scene.topics)
        reached = {"A": cast(ProxiedCluster, lab.source).proxied_bootstrap}
        reached |= {alias: cluster.bootstrap for alias, cluster in targets.items()}
        for alias, bootstrap in reached.items():
            (tmp_path / f"{alias}.properties").write_text(f"bootstrap.servers={bootstrap}\n")
        yield scene


def commit_all(scene: Scene, topic: str) -> None:
    client, ends = admin(scene.lab.source_bootstrap), scene.source_ends()
    for number in range(GROUPS):
        group = scene.group(f"g{number:02}")
        places = {(topic, p): scene.dice.randint(*ends[topic, p]) for p in range(PARTITIONS)}
        scene.commits[group] = dict(places)
        wanted = [TopicPartition(t, p, offset, metadata=METADATA) for (t, p), offset in places.items()]
        for done in client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)]).values():
            done.result(CALL_SECONDS)


def test_three_plans_of_one_run_are_those_of_three_runs_and_the_sources_commits_are_read_once_for_all(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = CommandLine(tmp_path, ())
    together, bytes_together = planned(scene, command, *TARGETS)
    bytes_alone = 0
    for target in TARGETS:
        alone, read = planned(scene, command, target)
        bytes_alone += read
        assert together[target] == alone[target]
        found = {(r["group"], r["source_topic"], r["partition"]): r["source_committed"] for r in together[target]}
        assert found == scene.places
        assert {row["grade"] for row in together[target]} == {"exact"}
        # Plain records, copied once: each stands on the target where it stands on the source.
        assert all(row["target_offset"] == row["source_committed"] for row in together[target])
    with capsys.disabled():
        print(f"\n{bytes_together:,} bytes of the source for three plans of one run, {bytes_alone:,} for three runs")
    # Each later plan is spared one reading at least; what it reads is whether commits have moved since, and records.
    assert bytes_alone - bytes_together >= (len(TARGETS) - 1) * GROUPS * PARTITIONS * len(METADATA)
