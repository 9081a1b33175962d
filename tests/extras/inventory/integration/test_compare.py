"""`groups compare` on real brokers with a real MM2 that was killed while it copied, held against the truth.

One story in steps: before `apply`, after it, after somebody's reset. Then another MM2, with its own group sync on.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration import oracle
from tests.integration.cli import CommandLine, Place
from tests.integration.clusters import Partition, commit, commits_on, portrait
from tests.integration.flows import copied_through_kills
from tests.integration.oracle import Truth
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

SYNC_SECONDS = 120.0
GROUPS = 6


@dataclass(frozen=True)
class Compared:
    """A comparison that the command printed as JSON, and the truth that it is judged by."""

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
    return Compared(json.loads(ran.stdout), scene.truth())


def chosen(scene: Scene) -> tuple[str, ...]:
    return "--group", f".*{scene.suffix}"


def test_a_cutover_is_compared_before_it_after_it_and_after_somebodys_reset(lab: Lab, tmp_path: Path) -> None:
    scene, commands = staged(lab, "compare"), CommandLine.of(lab, tmp_path, warm=True)
    source_before = portrait(lab.source_bootstrap, lab.options)
    before = look(commands, scene, exit_code=1)
    assert before.rows.keys() == scene.places.keys()
    assert before.verdicts == {"missing-on-target": len(scene.places)}

    commands.plan("cutover.plan", *chosen(scene)).expect(0)
    commands.execute("cutover.plan").expect(0)
    applied = look(commands, scene, exit_code=0)
    assert applied.rows.keys() == scene.places.keys() and applied.verdicts == {"equal": len(scene.places)}
    assert any(row["source_committed"] != row["target_committed"] for row in applied.rows.values())
    assert not any(applied.lost(place) for place in applied.rows)
    table = commands.run("groups", "compare", *commands.clusters, *chosen(scene)).expect(0)
    assert table.stdout.splitlines()[1].startswith("EQUAL: "), table.stdout

    # Without records no correct commit is called ahead for sure, or let pass unproven.
    without_records = look(commands, scene, "--no-match", exit_code=1)
    assert without_records.verdicts.keys() <= {"equal", "undecided"}, without_records.verdicts
    assert {row["loss"] for row in without_records.rows.values()} == {"possible"}

    place, copy = (scene.topic("plain"), 0), (scene.copy(scene.topic("plain")), 0)
    for group, moved in (("g0", -7), ("g1", 5)):
        now = commits_on(lab.target_bootstrap, [scene.group(group)])[scene.group(group)][copy]
        commit(lab.target_bootstrap, {scene.group(group): {copy: now + moved}})
    reset = look(commands, scene, exit_code=1)
    assert reset.verdicts == {"equal": len(reset.rows) - 2, "behind": 1, "ahead": 1}
    behind, ahead = (reset.rows[scene.group(group), *place] for group in ("g0", "g1"))
    assert (behind["verdict"], behind["difference"], behind["difference_is_records"]) == ("behind", -7, True)
    assert (ahead["verdict"], ahead["difference"], ahead["difference_is_records"]) == ("ahead", 5, True)
    assert (behind["loss"], ahead["loss"]) == ("none", "likely")
    assert reset.lost((behind["group"], *place)) == 0 < reset.lost((ahead["group"], *place))
    twice = oracle.rereads(reset.truth[place], behind["source_committed"], behind["target_committed"])
    assert twice <= behind["rereads_at_most"]
    assert source_before == portrait(lab.source_bootstrap, lab.options), "to compare changes nothing on the source"


@pytest.mark.long
def test_what_mm2s_group_sync_wrote_is_judged_as_the_truth_judges_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By another MM2, whose group sync writes the offsets; with `--no-match` nothing is said that the truth denies."""
    with Lab(tmp_path / "lab", mirror=MirrorOptions(sync_group_offsets=True), start_mirror=False) as lab:
        synced, commands = staged(lab, "synced"), CommandLine.of(lab, tmp_path, warm=True)
        lab.mirror.wait_checkpoints([synced.group("done")])
        looks: list[Any] = []

        def is_at_rest() -> bool:
            looks.append(commits_on(lab.target_bootstrap, sorted(synced.commits)))
            return bool(looks[-1]) and len(looks) > 5 and all(looks[-1] == earlier for earlier in looks[-6:])

        wait_until(is_at_rest, SYNC_SECONDS, "MM2's group sync", poll_seconds=1.0)
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
