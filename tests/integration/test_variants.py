"""Other ways to run MM2: each a whole cutover, judged by the same truth.

What differs is what MM2 names its topics, where it keeps its syncs, how it writes them, and the version of each of the
three: a cutover often is an upgrade.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration import oracle
from tests.integration.cli import CommandLine
from tests.integration.clusters import Partition
from tests.integration.judge import judged_cutover
from tests.integration.killedscene import kill_mid_stream
from tests.integration.scene import Scene
from tests.lab.lab import Versions
from tests.lab.options import MirrorOptions
from tests.seeds import new_seed


@dataclass(frozen=True)
class Variant:
    """A Kafka version, or three, and MM2's options; `named` gives everything by option instead of mm2.properties.

    With `killed` MM2 is killed -9 amid its copying, so that the target has records twice. `long` leaves it to
    scripts/test --long.
    """

    version: str | Versions
    options: MirrorOptions
    named: bool = False
    source_dies: bool = False
    killed: bool = False
    long: bool = False


OPEN = 7
# exactly once reads its source read_committed, as MM2 demands for it
ISOLATION = {"A.consumer.isolation.level": "read_committed"}
VARIANTS = {
    "kafka 3.9.2, exactly once, identity names, syncs on the target": Variant(
        "3.9.2",
        MirrorOptions(exactly_once=True, policy="identity", offset_syncs_location="target", extra=ISOLATION),
        source_dies=True,
    ),
    "other aliases and separator, everything by option": Variant(
        "4.3.1", MirrorOptions(source_alias="old", target_alias="new", separator="_"), named=True, long=True
    ),
    "an alias in the settings that is not that of clusters": Variant(
        "4.3.1", MirrorOptions(own_alias="prod", offset_syncs_location="target"), long=True
    ),
    "an empty alias and an empty separator": Variant("4.3.1", MirrorOptions(own_alias="", separator=""), long=True),
    "from kafka 3.9.2 to 4.3.1 by an MM2 4.1.1": Variant(
        Versions(source="3.9.2", target="4.3.1", mirror="4.1.1"), MirrorOptions(), killed=True, long=True
    ),
    "back from kafka 4.3.1 to 3.9.2 by an MM2 4.1.1": Variant(
        Versions(source="4.3.1", target="3.9.2", mirror="4.1.1"), MirrorOptions(), killed=True, long=True
    ),
}


def clusters_by_option(lab: Any) -> tuple[str, ...]:
    """All that mm2.properties would tell, as options."""
    options = lab.options
    return (
        "--source-config", str(lab.source_properties), "--target-config", str(lab.target_properties),
        "--source", options.source_alias, "--target", options.target_alias,
        "--replication-policy", options.policy, "--separator", options.separator,
        "--offset-syncs-location", options.offset_syncs_location,
        "--checkpoints-topic", options.checkpoints_topic, "--offset-syncs-topic", options.offset_syncs_topic,
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if v.long else ()) for name, v in VARIANTS.items()]
)
def test_a_cutover_is_loss_free(name: str, lab_factory: Any, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    lab = lab_factory(version=variant.version, mirror=variant.options)
    scene = Scene(lab, "variant", new_seed())
    plain, tx = scene.create("pla.in", 2), scene.create("tx", 1)

    def write() -> None:
        scene.write([(plain, 0), (plain, 1)], 2000)
        scene.write_transactions([(tx, 0)], 800)

    for _ in range(2 if variant.killed else 0):
        kill_mid_stream(scene, write)
        lab.mirror.start()
    write()
    ends = scene.source_ends()
    for number in range(12):
        scene.commit(
            {scene.group(f"g{number}"): {place: scene.dice.randint(*ends[place]) for place in scene.partitions}}
        )
    caught_up = scene.group("caught-up")
    scene.commit({caught_up: {place: end for place, (_, end) in ends.items()}})
    scene.wait_replicated()
    lab.mirror.wait_checkpoints([caught_up])

    commands = CommandLine.of(lab, tmp_path, warm=True)
    if variant.named:
        commands = replace(commands, clusters=clusters_by_option(lab))
    # Of its own: nobody commits there.
    held = scene.create("held", 1)
    scene.write([(held, 0)], 20)
    with scene.open_transaction((held, 0), OPEN):
        scene.wait_replicated()
        shown = commands.run("mm2", "offsets", *commands.clusters, "--topic", f".*{scene.suffix}", "--format", "json")
    stores = json.loads(shown.expect(0).stdout)
    left = {(p["source_topic"], p["partition"]): p["left"] for p in stores["partitions"] if p["source_topic"] != tx}
    # An MM2 that reads committed waits for the transaction's end, any other has copied what is in it.
    waits = OPEN if variant.options.exactly_once else 0
    assert not stores["not_known"] and left == {(plain, 0): 0, (plain, 1): 0, (held, 0): waits}

    commands.plan("c.plan", "--group", f".*{scene.suffix}").expect(0)
    rows, truth = judged_cutover(scene, commands, "c.plan")
    assert bool(sum(map(oracle.replayed, truth.values()))) is variant.killed, f"{scene}: copied twice or not"
    for row in rows:
        hint, place = row["checkpoint_target_offset"], truth[row["source_topic"], row["partition"]]
        if hint is not None and hint > row["target_offset"]:
            assert oracle.lost(place, row["source_committed"], hint), f"{scene}: behind MM2: {row}"
    assert any(row["checkpoint_target_offset"] is not None for row in rows)
    if variant.source_dies:
        lab.source.kill()
        judge_without_source(commands, scene, truth)


def judge_without_source(commands: CommandLine, scene: Scene, truth: Mapping[Partition, oracle.Truth]) -> None:
    """Plan from the target alone: refused until accepted by name, and loss-free from MM2's own idea of the group."""
    dead = commands.plan("dead.plan", "--request-timeout", "5").expect(1)
    assert "--source-down" in dead.complaint()
    only = ("--group", f".*{scene.suffix}")
    status = commands.run("status", *commands.clusters, *only, "--settle", "0", "--request-timeout", "5").expect(3)
    shown = " ".join(status.stdout.split())
    assert shown.startswith("A DOES NOT ANSWER; NOT READY: source-down") and "on A: not known" in shown, shown
    wanted = ("--source-down", *only, "--untranslatable", "skip")
    commands.plan("down.plan", *wanted).expect(3)
    commands.plan("down.plan", *wanted, "--accept", "source-down").expect(0)
    document = commands.document("down.plan")
    assert document["header"]["source_down"] and document["header"]["source_cluster_id"] == ""
    rows = [row for row in document["rows"] if row["decision"] == "set"]
    assert rows and {row["grade"] for row in rows} == {"estimated"}
    for row in rows:
        place = truth[row["source_topic"], row["partition"]]
        assert not oracle.lost(place, row["source_committed"], row["target_offset"]), f"{scene}: {row}"
    commands.execute("down.plan").expect(0)
    # Rows that the plan skips are nobody's to verify.
    commands.verify("down.plan").expect(0 if len(rows) == len(document["rows"]) else 4)
