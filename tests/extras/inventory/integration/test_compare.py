"""`groups compare` on real brokers with a real MM2 that was killed while it copied, held against the truth.

One story in steps: before `apply`, after it, after somebody's reset. Then another MM2, with its own group sync on.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration import oracle
from tests.integration.cli import CommandLine, Place, Ran
from tests.integration.clusters import Partition, commit, commits_on, member, portrait
from tests.integration.flows import copied_through_kills
from tests.integration.oracle import Truth
from tests.integration.repeated import again_and_again
from tests.integration.scene import Scene
from tests.lab.fixtures import own_clusters_only
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

SYNC_SECONDS = 120.0
GROUPS = 6


@dataclass(frozen=True)
class Compared:
    """A comparison that the command printed as JSON, and the truth that it is judged by."""

    ran: Ran
    document: Mapping[str, Any]
    truth: Mapping[Partition, Truth]

    @property
    def rows(self) -> dict[Place, Mapping[str, Any]]:
        return {(row["group"], row["source_topic"], row["partition"]): row for row in self.document["rows"]}

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(row["verdict"] for row in self.document["rows"])

    def lost(self, place: Place) -> int:
        """How many records a group loses that starts where it has committed on the target."""
        row, (_, topic, partition) = self.rows[place], place
        return len(oracle.lost(self.truth[topic, partition], row["source_committed"], row["target_committed"]))


@dataclass(frozen=True)
class Story:
    """A scene that was compared before `apply`, after it, and after two resets by hand."""

    scene: Scene
    commands: CommandLine
    before: Compared
    applied: Compared
    table: Ran
    without_records: Compared
    reset: Compared
    behind: Place
    ahead: Place
    source_before: Mapping[str, Any]
    source_after: Mapping[str, Any]


def staged(lab: Lab, name: str) -> Scene:
    """Plain and transactional partitions, copied by an MM2 that was killed once, and groups all over them."""
    lab.mirror.kill()
    scene = Scene(lab, name, new_seed())
    plain, tx = scene.create("plain", 2), scene.create("tx", 2)
    places = [(topic, p) for topic in (plain, tx) for p in range(2)]

    def write() -> None:
        scene.write(places[:2], 1000)
        scene.write_transactions(places[2:], 1000)

    copied_through_kills(lab, [scene], write, kills=1)
    ends = scene.source_ends()
    commits = {scene.group("done"): {place: ends[place][1] for place in places}}
    for number in range(GROUPS):
        commits[scene.group(f"g{number}")] = {p: scene.dice.randint(10, ends[p][1] - 10) for p in places}
    scene.commit(commits)
    return scene


def look(commands: CommandLine, scene: Scene, *options: str, exit_code: int | None = None) -> Compared:
    ran = commands.run("groups", "compare", *commands.clusters, *chosen(scene), "--format", "json", *options)
    if exit_code is not None:
        ran.expect(exit_code)
    return Compared(ran, json.loads(ran.stdout), scene.truth())


def chosen(scene: Scene) -> tuple[str, ...]:
    return "--group", f".*{scene.suffix}"


@pytest.fixture(scope="module")
def story(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Story:
    own_clusters_only()
    scene = staged(lab, "compare")
    commands = CommandLine.of(lab, tmp_path_factory.mktemp("commands"), warm=True)
    target, groups = lab.target_bootstrap, sorted(scene.commits)
    source_before = portrait(lab.source_bootstrap, lab.options)
    before = look(commands, scene, exit_code=1)
    commands.plan("cutover.plan", *chosen(scene)).expect(0)
    commands.execute("cutover.plan").expect(0)
    applied = look(commands, scene, exit_code=0)
    table = commands.run("groups", "compare", *commands.clusters, *chosen(scene)).expect(0)
    without_records = look(commands, scene, "--no-match")

    topic = scene.topic("plain")
    behind, ahead = (scene.group("g0"), topic, 0), (scene.group("g1"), topic, 0)
    now = commits_on(target, groups)
    copy = scene.copy(topic), 0
    commit(target, {behind[0]: {copy: now[behind[0]][copy] - 7}})
    commit(target, {ahead[0]: {copy: now[ahead[0]][copy] + 5}})
    reset = look(commands, scene, exit_code=1)
    return Story(
        scene, commands, before, applied, table, without_records, reset, behind, ahead, source_before,
        portrait(lab.source_bootstrap, lab.options),
    )  # fmt: skip


def test_before_apply_the_target_lacks_every_commit(story: Story) -> None:
    assert story.before.rows.keys() == story.scene.places.keys()
    assert story.before.verdicts == {"missing-on-target": len(story.scene.places)}


def test_after_apply_every_commit_is_equal_though_the_numbers_differ(story: Story) -> None:
    rows = story.applied.rows
    assert rows.keys() == story.scene.places.keys()
    assert story.applied.verdicts == {"equal": len(rows)}
    assert any(row["source_committed"] != row["target_committed"] for row in rows.values())
    assert not any(story.applied.lost(place) for place in rows)
    assert story.table.stdout.splitlines()[1].startswith("EQUAL: "), story.table.stdout


def test_without_records_no_correct_commit_is_called_ahead_for_sure_or_let_pass_unproven(story: Story) -> None:
    verdicts = story.without_records.verdicts
    assert verdicts.keys() <= {"equal", "undecided"}, verdicts
    assert story.without_records.ran.exit_code == 1
    assert {row["loss"] for row in story.without_records.rows.values()} == {"possible"}


def test_after_somebodys_reset_the_two_are_named_with_their_records_and_the_others_stay_equal(story: Story) -> None:
    rows = story.reset.rows
    behind, ahead = rows[story.behind], rows[story.ahead]
    assert story.reset.verdicts == {"equal": len(rows) - 2, "behind": 1, "ahead": 1}
    assert (behind["verdict"], behind["difference"], behind["difference_is_records"]) == ("behind", -7, True)
    assert (ahead["verdict"], ahead["difference"], ahead["difference_is_records"]) == ("ahead", 5, True)
    assert (behind["loss"], ahead["loss"]) == ("none", "likely")
    assert story.reset.lost(story.behind) == 0 < story.reset.lost(story.ahead)
    truth = story.reset.truth[story.behind[1], story.behind[2]]
    assert oracle.rereads(truth, behind["source_committed"], behind["target_committed"]) <= behind["rereads_at_most"]


@pytest.mark.long
def test_a_group_with_members_on_the_target_may_have_read_on_there(story: Story) -> None:
    scene, group = story.scene, story.ahead[0]
    with member(scene.lab.target_bootstrap, group, scene.copy(scene.topic("plain"))):
        read_on = look(story.commands, scene, "--group", group, exit_code=1)
    row = read_on.rows[story.ahead]
    assert (row["verdict"], row["loss"], row["reason"]) == ("ahead", "possible", "alive-on-target")


def test_to_compare_changes_nothing_on_the_source(story: Story) -> None:
    assert story.source_before == story.source_after


@pytest.fixture(scope="module")
def own_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    own_clusters_only()
    mirror = MirrorOptions(sync_group_offsets=True)
    with Lab(tmp_path_factory.mktemp("compare"), mirror=mirror, start_mirror=False) as lab:
        yield lab


@pytest.fixture(scope="module")
def synced(own_lab: Lab) -> Scene:
    """Another MM2, whose group sync writes the offsets; it has come to rest."""
    scene = staged(own_lab, "synced")
    groups = sorted(scene.commits)
    own_lab.mirror.wait_checkpoints([scene.group("done")])
    seen: list[Any] = []

    def is_at_rest() -> bool:
        seen.append(commits_on(own_lab.target_bootstrap, groups))
        return bool(seen[-1]) and len(seen) > 5 and all(seen[-1] == earlier for earlier in seen[-6:])

    wait_until(is_at_rest, SYNC_SECONDS, "MM2's group sync", poll_seconds=1.0)
    return scene


@pytest.mark.long
def test_what_mm2s_group_sync_wrote_is_judged_as_the_truth_judges_it(
    synced: Scene, own_lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And with `--no-match` nothing is said that the truth denies."""
    commands = CommandLine.of(own_lab, tmp_path, warm=True)
    exact, quick = look(commands, synced), look(commands, synced, "--no-match")
    assert exact.rows.keys() == quick.rows.keys() == synced.places.keys()
    for seen in (exact, quick):
        for place, row in seen.rows.items():
            if row["verdict"] in ("equal", "behind"):
                assert seen.lost(place) == 0, (place, row)
                truth, at_most = seen.truth[place[1], place[2]], row["rereads_at_most"]
                twice = oracle.rereads(truth, row["source_committed"], row["target_committed"])
                assert at_most is None or twice <= at_most, (twice, place, row)
            if row["loss"] == "likely":
                assert seen.lost(place) > 0, (place, row)
            if row["verdict"] == "behind":
                truth = seen.truth[place[1], place[2]]
                between = [r for r in truth.target.records if row["target_committed"] <= r.offset < row["translated"]]
                counted = len(between) == -row["difference"]
                assert counted if row["difference_is_records"] else len(between) <= -row["difference"], (place, row)
    distances = sorted(-row["difference"] for row in exact.rows.values() if row["verdict"] == "behind")
    with capsys.disabled():
        print(f"\nMM2's group sync, {synced}: {dict(exact.verdicts)}, records behind {distances}")
        print(f"without records: {dict(quick.verdicts)}")


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--no-match",)])
def test_a_group_that_commits_during_the_look_is_never_equal_and_never_lost_for_sure(
    synced: Scene, own_lab: Lab, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """MM2's group sync writes for it meanwhile, so that the target moves as well."""
    commands = CommandLine.of(own_lab, tmp_path, warm=True)
    group, place = synced.group("live"), (synced.topic("plain"), 0)
    offsets = itertools.count(600)
    with again_and_again(lambda: commit(own_lab.source_bootstrap, {group: {place: next(offsets)}}), 0.01):
        wait_until(lambda: commits_on(own_lab.target_bootstrap, [group]), SYNC_SECONDS, "MM2's group sync")
        # Where no JVM has to start between them, the two looks at the source may both fall between two commits.
        rows = [look(commands, synced, *options).rows[group, *place] for _ in range(5)]
    moved = [row for row in rows if row["source_moved_to"] is not None]
    assert moved, rows
    for row in moved:
        assert row["source_moved_to"] > row["source_committed"], row
        assert (row["verdict"], row["reason"]) in {("behind", "source-moved"), ("undecided", "source-moved")}, row
        assert row["beyond"] and row["loss"] != "likely"
