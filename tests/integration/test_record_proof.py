"""`verify --records` on real clusters: what it shows is what stands there, and it shows nothing else."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.integration.cli import CommandLine, Place, Ran
from tests.integration.clusters import Partition, commit, delete_before, portrait
from tests.integration.oracle import Found, Log, Truth
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.seeds import new_seed

GROUPS = 12


@dataclass(frozen=True, repr=False)
class Proved:
    """A scene planned and applied, its truth at that time, and what `verify --records` said then."""

    scene: Scene
    commands: CommandLine
    truth: dict[Partition, Truth]
    rows: dict[Place, dict[str, Any]]
    told: Ran
    records: dict[Place, dict[str, Any]]

    def prove(self, exit_code: int, *options: str) -> dict[str, Any]:
        ran = self.commands.verify("c.plan", "--records", "--format", "json", *options).expect(exit_code)
        document: dict[str, Any] = json.loads(ran.stdout)
        return document


def by_place(records: Iterable[dict[str, Any]]) -> dict[Place, dict[str, Any]]:
    return {(r["group"], r["source_topic"], r["partition"]): r for r in records}


@pytest.fixture(scope="module")
def proved(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Proved:
    scene = Scene(lab, "proof", new_seed())
    plain, tx = scene.create("plain", 3), scene.create("tx", 2)
    scene.write([(plain, 0), (plain, 1)], 1500)
    scene.write_transactions([(tx, 0), (tx, 1)], 900)
    ends = scene.source_ends()
    for number in range(GROUPS):
        places = {place: scene.dice.randint(*ends[place]) for place in scene.partitions}
        scene.commit({scene.group(f"g{number:02}"): places})
    scene.commit({scene.group("done"): {place: end for place, (_, end) in ends.items()}})
    scene.wait_replicated()
    lab.mirror.wait_checkpoints([scene.group("done")])
    commands = CommandLine.of(lab, tmp_path_factory.mktemp("proof"), warm=True)
    commands.plan("c.plan", "--group", f".*{scene.suffix}").expect(0)
    commands.execute("c.plan").expect(0)
    truth, before = scene.truth(), portrait(lab.source_bootstrap, lab.options)
    told = commands.verify("c.plan", "--records", "--format", "json").expect(0)
    assert portrait(lab.source_bootstrap, lab.options) == before, "something was left on the source"
    rows = by_place(commands.document("c.plan")["rows"])
    return Proved(scene, commands, truth, rows, told, by_place(json.loads(told.stdout)["records"]))


def next_of(log: Log, offset: int) -> Found | None:
    return next((r for r in log.records if r.offset >= offset), None)


def test_every_row_shows_the_records_that_stand_there_equal_exactly_where_it_is_the_same_record(proved: Proved) -> None:
    """Told from the records' own identities, which nothing in the product knows of."""
    assert proved.records.keys() == proved.rows.keys() == proved.scene.places.keys()
    for place, shown in proved.records.items():
        truth, row, verdict = proved.truth[place[1:]], proved.rows[place], shown["verdict"]
        told = f"{proved.scene}: {shown}"
        theirs, ours = next_of(truth.source, row["source_committed"]), next_of(truth.target, row["target_offset"])
        for expected, side in ((theirs, "source"), (ours, "target")):
            seen = shown[side]["record"]
            assert (expected and expected.offset) == (seen and seen["offset"]), told
        if theirs is None and ours is None:
            assert verdict == "at-end"
        elif theirs and ours:
            prints = {shown[side]["record"]["fingerprint"] for side in ("source", "target")}
            assert (len(prints) == 1) == (theirs.identity == ours.identity) == (verdict == "equal"), told
        if row["grade"] == "exact":
            assert verdict == ("equal" if theirs else "at-end"), told
        if verdict == "earlier" and shown["found_at"] is not None:
            between = [r for r in truth.target.records if row["target_offset"] <= r.offset < shown["found_at"]]
            stands = next_of(truth.target, shown["found_at"])
            assert theirs and stands and theirs.identity == stands.identity
            assert len(between) == shown["records_before"]
    assert {"equal", "at-end"} <= {shown["verdict"] for shown in proved.records.values()}


def test_the_table_tells_every_row_a_selection_only_its_own_and_no_payload_is_shown(proved: Proved) -> None:
    table = proved.commands.verify("c.plan", "--records").expect(0).stdout
    assert all(group in table for group in proved.scene.commits)
    names = {record.identity for truth in proved.truth.values() for record in truth.written}
    for text in (proved.told.stdout, proved.told.stderr, table):
        assert not any(name in text for name in names)
        assert "vvvvv" not in text and "ttttt" not in text
    done = proved.scene.group("done")
    assert {r["group"] for r in proved.prove(0, "--group", done)["records"]} == {done}
    few = proved.prove(0, "--limit", "3")
    assert len(few["records"]) == 3 and few["record_rows_left_out"] == len(proved.rows) - 3


def test_the_wrong_source_is_refused(proved: Proved) -> None:
    lab = proved.scene.lab
    both = ("--target-config", str(lab.target_properties), "--source-config", str(lab.target_properties))
    names = ("--source", lab.options.source_alias, "--target", lab.options.target_alias)
    wrong = proved.commands.against(*both, *names)
    assert "source cluster" in wrong.verify("c.plan", "--records").expect(3).complaint()


@pytest.mark.parametrize("by", [-40, 40])
def test_the_record_at_the_committed_offset_is_compared_and_the_planned_one_is_shown_beside_it(
    proved: Proved, by: int
) -> None:
    """It moves a group on the target, as MM2's group sync does, and back."""
    scene, target = proved.scene, proved.scene.lab.target_bootstrap
    place = next(
        p
        for p, row in proved.rows.items()
        if p[1] == scene.topic("plain") and row["grade"] == "exact" and p in proved.records
        and row["target_log_start"] <= row["target_offset"] + by < row["target_log_end"]
        and row["target_offset"] < row["target_log_end"]
    )  # fmt: skip
    planned = proved.rows[place]["target_offset"]
    copy = (scene.copy(place[1]), place[2])
    commit(target, {place[0]: {copy: planned + by}})
    try:
        shown = by_place(proved.prove(1)["records"])
        # The user's word makes it a consumer's, where it is ahead.
        ran = by_place(proved.prove(0 if by > 0 else 1, "--consumers-ran")["records"])
    finally:
        commit(target, {place[0]: {copy: planned}})
    assert {p: r for p, r in shown.items() if p != place} == {p: r for p, r in proved.records.items() if p != place}
    moved, before, log = shown[place], proved.records[place], proved.truth[place[1:]].target
    assert moved["verdict"] == ("beyond" if by > 0 else "different"), f"{scene}: {moved}"
    at = next_of(log, planned + by)
    assert at and moved["target"]["looked_from"] == planned + by and moved["target"]["record"]["offset"] == at.offset
    assert moved["planned"] == ran[place]["planned"] == before["target"]
    assert by < 0 or ran[place]["verdict"] == "moved-on", "what it began with is compared, and still agrees"


def test_what_retention_takes_after_the_plan_is_said_to_be_removed(proved: Proved) -> None:
    """Last of this module: it cuts a log of the source."""
    topic = proved.scene.topic("plain")
    cut = proved.truth[topic, 0].source.end - 1
    delete_before(proved.scene.lab.source_bootstrap, topic, 0, cut)
    shown = [r for r in proved.prove(0)["records"] if (r["source_topic"], r["partition"]) == (topic, 0)]
    behind = [r for r in shown if r["source"]["looked_from"] < cut]
    assert behind and all(r["verdict"] == "removed" for r in behind), f"{proved.scene}: {behind}"
