"""What brokers take out of `__consumer_offsets`, for its age or with its topic, told as Kafka's formatters tell it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.extras.offsets_topic.integration.exportscene import (
    COMMIT_NONE,
    GROUP_NONE,
    Scene,
    by_key,
    scene_of,
    with_none,
)
from tests.integration.clusters import CALL_SECONDS, QUIET, commit, create_topic, delete_topic, groups_on
from tests.integration.formatters import Told, told
from tests.integration.members import member_of_kip_848, stay_and_leave
from tests.integration.offsetsrecords import taken_away
from tests.integration.rawmember import commit_for
from tests.lab.cluster import Cluster
from tests.lab.jars import version_tuple
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

LOOK_MS = 500
EXPIRY_SECONDS = 180
VERSIONS = ("4.3.1", "4.1.1", "3.9.2")
EVERYTHING = ("--history", "--tombstones", "--exclude-group", "none of them")


@contextmanager
def cluster_of(version: str, folder: Path, **settings: str) -> Iterator[Cluster]:
    """A cluster that looks for commits to expire all the time, with topics `t` and `u`."""
    lines = {name.replace("_", "."): value for name, value in settings.items()}
    overrides = {"offsets.retention.check.interval.ms": str(LOOK_MS), **lines}
    cluster = Cluster("tombstones", folder / "kafka", version=version, overrides=overrides)
    with ExitStack() as stack:
        stack.callback(cluster.kill)
        cluster.start()
        for topic in ("t", "u"):
            create_topic(cluster.bootstrap, topic, 2)
        yield cluster


def wait_taken_away(cluster: Cluster, *places: tuple[str, str, int]) -> None:
    wait_until(
        lambda: taken_away(cluster.bootstrap) >= set(places), EXPIRY_SECONDS, f"tombstones for {places}",
        lambda: f"{sorted(taken_away(cluster.bootstrap))}", poll_seconds=0.5,
    )  # fmt: skip


@pytest.fixture(scope="module", params=VERSIONS)
def dropped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A topic with commits was deleted, and made anew; another commit went after a second, as its client wished."""
    folder = tmp_path_factory.mktemp("dropped")
    with cluster_of(request.param, folder) as cluster:
        bootstrap = cluster.bootstrap
        stay_and_leave(bootstrap, "classic", "u")
        commit(bootstrap, {"both": {("t", 0): 1, ("u", 0): 2, ("u", 1): 3}, "of-t": {("t", 1): 4}})
        commit_for(bootstrap, "brief", "t", 5, 1000)
        delete_topic(bootstrap, "u")
        gone = [("classic", "u", 0), ("both", "u", 0), ("both", "u", 1)]
        wait_taken_away(cluster, *gone, ("brief", "t", 0))
        create_topic(bootstrap, "u", 2)
        commit(bootstrap, {"both": {("u", 1): 0}})
        yield scene_of(cluster, folder)


