"""MM2's connectors in a real Connect worker: its REST tells the facts and the positions, and keeps its secrets."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest
import yaml

from migrate.options import resolve_flow
from tests.facts import facts, options
from tests.integration.cli import CommandLine, Ran
from tests.integration.scene import Scene
from tests.lab.connect import connector_lines
from tests.lab.fixtures import VARIABLES
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.kafka

SECRET = "hunter2-never-shown"
# A login that nobody asks for on plain connections: Kafka ignores it, and the worker's REST shows it.
LOGIN = f"org.apache.kafka.common.security.plain.PlainLoginModule required username=u password={SECRET};"
DEADLINE_SECONDS = 60.0


@dataclass(frozen=True, repr=False)
class Worker:
    """A drained scene in a Connect worker, and commands that know the worker by its REST."""

    lab: Lab
    scene: Scene
    topic: str
    commands: CommandLine

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.lab.mirror.port}"  # type: ignore[attr-defined]

    def offsets(self, commands: CommandLine, *words: str) -> dict[tuple[str, int], int | None]:
        """What `mm2 offsets` says of the scene's topic."""
        asked = (*commands.clusters, "--topic", self.topic, "--format", "json", *words)
        document = json.loads(commands.run("mm2", "offsets", *asked).expect(0).stdout)
        return {(p["source_topic"], p["partition"]): p["position"] for p in document["partitions"]}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    if any(os.environ.get(name) for name in VARIABLES):
        pytest.skip("needs a lab of its own, and the environment names other clusters")
    mirror = MirrorOptions(
        connect=True,
        offset_syncs_location="target",
        topics="[a-z].*",
        sync_group_offsets=True,
        source_connector={"source.cluster.sasl.jaas.config": LOGIN},
    )
    folder = tmp_path_factory.mktemp("worker")
    with Lab(folder, mirror=mirror) as lab:
        scene = Scene(lab, "worker", SystemRandom().randrange(10**6))
        topic = scene.create("plain", 2)
        scene.write([(topic, 0), (topic, 1)], 600)
        ends = scene.source_ends()
        scene.commit({scene.group("g"): {place: end - 100 for place, (_, end) in ends.items()}})
        scene.wait_replicated()
        port = lab.mirror.port  # type: ignore[attr-defined]
        clusters = ("--connect-url", f"http://127.0.0.1:{port}", "--source", "A", "--target", "B")
        yield Worker(lab, scene, topic, CommandLine(folder, clusters))


def strimzi(lab: Lab) -> dict[str, Any]:
    """The resource from which Strimzi's operator would make these very connectors."""
    lines = connector_lines(lab.options, lab.source_bootstrap, lab.target_bootstrap)
    of_clusters = ("source.cluster.", "target.cluster.", "connector.class", "tasks.max")
    config: Mapping[str, dict[str, str]] = {
        name.rpartition("-")[2]: {k: v for k, v in settings.items() if not k.startswith(of_clusters)}
        for name, settings in lines.items()
    }
    a = {"alias": "A", "bootstrapServers": lab.source_bootstrap, "config": {"sasl.jaas.config": LOGIN}}
    b = {
        "alias": "B",
        "bootstrapServers": lab.target_bootstrap,
        "config": {"offset.storage.topic": lab.options.connect_offsets_topic},
    }
    mirror = {
        "sourceCluster": "A",
        "targetCluster": "B",
        "sourceConnector": {"config": config["source"]},
        "checkpointConnector": {"config": config["checkpoint"]},
    }
    spec = {"version": lab.version, "connectCluster": "B", "clusters": [a, b], "mirrors": [mirror]}
    return {"kind": "KafkaMirrorMaker2", "metadata": {"name": "mm2"}, "spec": spec}


def strimzi_file(lab: Lab, folder: Path) -> Path:
    path = folder / "mm2.yaml"
    path.write_text(yaml.safe_dump(strimzi(lab)))
    return path


def test_the_worker_tells_the_same_facts_as_the_properties_and_a_strimzi_resource(worker, tmp_path):
    from_rest = resolve_flow(options(connect_url=worker.url))
    from_file = resolve_flow(options(mm2_config=worker.lab.mm2_properties))
    from_strimzi = resolve_flow(options(strimzi=strimzi_file(worker.lab, tmp_path)))
    assert facts(from_rest) == facts(from_file) == facts(from_strimzi)
    assert from_rest.group_sync is True
    assert from_rest.runtime.version == worker.lab.version
    assert set(from_rest.runtime.source_connectors + from_rest.runtime.checkpoint_connectors) == {
        "A-to-B-source",
        "A-to-B-checkpoint",
    }
    assert SECRET not in repr(from_rest) + repr(dict(from_rest.source.properties))


