"""MM2's connectors in a real Connect worker: its REST tells the facts and the positions, and keeps its secrets."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import pytest

from migrate.cli.options import resolve_flow
from migrate.session.clusters import mm2_worker_of
from tests.facts import facts, options
from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import CALL_SECONDS, Partition
from tests.integration.scene import Scene
from tests.lab.connect import ask
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long

SECRET = "hunter2-never-shown"
# A login that nobody asks for on plain connections: Kafka ignores it, and the worker's REST shows it.
LOGIN = f"org.apache.kafka.common.security.plain.PlainLoginModule required username=u password={SECRET};"
DEADLINE_SECONDS = 60.0
PLAN = "by-rest.plan"


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

    def positions(self) -> dict[Partition, int]:
        """What the worker tells now of the scene's topic."""
        reader = mm2_worker_of(resolve_flow(options(connect_url=self.url)), CALL_SECONDS)
        assert reader is not None
        return {(at.topic, at.partition): offset for at, offset in reader.positions().items() if at.topic == self.topic}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    mirror = MirrorOptions(
        connect=True,
        offset_syncs_location="target",
        topics="[a-z].*",
        sync_group_offsets=True,
        source_connector={"source.cluster.sasl.jaas.config": LOGIN},
    )
    folder = tmp_path_factory.mktemp("worker")
    with Lab(folder, mirror=mirror) as lab:
        scene = Scene(lab, "worker", new_seed())
        topic = scene.create("plain", 2)
        scene.write([(topic, 0), (topic, 1)], 600)
        ends = scene.source_ends()
        scene.commit({scene.group("g"): {place: end - 100 for place, (_, end) in ends.items()}})
        scene.wait_replicated()
        port = lab.mirror.port  # type: ignore[attr-defined]
        clusters = ("--connect-url", f"http://127.0.0.1:{port}", "--source", "A", "--target", "B")
        drained = Worker(lab, scene, topic, CommandLine(folder, clusters))
        last = {place: end - 1 for place, (_, end) in ends.items()}
        wait_until(lambda: drained.positions() == last, DEADLINE_SECONDS, "MM2's positions at the ends")
        yield drained


@pytest.fixture(scope="module")
def planned(worker: Worker) -> Ran:
    """A plan by the worker's REST alone, that compared no records."""
    return worker.commands.plan(PLAN, "--group", worker.scene.group("g"), "--no-match")


def drained(document: Mapping[str, Any]) -> set[str]:
    """The levels of the check that MM2 has copied everything."""
    return {check["level"] for check in document["checks"] if check["check"] == "not-drained"}


def test_the_worker_tells_the_same_facts_as_the_properties(worker):
    from_rest = resolve_flow(options(connect_url=worker.url))
    from_file = resolve_flow(options(mm2_config=worker.lab.mm2_properties))
    assert facts(from_rest) == facts(from_file)
    assert from_rest.group_sync is True
    assert from_rest.runtime.version == worker.lab.versions.mirror
    assert set(from_rest.runtime.source_connectors + from_rest.runtime.checkpoint_connectors) == {
        "A-to-B-source",
        "A-to-B-checkpoint",
    }
    assert SECRET not in repr(from_rest) + repr(dict(from_rest.source.properties))


def test_by_rest_the_positions_are_known_the_plan_is_drained_and_no_output_holds_a_secret(worker, planned):
    commands = worker.commands
    shown = commands.run("mm2", "offsets", *commands.clusters, "--topic", worker.topic, "--format", "json").expect(0)
    told = {(p["source_topic"], p["partition"]): p for p in json.loads(shown.stdout)["partitions"]}
    assert {place: at["position"] for place, at in told.items()} == worker.positions()
    assert all(at["left"] == 0 and at["newest_sync"] is not None for at in told.values())

    document = commands.document(PLAN)
    assert drained(document) == {"pass"}, str(planned)
    assert tasks_told(document) == {"A-to-B-checkpoint, A-to-B-source": ("pass", "all of them are")}, str(planned)
    doctor = commands.run("doctor", *commands.clusters).expect(0)
    assert "holds positions of 2 partitions" in doctor.stdout
    wrong = commands.run("plan", *commands.clusters, "--debug", "--source", "B", "--target", "A")
    assert wrong.exit_code == 2
    printed = "".join(map(str, (shown, planned, doctor, wrong))) + json.dumps(document) + commands.show(PLAN, "table")
    assert "mm2_connect_url" in printed
    assert SECRET not in printed
    assert SECRET.encode() not in (commands.folder / PLAN).read_bytes()