@pytest.fixture(scope="module", params=VERSIONS)
def expired(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Commits are kept for a minute, which has passed for all groups but the one with a member."""
    folder = tmp_path_factory.mktemp("expired")
    with cluster_of(request.param, folder, offsets_retention_minutes="1") as cluster, staying(cluster.bootstrap):
        bootstrap, places = cluster.bootstrap, [("simple", "t", 0), ("simple", "u", 1), ("classic", "t", 0)]
        commit(bootstrap, {"simple": {("t", 0): 1, ("u", 1): 2}})
        stay_and_leave(bootstrap, "classic", "t")
        if version_tuple(cluster.version) >= (4, 0, 0):
            with member_of_kip_848(bootstrap, "kip-848", "u"):
                pass
            commit(bootstrap, {"kip-848": {("u", 0): 3}})
            places.append(("kip-848", "u", 0))
        wait_taken_away(cluster, *places)
        # A group's own record goes after its last offset.
        wait_until(
            lambda: not groups_on(bootstrap) & {"classic", "kip-848"}, EXPIRY_SECONDS, "groups to be gone",
            poll_seconds=0.5,
        )  # fmt: skip
        yield scene_of(cluster, folder)


@contextmanager
def staying(bootstrap: str) -> Iterator[None]:
    """A classic group that has committed, and keeps its member."""
    lasting = {"max.poll.interval.ms": 3_600_000, "session.timeout.ms": 60_000, "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "staying", **lasting, **QUIET})
    consumer.subscribe(["t"])

    def joined() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    try:
        wait_until(joined, CALL_SECONDS, "a member of staying", poll_seconds=0.0)
        consumer.commit(offsets=[TopicPartition("t", 1, 7)], asynchronous=False)
        yield
    finally:
        consumer.close()


def commits_told_twice(scene: Scene) -> Told:
    """Every commit that ever was, which Kafka's formatter tells as the export does."""
    ours = by_key(scene.lines("history.jsonl", *EVERYTHING), list(COMMIT_NONE))
    assert ours == with_none(told(scene.cluster, "OffsetsMessageFormatter"), COMMIT_NONE)
    return {key: [value and value["data"]["offset"] for value in values] for key, values in ours.items()}


def key(group: str, topic: str, partition: int) -> str:
    return f'{{"data": {{"group": "{group}", "partition": {partition}, "topic": "{topic}"}}, "type": 1}}'


def newest(scene: Scene, out: str, *options: str) -> dict[tuple[str, str, int], int | None]:
    lines = scene.lines(out, *options)
    return {(line["group"], line["topic"], line["partition"]): line["offset"] for line in lines}


def test_commits_on_a_topic_that_was_deleted_end_in_tombstones_and_begin_anew(dropped: Scene) -> None:
    stories = commits_told_twice(dropped)
    assert stories[key("both", "u", 0)] == [2, None] and stories[key("classic", "u", 0)] == [0, None]
    # The topic of that name that came after is another one.
    assert stories[key("both", "u", 1)] == [3, None, 0] and stories[key("both", "t", 0)] == [1]
    present = {("both", "t", 0): 1, ("both", "u", 1): 0, ("of-t", "t", 1): 4}
    assert newest(dropped, "present.jsonl") == present
    taken = {("both", "u", 0): None, ("classic", "u", 0): None, ("brief", "t", 0): None}
    assert newest(dropped, "newest.jsonl", "--tombstones") == present | taken


def test_a_commit_that_carried_its_own_end_has_gone_by_then(dropped: Scene) -> None:
    lines = dropped.lines("brief.jsonl", "--history", "--tombstones", "--group", "brief")
    made, gone = sorted(lines, key=lambda line: line["logOffset"])
    assert (made["version"], made["offset"], made["expires"], gone["tombstone"]) == (1, 5, "stored", True)
    # Of the brokers' clock, which looks twice a second.
    assert gone["logTimestamp"] >= made["expireTimestamp"] == made["commitTimestamp"] + 1000


def test_commits_that_have_expired_end_in_tombstones_and_those_of_members_stand(expired: Scene) -> None:
    stories = commits_told_twice(expired)
    assert stories.pop(key("staying", "t", 1)) == [7]
    assert stories and all(offsets[-1] is None and None not in offsets[:-1] for offsets in stories.values())
    assert newest(expired, "present.jsonl") == {("staying", "t", 1): 7}
    assert len(newest(expired, "newest.jsonl", "--tombstones")) == len(stories) + 1
    ran = expired.export("named.jsonl", "--group", "simple")
    assert "Nothing is there of simple" in ran.expect(1).stderr


def test_groups_that_have_expired_are_gone_as_kafkas_formatter_tells_it(expired: Scene) -> None:
    options = ("--history", "--tombstones", "--kinds", "groups", "--exclude-group", "console-consumer-.*")
    lines = [line for line in expired.lines("groups.jsonl", *options) if line["recordType"] == 2]
    ours = by_key(lines, list(GROUP_NONE))
    theirs = with_none(told(expired.cluster, "GroupMetadataMessageFormatter"), GROUP_NONE)
    assert ours == {k: values for k, values in theirs.items() if k in ours} and ours.keys() >= classic(theirs)
    by_group = {line["group"]: line["tombstone"] for line in sorted(lines, key=lambda line: line["logOffset"])}
    # Of a group that never had a member a coordinator takes the record away, too.
    assert by_group["classic"] and [group for group, is_gone in by_group.items() if not is_gone] == ["staying"]


def classic(said: Told) -> set[str]:
    """The keys of classic groups, without the judge's own."""
    return {k for k in said if '"type": 2' in k and "console-consumer-" not in k}
