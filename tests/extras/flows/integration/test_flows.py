"""`flows plan`: one source, three targets, each behind a MirrorMaker 2 of its own."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from tests.integration.cli import CommandLine, Ran
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


@dataclass(frozen=True)
class Flows:
    """Three flows from a source that is reached through a proxy, which counts its bytes."""

    scene: Scene
    command: CommandLine

    @property
    def source(self) -> ProxiedCluster:
        return cast(ProxiedCluster, cast(Lab, self.scene.lab).source)

    def to(self, *targets: str) -> Ran:
        """Plan the flows to these targets by one file."""
        flows = [{"name": f"to-{t}", "target": t, "target_config": f"{t}.properties"} for t in targets]
        defaults = {
            "source": "A", "source_config": "A.properties", "groups": [f".*{self.scene.suffix}"], "settle": 1,
            "policies": {"max_rereads": 100_000},
        }  # fmt: skip
        # JSON is YAML.
        (self.command.folder / "flows.yaml").write_text(json.dumps({"defaults": defaults, "flows": flows}))
        return self.command.run("flows", "plan", "--out-dir", "plans")

    def rows_to(self, target: str) -> list[dict[str, Any]]:
        return list(self.command.document(f"plans/to-{target}.plan")["rows"])

    def bytes_of(self, planned: Callable[[], object]) -> int:
        before = self.source.network.passed
        planned()
        return self.source.network.passed - before


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flows]:
    folder = tmp_path_factory.mktemp("flows")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(folder / "lab", kind=ProxiedCluster))
        scene = Scene(lab, "flows", new_seed())
        topic = scene.create("plain", PARTITIONS)
        scene.write(scene.partitions, 600)
        targets, mirrors = {"B": lab.target}, [lab.mirror]
        for alias in TARGETS[1:]:
            targets[alias] = Cluster(alias, folder / alias)
            stack.callback(targets[alias].kill)
            targets[alias].start()
            options = MirrorOptions(target_alias=alias)
            mirrors.append(MirrorMaker(folder / f"to-{alias}", lab.source_bootstrap, targets[alias].bootstrap, options))
            stack.callback(mirrors[-1].kill)
            mirrors[-1].start()
        commit_all(scene, topic)
        for mirror in mirrors:
            mirror.wait_ready()
            mirror.progress.wait_until_replicated(scene.topics)
        command = CommandLine(folder, ())
        (folder / "A.properties").write_text(
            f"bootstrap.servers={cast(ProxiedCluster, lab.source).proxied_bootstrap}\n"
        )
        for alias, cluster in targets.items():
            (folder / f"{alias}.properties").write_text(f"bootstrap.servers={cluster.bootstrap}\n")
        yield Flows(scene, command)


def commit_all(scene: Scene, topic: str) -> None:
    client, ends = admin(scene.lab.source_bootstrap), scene.source_ends()
    for number in range(GROUPS):
        group = scene.group(f"g{number:02}")
        places = {(topic, p): scene.dice.randint(*ends[topic, p]) for p in range(PARTITIONS)}
        scene.commits[group] = dict(places)
        wanted = [TopicPartition(t, p, offset, metadata=METADATA) for (t, p), offset in places.items()]
        for done in client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)]).values():
            done.result(CALL_SECONDS)


def test_three_plans_of_one_run_have_the_rows_that_each_flow_has_by_itself(flows: Flows) -> None:
    flows.to(*TARGETS).expect(0)
    together = {target: flows.rows_to(target) for target in TARGETS}
    for target in TARGETS:
        flows.to(target).expect(0)
        assert together[target] == flows.rows_to(target)
        found = {(r["group"], r["source_topic"], r["partition"]): r["source_committed"] for r in together[target]}
        assert found == flows.scene.places
        assert {row["grade"] for row in together[target]} == {"exact"}
        # Plain records, copied once: each stands on the target where it stands on the source.
        assert all(row["target_offset"] == row["source_committed"] for row in together[target])


def test_the_sources_commits_are_read_once_for_all_targets(flows: Flows, capsys: pytest.CaptureFixture[str]) -> None:
    alone = sum(flows.bytes_of(lambda target=target: flows.to(target).expect(0)) for target in TARGETS)
    together = flows.bytes_of(lambda: flows.to(*TARGETS).expect(0))
    commits = GROUPS * PARTITIONS * len(METADATA)
    with capsys.disabled():
        print(f"\n{together:,} bytes of the source for three plans of one run, {alone:,} for three runs")
    # Each later plan is spared one reading at least; what it reads is whether commits have moved since, and records.
    assert alone - together >= (len(TARGETS) - 1) * commits