def test_positions_are_the_same_from_rest_from_the_named_topic_and_by_strimzi(worker, tmp_path):
    ends = {place: end - 1 for place, (_, end) in worker.scene.source_ends().items()}
    found: dict[tuple[str, int], int | None] = {}

    def settled() -> bool:
        found.update(worker.offsets(worker.commands))
        return found == ends

    wait_until(settled, DEADLINE_SECONDS, "MM2's positions at the ends", lambda: f"{found}, not {ends}")
    topic = worker.lab.options.connect_offsets_topic
    assert worker.offsets(worker.commands, "--connect-offsets-topic", topic) == ends
    by_strimzi = worker.commands.against(
        "--strimzi", str(strimzi_file(worker.lab, tmp_path)), "--source", "A", "--target", "B"
    )
    assert worker.offsets(by_strimzi) == ends


def test_a_plan_by_rest_is_drained_by_the_workers_positions_and_no_output_holds_its_secret(worker):
    group = ("--group", worker.scene.group("g"), "--no-match")
    ran: list[Ran] = [worker.commands.plan("by-rest.plan", *group)]
    document = worker.commands.document("by-rest.plan")
    drained = {c["level"] for c in document["header"]["checks"] if c["check"] == "not-drained"}
    assert drained == {"pass"}, str(ran[0])
    assert {row["decision"] for row in document["rows"]} <= {"set", "block"}
    ran += [
        worker.commands.run("doctor", *worker.commands.clusters),
        worker.commands.run("mm2", "offsets", *worker.commands.clusters),
        worker.commands.run("explain", "by-rest.plan", worker.scene.group("g")),
        worker.commands.run("plan", *worker.commands.clusters, "--debug", "--source", "B", "--target", "A"),
    ]
    assert [each.exit_code for each in ran[1:]] == [0, 0, 0, 2], str(ran)
    assert "tells of" in ran[1].stdout
    shown = "".join(map(str, ran)) + json.dumps(document) + worker.commands.show("by-rest.plan", "table")
    assert "mm2_connect_url" in shown
    assert SECRET not in shown
    assert SECRET.encode() not in (worker.commands.folder / "by-rest.plan").read_bytes()


def test_without_the_worker_the_topic_is_asked_for_and_naming_it_is_enough(worker):
    files = ("--source-config", str(worker.lab.source_properties), "--target-config", str(worker.lab.target_properties))
    names = ("--source", "A", "--target", "B", "--offset-syncs-location", "target")
    commands = worker.commands.against(*files, *names)
    group = ("--group", worker.scene.group("g"), "--no-match")
    ran = commands.plan("asked.plan", *group).expect(3)
    assert "not-drained" in ran.stdout
    assert "--connect-offsets-topic" in ran.stdout
    commands.plan("named.plan", *group, "--connect-offsets-topic", worker.lab.options.connect_offsets_topic)
    checks = commands.document("named.plan")["header"]["checks"]
    assert {c["level"] for c in checks if c["check"] == "not-drained"} == {"pass"}


def test_the_commands_that_explain_prints_stop_the_worker_and_reset_the_one_partition(worker):
    worker.commands.plan("reset.plan", "--group", worker.scene.group("g"), "--no-match")
    told = worker.commands.run("explain", "reset.plan", worker.scene.group("g"), f"{worker.topic}:1").expect(0)
    typed = [line.strip() for line in told.stdout.splitlines() if line.strip().startswith("curl ")]
    stops, patches = ([line for line in typed if word in line] for word in ("/stop", "-X PATCH"))
    assert (len(stops), len(patches)) == (2, 1), str(told)

    def done(line: str) -> bool:
        return subprocess.run(["bash", "-c", line], capture_output=True, check=False, timeout=60).returncode == 0

    try:
        for line in stops:
            assert done(line), line
        # A connector is stopped a moment after the request; until then the reset is refused.
        wait_until(lambda: done(patches[0]), DEADLINE_SECONDS, "the reset to be taken")
        left = worker.offsets(worker.commands)
        assert left[worker.topic, 1] is None
        assert left[worker.topic, 0] == worker.scene.source_ends()[worker.topic, 0][1] - 1
    finally:
        for line in stops:
            assert done(line.replace("/stop", "/resume")), line
