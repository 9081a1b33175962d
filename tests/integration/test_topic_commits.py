"""Commits read in the offsets topic make the plan that coordinators' answers make, on real brokers."""

import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from migrate.survey.offsets_topic import OFFSETS_TOPIC
from tests.integration import oracle
from tests.integration.cli import CommandLine, Ran, committed_offsets, planned_offsets
from tests.integration.clusters import (
    CALL_SECONDS,
    by_place,
    commit,
    commits_on,
    delete_groups,
    partitions_of,
)
from tests.integration.members import stay_and_leave
from tests.integration.offsetsrecords import sent_in_transaction
from tests.integration.rawmember import commit_without_offset
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

FROM_TOPIC = ("--commits-from", "consumer-offsets")


@dataclass(frozen=True, repr=False)
class Compared:
    """Plans of the same groups, by who told their commits, and the scene that they are of."""

    scene: Scene
    commands: CommandLine
    by_admin: dict[str, Any]
    by_topic: dict[str, Any]
    said: Ran


def checks(document: dict[str, Any], name: str) -> dict[str, tuple[str, str]]:
    return {c["subject"]: (c["level"], c["counts_as"]) for c in document["checks"] if c["check"] == name}


@pytest.fixture(scope="module")
def own_scene(lab: Lab) -> Scene:
    """Groups whose commits were made, and taken away, in every way that there is."""
    scene = Scene(lab, "topic", new_seed())
    source, group = lab.source_bootstrap, scene.group
    topic = scene.create("t", 3)
    scene.write(scene.partitions, 300)
    scene.wait_replicated()
    stay_and_leave(source, group("classic"), topic)
    for offset in (5, 9, 7):  # set back in the end
        commit(source, {group("again"): {(topic, p): offset for p in range(3)}})
    commit(source, {group("epoch"): {(topic, 0): 3}}, leader_epoch=0)
    commit(source, {group(f"simple-{n}"): {(topic, n % 3): n} for n in range(20)})
    commit_without_offset(source, group("without-offset"), topic)
    commit(source, {group("gone"): {(topic, 0): 4}})
    delete_groups(source, [group("gone")])
    for name, outcome in (("committed", True), ("aborted", False)):
        commit(source, {group(name): {(topic, 0): 1}})
        with sent_in_transaction(source, group(name), topic) as producer:
            (producer.commit_transaction if outcome else producer.abort_transaction)(CALL_SECONDS)
    wait_until(
        lambda: commits_on(source, [group("committed")]) == {group("committed"): {(topic, 0): 99}}, CALL_SECONDS,
        "the transaction's commit",
    )  # fmt: skip
    # Two plans are compared: MM2 must write no sync between them.
    lab.mirror.wait_checkpoints([])
    return scene


def planned(commands: CommandLine, name: str, *options: str) -> tuple[Ran, dict[str, Any]]:
    ran = commands.plan(name, "--no-match", *options)
    return ran, commands.planned(ran, name)


