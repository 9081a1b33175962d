"""`groups export` on real brokers, judged record by record by Kafka's own formatters."""

import json
import stat
import struct
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    ResourcePatternType,
    ResourceType,
)

from tests.extras.offsets_topic.integration.exportscene import (
    COMMIT_NONE,
    GROUP_NONE,
    HIDDEN,
    MISSING,
    Line,
    Scene,
    by_key,
    running,
    said_by,
    scene_of,
    with_none,
)
from tests.integration.cli import Ran
from tests.integration.clusters import CALL_SECONDS, admin, commit, commits_on, create_topic, denied, partitions_of
from tests.integration.formatters import told
from tests.integration.javajudge import JavaJudge
from tests.integration.members import member_of_kip_848, share_consumer, stay_and_leave
from tests.integration.offsetsrecords import in_transaction
from tests.integration.rawmember import commit_for, commit_without_offset
from tests.lab.cluster import Cluster
from tests.lab.jars import version_tuple
from tests.lab.process import java_command
from tests.lab.reading import as_bytes, topic_reader
from tests.lab.waiting import wait_until

GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
METADATA = {
    "none": "", "126": "m" * 126, "127": "m" * 127, "128": "m" * 128, "4096": "é" * 4096,
    "other": "名前 😀,\"'\n\t\x00\\",
}  # fmt: skip
AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow_everyone_if_no_acl_found": "true",
}
HOUR_MS = 3_600_000
RETENTION_MS = 4321 * 60_000


def populate(cluster: Cluster, stack: ExitStack) -> None:
    bootstrap = cluster.bootstrap
    stay_and_leave(bootstrap, "classic", "t")
    for offset in range(5):
        commit(bootstrap, {"again": {("t", 0): offset, ("u", 1): offset}})
    commit(bootstrap, {f"simple-{n}": {("t", n % 3): n} for n in range(20)}, leader_epoch=0)
    commit(bootstrap, {"gone": {("t", 0): 1, ("t", 1): 2}, "half-gone": {("t", 0): 1, ("u", 0): 2}})
    with JavaJudge(cluster) as java:
        java.commit({f"metadata-{name}": {("t", 0): (7, text)} for name, text in METADATA.items()})
    commit_for(bootstrap, "with-retention", "t", 11, HOUR_MS)
    commit_without_offset(bootstrap, "without-offset", "u")
    client = admin(bootstrap)
    client.delete_consumer_groups(["gone"])["gone"].result(CALL_SECONDS)
    tool(cluster, "--delete-offsets", "--group", "half-gone", "--topic", "u:0")
    if version_tuple(cluster.version) >= (4, 0, 0):
        with member_of_kip_848(bootstrap, "kip-848", "u"):
            pass
        commit(bootstrap, {"kip-848": {("u", 0): 1}})
        stack.enter_context(member_of_kip_848(bootstrap, "kip-848-live", "u"))
    if version_tuple(cluster.version) >= (4, 2, 0):
        with share_consumer(cluster.jars, bootstrap, "sharers", "u"):
            pass
    # Last of all: what follows an open transaction in its partition is not read.
    for outcome in ("committed", "aborted", "open"):
        in_transaction(bootstrap, outcome, stack)


def tool(cluster: Cluster, *arguments: str) -> None:
    words = java_command(cluster.jars, GROUP_COMMAND, "--bootstrap-server", cluster.bootstrap, *arguments)
    subprocess.run(words, check=True, capture_output=True, timeout=120)


OLDER = [pytest.param(version, marks=pytest.mark.long) for version in ("4.1.1", "3.9.2")]


@pytest.fixture(scope="module", params=["4.3.1", *OLDER])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("export")
    with ExitStack() as stack:
        settings = AUTHORIZER | {"offsets_retention_minutes": "4321"}
        cluster = stack.enter_context(running(folder, {"t": 3, "u": 2}, request.param, **settings))
        populate(cluster, stack)
        yield scene_of(cluster, folder)


