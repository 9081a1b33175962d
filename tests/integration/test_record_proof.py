"""`verify --records` on real clusters: what it shows is what stands there, and it shows nothing else."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.integration.cli import CommandLine, Place, Ran
from tests.integration.clusters import AnyLab, Partition, commit, delete_before, portrait
from tests.integration.oracle import Found, Log, Truth
from tests.integration.scene import Scene
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
    document: dict[str, Any]
    source_before: dict[str, Any]
    source_after: dict[str, Any]

    @property
    def records(self) -> dict[Place, dict[str, Any]]:
        return by_place(self.document)


def by_place(document: dict[str, Any]) -> dict[Place, dict[str, Any]]:
    return {(r["group"], r["source_topic"], r["partition"]): r for r in document["records"]}


@pytest.fixture(scope="module")
def proved(lab: AnyLab, tmp_path_factory: pytest.TempPathFactory) -> Proved:
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
    truth = scene.truth()
    before = portrait(lab.source_bootstrap, lab.options)
    told = commands.verify("c.plan", "--records", "--format", "json")
    after = portrait(lab.source_bootstrap, lab.options)
    planned = commands.document("c.plan")["rows"]
    rows = {(r["group"], r["source_topic"], r["partition"]): r for r in planned}
    return Proved(scene, commands, truth, rows, told, json.loads(told.stdout), before, after)


def next_of(log: Log, offset: int) -> Found | None:
    return next((r for r in log.records if r.offset >= offset), None)


def test_every_row_is_shown_with_the_records_that_stand_there(proved: Proved) -> None:
    proved.told.expect(0)
    assert proved.records.keys() == proved.rows.keys() == proved.scene.places.keys()
    for place, shown in proved.records.items():
        truth, row = proved.truth[place[1:]], proved.rows[place]
        for side, log, offset in (
            ("source", truth.source, row["source_committed"]),
            ("target", truth.target, row["target_offset"]),
        ):
            expected, seen = next_of(log, offset), shown[side]["record"]
            assert (expected and expected.offset) == (seen and seen["offset"]), f"{proved.scene}: {side} {shown}"


def test_fingerprints_are_equal_exactly_where_it_is_the_same_record(proved: Proved) -> None:
    """Told from the records' own identities, which nothing in the product knows of."""
    verdicts = set()
    for place, shown in proved.records.items():
        truth, row = proved.truth[place[1:]], proved.rows[place]
        theirs = next_of(truth.source, row["source_committed"])
        ours = next_of(truth.target, row["target_offset"])
        verdicts.add(shown["verdict"])
        if theirs is None and ours is None:
            assert shown["verdict"] == "at-end"
        elif theirs and ours:
            prints = {shown[side]["record"]["fingerprint"] for side in ("source", "target")}
            assert (len(prints) == 1) == (theirs.identity == ours.identity), f"{proved.scene}: {shown}"
            assert (shown["verdict"] == "equal") == (len(prints) == 1)
        if row["grade"] == "exact":
            assert shown["verdict"] == ("equal" if theirs else "at-end"), f"{proved.scene}: {shown}"
    assert {"equal", "at-end"} <= verdicts


def test_a_row_that_starts_earlier_says_where_the_record_stands(proved: Proved) -> None:
    for place, shown in proved.records.items():
        if shown["verdict"] != "earlier" or shown["found_at"] is None:
            continue
        truth, row = proved.truth[place[1:]], proved.rows[place]
        theirs = next_of(truth.source, row["source_committed"])
        between = [r for r in truth.target.records if row["target_offset"] <= r.offset < shown["found_at"]]
        stands = next_of(truth.target, shown["found_at"])
        assert theirs and stands and theirs.identity == stands.identity
        assert len(between) == shown["records_before"]


def test_no_payload_is_shown_nor_anything_left_on_the_source(proved: Proved) -> None:
    names = {record.identity for truth in proved.truth.values() for record in truth.written}
    table = proved.commands.verify("c.plan", "--records").expect(0).stdout
    for text in (proved.told.stdout, proved.told.stderr, table):
        assert not any(name in text for name in names)
        assert "vvvvv" not in text and "ttttt" not in text
    assert proved.source_before == proved.source_after


def test_the_table_tells_every_row_and_a_selection_only_its_own(proved: Proved) -> None:
    table = proved.commands.verify("c.plan", "--records").expect(0).stdout
    assert all(group in table for group in proved.scene.commits)
    done = proved.scene.group("done")
    chosen = proved.commands.verify("c.plan", "--records", "--format", "json", "--group", done).expect(0)
    assert {r["group"] for r in json.loads(chosen.stdout)["records"]} == {done}
    few = proved.commands.verify("c.plan", "--records", "--format", "json", "--limit", "3").expect(0)
    document = json.loads(few.stdout)
    assert len(document["records"]) == 3
    assert document["record_rows_left_out"] == len(proved.rows) - 3


def test_the_wrong_source_is_refused_and_a_missing_one_no_pass(proved: Proved) -> None:
    lab = proved.scene.lab
    options = lab.options
    both = ("--target-config", str(lab.target_properties), "--source", options.source_alias)
    wrong = proved.commands.against(
        *both, "--source-config", str(lab.target_properties), "--target", options.target_alias
    )
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
        told = proved.commands.verify("c.plan", "--records", "--format", "json").expect(1)
        ran = proved.commands.verify("c.plan", "--records", "--format", "json", "--consumers-ran")
    finally:
        commit(target, {place[0]: {copy: planned}})
    shown = by_place(json.loads(told.stdout))
    assert {p: r for p, r in shown.items() if p != place} == {p: r for p, r in proved.records.items() if p != place}
    moved, before, log = shown[place], proved.records[place], proved.truth[place[1:]].target
    assert moved["verdict"] == ("beyond" if by > 0 else "different"), f"{scene}: {moved}"
    at = next_of(log, planned + by)
    assert at and moved["target"]["looked_from"] == planned + by and moved["target"]["record"]["offset"] == at.offset
    assert moved["planned"] == before["target"]
    if by > 0:
        # The user's word makes it a consumer's: what it began with is compared, and still agrees.
        shown = by_place(json.loads(ran.expect(0).stdout))
        assert shown[place]["verdict"] == "moved-on" and shown[place]["planned"] == before["target"]
    else:
        ran.expect(1)


def test_what_retention_takes_after_the_plan_is_said_to_be_removed(proved: Proved) -> None:
    """Last of this module: it cuts a log of the source."""
    topic = proved.scene.topic("plain")
    cut = proved.truth[topic, 0].source.end - 1
    delete_before(proved.scene.lab.source_bootstrap, topic, 0, cut)
    told = proved.commands.verify("c.plan", "--records", "--format", "json").expect(0)
    shown = [r for r in by_place(json.loads(told.stdout)).values() if (r["source_topic"], r["partition"]) == (topic, 0)]
    behind = [r for r in shown if r["source"]["looked_from"] < cut]
    assert behind and all(r["verdict"] == "removed" for r in behind), f"{proved.scene}: {behind}"