@pytest.fixture(scope="module")
def compared(lab: Lab, own_scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    commands = CommandLine.of(lab, tmp_path_factory.mktemp("topic"), warm=True)
    chosen = ("--group", f".*-{own_scene.suffix}")
    _, by_admin = planned(commands, "admin.plan", *chosen)
    said, by_topic = planned(commands, "topic.plan", *chosen, *FROM_TOPIC)
    return Compared(own_scene, commands, by_admin, by_topic, said)


def test_the_plan_is_that_which_coordinators_make_and_says_where_its_commits_are_from(
    compared: Compared, lab: Lab
) -> None:
    assert compared.by_topic["rows"] == compared.by_admin["rows"]
    told, topic, group = committed_offsets(compared.by_topic["rows"]), compared.scene.topic("t"), compared.scene.group
    of_mine = {name for name, _, _ in told if name.endswith(compared.scene.suffix)}
    assert len(of_mine) >= 24 and group("gone") not in of_mine
    assert told[group("committed"), topic, 0] == 99 and told[group("aborted"), topic, 0] == 1
    assert told[group("again"), topic, 2] == 7
    one, other = compared.by_admin["header"], compared.by_topic["header"]
    assert other["settings"]["commits-from"] == "consumer-offsets" and "commits-from" not in one["settings"]
    read = [p for p in other["pinned"] if p["topic"] == OFFSETS_TOPIC]
    partitions = len(partitions_of(lab.source_bootstrap, [OFFSETS_TOPIC]))
    assert len(read) == partitions > 1 and {p["side"] for p in read} == {"source"}
    # MM2 runs, and its own topics grow.
    own = [[p for p in header["pinned"] if compared.scene.suffix in p["topic"]] for header in (one, other)]
    assert own[0] == own[1] and len(own[0]) == 6
    for field in ("source_cluster_id", "source_topic_ids", "target_topic_ids", "group_states", "waivers"):
        assert other[field] == one[field], field
    assert one["counts"]["rows"] == other["counts"]["rows"]


def test_what_is_read_is_announced_and_a_commit_of_minus_one_is_named_and_moves_nothing(compared: Compared) -> None:
    said = " ".join(compared.said.stderr.split())
    announced = r"in __consumer_offsets of A: (\d+) of \1 partitions, [\d,]+ offsets, about \S+ \S+ in two passes"
    assert re.search(announced, said), said
    assert checks(compared.by_topic, "listing-agrees") == {"A": ("pass", "pass")}
    assert checks(compared.by_admin, "listing-agrees") == {}
    group = compared.scene.group("without-offset")
    seen = f"a commit without an offset (-1) on {compared.scene.topic('t')}-0"
    for document in (compared.by_admin, compared.by_topic):
        told = {c["subject"]: c["seen"] for c in document["checks"] if c["check"] == "partitions-never-committed"}
        assert told[group] == seen and group not in {row["group"] for row in document["rows"]}
    assert f"{group}: {seen}" in " ".join(compared.said.stdout.split())


def test_groups_behind_an_open_transaction_are_pending(compared: Compared, lab: Lab) -> None:
    group, topic = compared.scene.group("open"), compared.scene.topic("t")
    commit(lab.source_bootstrap, {group: {(topic, 0): 1}})
    with ExitStack() as stack:
        producer = stack.enter_context(sent_in_transaction(lab.source_bootstrap, group, topic))
        stack.callback(producer.abort_transaction, CALL_SECONDS)
        ran, document = planned(compared.commands, "open.plan", "--group", group, *FROM_TOPIC)
    ran.expect(3)
    assert checks(document, "pending-transactions") == {group: ("block", "block")}
    assert checks(document, "listing-agrees") == {"A": ("not-visible", "warn")}
    assert [row["source_committed"] for row in document["rows"]] == [1]


def test_a_group_that_somebody_reset_is_moved_to_where_it_was(
    compared: Compared, own_scene: Scene, lab: Lab, tmp_path: Path
) -> None:
    """Reset to the end by mistake, which would skip all that it had not read; nothing of that is lost."""
    source, group, topic = lab.source_bootstrap, own_scene.group("reset"), own_scene.topic("t")
    commands, ends = compared.commands.inside(tmp_path), own_scene.source_ends()
    before = {place: end // 2 for place, (_, end) in ends.items()}
    commit(source, {group: before})
    time_ms = after_now()
    commit(source, {group: {place: end for place, (_, end) in ends.items()}})
    commit(source, {own_scene.group("later"): {(topic, 0): 5}})
    chosen = ("--group", group, "--commits-as-of", str(time_ms))
    commands.plan("then.plan", *chosen).expect(0)
    document = commands.document("then.plan")
    assert document["header"]["settings"]["commits-from"] == "consumer-offsets"
    assert committed_offsets(document["rows"]) == {(group, *place): offset for place, offset in before.items()}
    live = {(row["source_topic"], row["partition"]): row["live_source_offset"] for row in document["rows"]}
    assert live == {place: end for place, (_, end) in ends.items()}
    truth = own_scene.truth()
    for row in document["rows"]:
        place = (row["source_topic"], row["partition"])
        assert not oracle.lost(truth[place], before[place], row["target_offset"]), place
    commands.execute("then.plan").expect(0)
    commands.verify("then.plan").expect(0)
    assert by_place(commits_on(lab.target_bootstrap, [group])) == planned_offsets(document["rows"])
    commands.undo("then.plan").expect(0)
    # What is compared before apply is what is committed now.
    commands.plan("again.plan", *chosen).expect(0)
    commit(source, {group: {(topic, 0): ends[topic, 0][1] - 1}})
    refused = commands.execute("again.plan").expect(3)
    assert "source committed offset" in " ".join((refused.stdout + refused.stderr).split())


def after_now() -> int:
    """A moment that all that was done so far lies before, and what is done from now on behind."""
    moment = int(time.time() * 1000) + 1
    wait_until(lambda: time.time() * 1000 > moment, CALL_SECONDS, "the next moment")
    return moment


def recreated_since(lab: Lab) -> tuple[Scene, str, int]:
    """A scene whose topic was created anew, a group that has committed before and since, and a time in between.

    What it committed before, deleting the topic has taken from the coordinator, and left in the offsets topic.
    """
    scene = Scene(lab, "reborn", new_seed())
    topic, group = scene.create("t", 1), scene.group("g")
    scene.write(scene.partitions, 100)
    scene.wait_replicated()
    scene.commit({group: {(topic, 0): 60}})
    time_ms = after_now()
    scene.create_anew(topic)
    scene.write(scene.partitions, 80)
    scene.commit({group: {(topic, 0): 20}})
    return scene, group, time_ms


def test_a_commit_of_before_its_topic_was_created_anew_blocks(lab: Lab, tmp_path: Path) -> None:
    scene, group, time_ms = recreated_since(lab)
    chosen = ("--group", group, "--commits-as-of", str(time_ms))
    ran, document = planned(CommandLine.of(lab, tmp_path, warm=True), "then.plan", *chosen)
    ran.expect(3)
    place = f"{group}/{scene.topic('t')}/0"
    assert checks(document, "commit-of-another-log") == {place: ("block", "block")}
    (row,) = document["rows"]
    assert (row["source_committed"], row["live_source_offset"], row["decision"]) == (60, 20, "block")


@pytest.mark.long
def test_without_topic_ids_nobody_can_tell_and_it_blocks_until_it_is_accepted(
    lab_factory: Callable[..., Lab], tmp_path: Path
) -> None:
    """Brokers before Kafka 4.1 store no id with a commit."""
    lab = lab_factory(version="3.9.2")
    scene, group, time_ms = recreated_since(lab)
    commands, place = CommandLine.of(lab, tmp_path, warm=True), f"{group}/{scene.topic('t')}/0"
    chosen = ("--group", group, "--commits-as-of", str(time_ms))
    ran, document = planned(commands, "then.plan", *chosen)
    ran.expect(3)
    assert checks(document, "commit-of-another-log") == {place: ("not-visible", "block")}
    waiver = f"commit-of-another-log:{place}"
    _, document = planned(commands, "known.plan", *chosen, "--accept", waiver)
    assert checks(document, "commit-of-another-log") == {place: ("warn", "warn")}
    # Of the commits of now the same proves nothing either, and is said without a block.
    _, document = planned(commands, "now.plan", "--group", group)
    assert {counts for _, counts in checks(document, "commit-of-another-log").values()} == {"pass"}