def asked(worker: Worker, method: str, path: str, body: object = None) -> Any:
    """Ask the worker's REST, as its administrator does; where its group is about to rebalance, again."""
    text = None if body is None else json.dumps(body)

    def taken() -> tuple[Any] | None:
        status, document = ask(worker.lab.mirror.port, method, path, text)  # type: ignore[attr-defined]
        assert status in (*range(200, 300), HTTPStatus.CONFLICT), document
        return None if status == HTTPStatus.CONFLICT else (document,)

    return wait_until(taken, DEADLINE_SECONDS, f"{method} {path} to be taken")[0]


def states(worker: Worker, connector: str) -> set[str]:
    told = asked(worker, "GET", f"/connectors/{connector}/status")
    return {told["connector"]["state"], *(task["state"] for task in told["tasks"])}


def tasks_told(document: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Level and evidence of the check of MM2's tasks, by connector."""
    return {c["subject"]: (c["level"], c["seen"]) for c in document["checks"] if c["check"] == "mm2-tasks"}


def test_tasks_that_do_not_run_are_found_with_the_reason_and_without_its_secret(worker):
    commands, source = worker.commands, "/connectors/A-to-B-source"
    look = ("status", *commands.clusters, "--group", worker.scene.group("g"), "--no-match", "--settle", "1")
    asked(worker, "PUT", "/connectors/A-to-B-checkpoint/pause")
    settings = asked(worker, "GET", f"{source}/config")
    try:
        # No number: the task cannot start, and the error quotes what is a password elsewhere.
        asked(worker, "PUT", f"{source}/config", settings | {"source.consumer.max.poll.records": SECRET})
        wait_until(lambda: "FAILED" in states(worker, "A-to-B-source"), DEADLINE_SECONDS, "the task to fail")
        wait_until(lambda: states(worker, "A-to-B-checkpoint") == {"PAUSED"}, DEADLINE_SECONDS, "the pause")
        assert SECRET in json.dumps(asked(worker, "GET", f"{source}/status")), "the worker itself hides nothing"
        status = commands.run(*look, "--format", "json").expect(3)
        told = tasks_told(json.loads(status.stdout))
        assert told["A-to-B-source"][0] == "block" and told["A-to-B-checkpoint"][0] == "warn"
        assert "max.poll.records" in told["A-to-B-source"][1] and "PAUSED" in told["A-to-B-checkpoint"][1]
        assert SECRET not in str(status)
    finally:
        asked(worker, "PUT", "/connectors/A-to-B-checkpoint/resume")
        asked(worker, "PUT", f"{source}/config", settings)
    for connector in ("A-to-B-source", "A-to-B-checkpoint"):
        wait_until(lambda c=connector: states(worker, c) == {"RUNNING"}, DEADLINE_SECONDS, f"{connector} to run again")


def test_without_the_worker_naming_its_offsets_topic_is_enough(worker):
    files = ("--source-config", str(worker.lab.source_properties), "--target-config", str(worker.lab.target_properties))
    names = ("--source", "A", "--target", "B", "--offset-syncs-location", "target")
    commands = worker.commands.against(*files, *names)
    topic = worker.lab.options.connect_offsets_topic
    commands.plan("named.plan", "--group", worker.scene.group("g"), "--no-match", "--connect-offsets-topic", topic)
    assert drained(commands.document("named.plan")) == {"pass"}


def test_the_commands_that_explain_prints_stop_the_worker_and_reset_the_one_partition(worker, planned):
    told = worker.commands.run("explain", PLAN, worker.scene.group("g"), f"{worker.topic}:1", "--mm2-commands").expect(
        0
    )
    typed = [line.strip() for line in told.stdout.splitlines() if line.strip().startswith("curl ")]
    stops, patches = ([line for line in typed if word in line] for word in ("/stop", "-X PATCH"))
    assert (len(stops), len(patches)) == (2, 1), str(told)

    def done(line: str) -> bool:
        return subprocess.run(["bash", "-c", line], capture_output=True, check=False, timeout=60).returncode == 0

    try:
        for line in stops:
            wait_until(lambda line=line: done(line), DEADLINE_SECONDS, line)
        # A connector is stopped a moment after the request; until then the reset is refused.
        wait_until(lambda: done(patches[0]), DEADLINE_SECONDS, "the reset to be taken")
        assert worker.positions() == {(worker.topic, 0): worker.scene.source_ends()[worker.topic, 0][1] - 1}
    finally:
        for line in stops:
            assert done(line.replace("/stop", "/resume")), line