def test_every_commit_that_ever_was_is_told_as_kafkas_formatter_tells_it(scene: Scene) -> None:
    lines = scene.lines("history.jsonl", "--history", "--tombstones", "--exclude-group", "none of them")
    theirs = with_none(told(scene.cluster, "OffsetsMessageFormatter"), COMMIT_NONE)
    # What is read as nothing committed is no commit: it is counted, and has no line.
    without = {key for key, values in theirs.items() if any(each and each["data"]["offset"] == -1 for each in values)}
    assert {json.loads(key)["data"]["group"] for key in without} == {"without-offset"}
    theirs = {key: values for key, values in theirs.items() if key not in without}
    ours = by_key(lines, list(COMMIT_NONE))
    assert ours == theirs
    versions = Counter(line["version"] for line in lines)
    newer = version_tuple(scene.cluster.version) >= (4, 1, 0)
    assert versions[4 if newer else 3] > 30 and versions[1] == 1 and versions[None] >= 3
    assert {line["metadata"] for line in lines if line["group"].startswith("metadata-")} == set(METADATA.values())
    # 4.1 keeps a topic's id only where the client sent it, which these do not; later brokers look it up.
    assert any(line["topicId"] for line in lines) is (version_tuple(scene.cluster.version) >= (4, 2, 0))


def test_every_classic_group_is_told_as_kafkas_formatter_tells_it(scene: Scene) -> None:
    options = ("--history", "--tombstones", "--kinds", "groups")
    lines = [line for line in scene.lines("groups.jsonl", *options) if line["recordType"] == 2]
    said = told(scene.cluster, "GroupMetadataMessageFormatter")
    keys = {key: json.loads(key) for key in said}
    # The judge itself is in a group of that name.
    own = {key for key, of in keys.items() if of["data"]["group"].startswith("console-consumer-")}
    said = {key: values for key, values in said.items() if keys[key]["type"] == 2 and key not in own}
    assert by_key(lines, list(GROUP_NONE)) == with_none(said, GROUP_NONE)
    ours = {key: [line["members"] for line in lines if key_of(line) == key] for key in map(key_of, lines)}
    theirs = {key: [value and members_in(value) for value in values] for key, values in said.items()}
    assert ours == theirs and any(members for values in ours.values() for members in values)


def members_in(value: Line) -> list[Line]:
    names = ("memberId", "groupInstanceId", "clientId", "clientHost", "rebalanceTimeout", "sessionTimeout")
    return [{name: member[name] for name in names} for member in value["data"]["members"]]


def key_of(line: Line) -> str:
    return json.dumps({"type": line["recordType"], "data": {"group": line["group"]}}, sort_keys=True)


def test_the_newest_of_each_key_is_what_the_coordinators_answer_in_a_file_that_stays_its_owners(scene: Scene) -> None:
    lines = scene.lines("latest.jsonl")
    found: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for line in lines:
        assert (line["topic"], line["partition"]) not in found[line["group"]]
        found[line["group"]][line["topic"], line["partition"]] = line["offset"]
    held = commits_on(scene.cluster.bootstrap, set(found) | {"gone", "half-gone"})
    assert dict(found) == held and len(found) > 30
    assert found["transaction-committed"] == {("t", 0): 99}
    assert found["transaction-aborted"] == found["transaction-open"] == {("t", 0): 1}
    assert list(lines[0]) == [
        "topic", "partition", "group", "version", "offset", "metadata", "commitTimestamp", "expireTimestamp",
        "expires", "recordType", "leaderEpoch", "topicId", "tombstone", "logPartition", "logOffset", "logTimestamp",
    ]  # fmt: skip
    written = scene.command.folder / "latest.jsonl"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert "it is not overwritten" in scene.export("latest.jsonl").expect(3).complaint()


@pytest.mark.long
def test_when_a_commit_expires_is_told_by_kafkas_law(scene: Scene) -> None:
    by_group = {line["group"]: line for line in scene.lines("expires.jsonl")}
    stored, simple, classic = (by_group[group] for group in ("with-retention", "simple-1", "classic"))
    assert (stored["expires"], stored["expireTimestamp"]) == ("stored", stored["commitTimestamp"] + HOUR_MS)
    assert simple["expires"] == "retention-from-commit"
    assert simple["expireTimestamp"] == simple["commitTimestamp"] + RETENTION_MS
    assert classic["expires"] == "retention-from-empty"
    assert classic["expireTimestamp"] >= classic["commitTimestamp"] + RETENTION_MS
    if "kip-848" in by_group:
        assert by_group["kip-848"]["expires"] == "retention-from-commit"


def key_bytes(line: Line) -> bytes:
    """The key of a record of the offsets topic, by Kafka's OffsetCommitKey and GroupMetadataKey."""
    names = [line[name].encode() for name in ("group", "topic") if name in line]
    found = struct.pack(">h", line["recordType"]) + b"".join(struct.pack(">h", len(name)) + name for name in names)
    return found + (struct.pack(">i", line["partition"]) if "partition" in line else b"")


