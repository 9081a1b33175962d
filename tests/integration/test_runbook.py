"""The runbook, typed line by line on two real clusters: what is written there for the night works as it stands."""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.cli import run
from tests.integration.clusters import commit, commits_on, member, read_as_groups
from tests.integration.runbook import PLAIN, RUNBOOK, STEP, Night, set_scene, steps
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.notebooks import Tables, facts, outputs
from tests.notebooks import run as run_notebook


def decide_waves(scene: Scene, folder: Path) -> None:
    waves = {"wave1.txt": PLAIN[:2], "wave2.txt": PLAIN[2:]}
    for name, groups in waves.items():
        (folder / name).write_text("".join(f"{scene.group(g)}\n" for g in groups))


def consume_on_b(lab: Lab, scene: Scene, consumers: ExitStack) -> None:
    """Let the first wave read to the end on B and commit it, with members that stay until they are stopped."""
    target = lab.target_bootstrap
    groups = commits_on(target, [scene.group(name) for name in PLAIN[:2]])
    for group, read in read_as_groups(target, groups).items():
        for place, records in read.items():
            if records:
                groups[group][place] = records[-1].offset + 1
    commit(target, groups)
    copy = scene.copy(scene.topic("orders"))
    for group in groups:
        consumers.enter_context(member(target, group, copy))


@pytest.fixture(scope="module")
def night(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Night:
    """The whole runbook, once."""
    folder = tmp_path_factory.mktemp("night")
    shutil.copy(lab.mm2_properties, folder / "mm2.properties")
    scene = set_scene(lab, "night")
    night = Night(scene, folder)
    with ExitStack() as consumers:
        consumers.enter_context(member(lab.source_bootstrap, scene.group("billing"), scene.topic("orders")))
        happens = {
            "the waves are decided": lambda: decide_waves(scene, folder),
            "the consumers on A stop": consumers.close,
            "the consumers start on B": lambda: consume_on_b(lab, scene, consumers),
            "the consumers on B stop": consumers.close,
        }
        for step in steps():
            if isinstance(step, str):
                happens[step]()
            else:
                night.type(step)
    return night


def test_every_command_of_the_runbook_does_what_it_says_and_in_the_end_all_is_back(lab: Lab, night: Night) -> None:
    blocks = [found["block"] for found in STEP.finditer(RUNBOOK) if found["block"] and not found["extra"]]
    assert len(night.ran) == "".join(blocks).count("mm2-migrate ") > 30
    scene, orders = night.scene, night.scene.topic("orders")
    # The rehearsal names who still runs, and the night tells what is different.
    assert scene.group("billing") in night.of("plan", "--out").stdout.partition("NEEDS ATTENTION")[2]
    shown = night.of("show", "wave1.plan", "--diff").stdout
    assert "NO LONGER THERE" in shown and "source-group-stopped" in shown
    assert "3 groups: 3 moved" in night.of("show", "wave1.plan", "wave2.plan").stdout
    # Nothing is left on B, and billing is on A where it had come to.
    assert commits_on(lab.target_bootstrap, [scene.group(name) for name in PLAIN]) == {}
    on_a = commits_on(lab.source_bootstrap, [scene.group("billing")])
    assert on_a[scene.group("billing")] == {(orders, 0): 500, (orders, 1): 500}


def test_a_dry_run_without_signatures_says_so_and_all_that_were_needed_stand_in_the_journal(night: Night) -> None:
    shown = night.of("apply", "wave1.plan").stdout
    assert shown.startswith("REFUSED: Plan ") and "asks for 2 signatures of different names, and has 0 of 2" in shown
    assert "DRY RUN: 4 offsets of 2 groups would be set" in shown and night.scene.group("crm") in shown
    assert "--execute" not in shown and "mm2-migrate sign wave1.plan" in shown.splitlines()[-1]
    first, second = [ran for ran in night.ran if ran.command.startswith("mm2-migrate sign wave1.plan")]
    assert "1 of 2 (Ada Byron)" in first.stdout
    assert "2 of 2 (Ada Byron, Grace Hopper)" in second.stdout
    (journal,) = night.folder.glob("wave1.plan.*.journal.jsonl")
    begin = json.loads(journal.read_text().splitlines()[0])
    assert [s["name"] for s in begin["signatures"]] == ["Ada Byron", "Grace Hopper"]


@pytest.mark.filterwarnings("ignore")
def test_both_notebooks_run_on_the_files_of_the_night_and_tell_its_numbers(night: Night) -> None:
    shown = run("show", "wave1.plan", "--format", "json", folder=night.folder).expect(0)
    document = json.loads(shown.stdout)
    reviewed = run_notebook("review_plan.ipynb", night.folder, PLAN="wave1.plan", OTHER="rehearsal.plan")
    told = facts(reviewed)
    assert (told["Fingerprint"], told["Verdict"]) == (document["fingerprint"], document["verdict"])
    assert f"= {len(document['rows'])} rows" in told["Commits"] and len(document["rows"]) == 4
    assert told["Signatures"] == "2 of 2 (Ada Byron, Grace Hopper)"
    assert len(outputs(reviewed, "image/png")) == 4
    after = run_notebook("after_cutover.ipynb", night.folder, PLAN="wave1.plan", VERIFICATION="verification.json")
    standings = {r[0]: r[1] for r in Tables(outputs(after, "text/html")[1]).rows[1:]}
    assert standings["undone"] == "2" and standings["moved"] == "0"