SECRET = "pssst-not-in-any-log"


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster of the JSON topics: compacted ones, which keep the last line of every key."""
    with running(tmp_path_factory.mktemp("elsewhere"), {}) as cluster:
        yield cluster


def to_topic(scene: Scene, bootstrap: str, topic: str, *options: str) -> Ran:
    config = scene.command.folder / "elsewhere.properties"
    config.write_text(f"bootstrap.servers={bootstrap}\nssl.keystore.password={SECRET}\nacks=0\nretries=0\n")
    words = ("--format", "jsonl", "--to-topic", topic, "--to-config", str(config))
    ran = scene.command.run("groups", "export", *scene.command.clusters, *words, *options)
    assert SECRET not in ran.stdout + ran.stderr
    return ran


def by_place(lines: list[Line]) -> dict[tuple[int, int], Line]:
    """Every line by its partition and offset in the offsets topic."""
    return {(line["logPartition"], line["logOffset"]): line for line in lines}


def test_a_topic_of_another_cluster_gets_the_lines_under_the_keys_of_the_offsets_topic(
    scene: Scene, elsewhere: Cluster
) -> None:
    history = ("--history", "--tombstones", "--kinds", "all")
    # Coordinators sweep up the groups of tools that came and went at any time: a record of this second or later may be
    # in one of the two exports alone.
    began = time.time() * 1000
    lines = scene.lines("beside.jsonl", *history)
    # One for each version of Kafka: what an earlier scene has written there is none of this one's.
    topic = f"json_{time.monotonic_ns()}"
    create_topic(elsewhere.bootstrap, topic, 3, {"cleanup.policy": "compact"})
    ran = to_topic(scene, elsewhere.bootstrap, topic, *history).expect(1)
    assert HIDDEN in ran.stderr and not [line for line in said_by(ran) if line.startswith(MISSING)]
    with topic_reader(elsewhere.bootstrap) as reader:
        written = [m for n in range(3) for m in reader.records(topic, n)]
    values = [json.loads(as_bytes(message.value()) or b"") for message in written]
    said = " ".join(ran.stderr.split())
    assert f"{len(values)} records written to topic {topic} on {elsewhere.bootstrap}" in said
    assert f"log ends moved by {len(values)}: by what was written, nothing twice" in said
    assert len(by_place(values)) == len(values)
    older = [by_place([line for line in of if line["logTimestamp"] < began]) for of in (values, lines)]
    assert older[0] == older[1] and len(older[0]) > 30
    stood: dict[bytes | None, int] = {}
    for message, line in zip(written, values, strict=True):
        key = as_bytes(message.key())
        assert key == key_bytes(line)
        assert stood.get(key, -1) < line["logOffset"], "the records of a key are in the order of their log"
        stood[key] = line["logOffset"]
    assert any(line["tombstone"] for line in values) and len(stood) < len(values)


def test_a_topic_that_is_missing_or_on_a_cluster_that_groups_leave_is_refused_and_none_is_created(
    scene: Scene, elsewhere: Cluster
) -> None:
    ran = to_topic(scene, elsewhere.bootstrap, "misspelt").expect(3)
    assert "shows no topic misspelt" in ran.complaint()
    port = scene.cluster.bootstrap.rpartition(":")[2]
    ran = to_topic(scene, f"localhost:{port}", "t").expect(3)
    assert "--to-config names source A: both are cluster" in ran.complaint()
    for ran in (to_topic(scene, elsewhere.bootstrap, "__json"), to_topic(scene, scene.cluster.bootstrap, "__json")):
        assert "is a name of internal topics" in ran.expect(3).complaint()
    assert "misspelt" not in {topic for topic, _ in partitions_of(elsewhere.bootstrap, ["misspelt", "__json"])}


@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.DESCRIBE])
def test_what_may_not_be_read_is_one_sentence_and_leaves_no_file(scene: Scene, operation: AclOperation) -> None:
    with denied(scene.cluster.bootstrap, ResourceType.TOPIC, "__consumer_offsets", operation):

        def refused() -> bool:
            ran = scene.export("forbidden.jsonl")
            (scene.command.folder / "forbidden.jsonl").unlink(missing_ok=True)
            return HIDDEN not in ran.expect(1).stderr and "__consumer_offsets" in ran.complaint()

        wait_until(refused, 120, "the ACL", poll_seconds=0.1)
    assert not list(scene.command.folder.glob("*forbidden*"))


@pytest.mark.long
def test_sparks_own_consumers_need_no_right_on_any_group(scene: Scene) -> None:
    groups = (ResourceType.GROUP, "spark-kafka-source", AclOperation.DESCRIBE, ResourcePatternType.PREFIXED)
    with denied(scene.cluster.bootstrap, *groups):
        assert scene.lines("no-group.jsonl", "--group", "again")
