"""`show` over several plans: every group counted once, by what the journals say was written."""

import json
from typing import Any

import pytest
from click.testing import Result

from migrate.model import Decision
from migrate.plan.file import write_plan
from tests.fakes import Script
from tests.unit.answers import UNSURE
from tests.unit.applyscene import Scene
from tests.unit.commands import run
from tests.unit.plans import plan, row


@pytest.fixture
def wave(tmp_path):
    """Make a plan of some rows and its clusters, and write it beside the others."""

    def made(name: str, *rows, **header) -> Scene:
        scene = Scene(plan(*rows, **header), tmp_path, name=f"{name}.plan")
        write_plan(scene.plan, scene.path)
        return scene

    return made


def applied(scene: Scene, unsure: str = "", **options) -> Scene:
    """Apply a plan; `unsure` is a group whose answer nobody gets."""
    scene.target.script("alter", unsure, *[Script(UNSURE)] * 50)
    scene.apply(allow_partial=True, group_timeout_seconds=1, **options)
    return scene


def show(*words: object) -> Result:
    return run("show", *(str(word.path if isinstance(word, Scene) else word) for word in words))


def told(*waves: Scene) -> dict[str, Any]:
    shown = show(*waves, "--format", "json")
    assert shown.exit_code == 0, shown.stderr
    return json.loads(shown.stdout)


def standings(*waves: Scene) -> dict[str, str]:
    (flow,) = told(*waves)["flows"]
    return flow["groups"]


KEPT = row("kept", decision=Decision.KEEP, reason="already-there", target_prior=60)


def test_what_was_applied_has_moved_what_was_not_is_left_and_the_sum_of_the_table_is_that_of_json(wave):
    one = applied(wave("wave1", row("a"), row("a2", partition=1), row("b", decision=Decision.BLOCK), KEPT))
    two = wave("wave2", row("d"))
    assert standings(one, two) == {"a": "moved", "a2": "moved", "b": "left", "kept": "as-it-is", "d": "left"}
    document = told(one, two)
    assert document["flows"][0]["counts"] == {"moved": 2, "uncertain": 0, "undone": 0, "left": 2, "as-it-is": 1}
    lines = show(one, two).stdout.splitlines()
    assert lines[0] == "A -> B: 5 groups: 2 moved, 2 left, 1 as-it-is"
    (line,) = [text for text in lines if text.startswith(str(one.path))]
    assert line.split()[-7:] == ["4", "2", "0", "0", "1", "1", "2"]
    assert document["waves"][0]["offsets_written"] == 2 and document["waves"][0]["counts"]["moved"] == 2


def test_a_group_in_two_waves_counts_once_by_the_furthest_it_came_and_flows_are_added_up_apart(wave):
    one, two = wave("wave1", row("a", decision=Decision.BLOCK), row("b")), applied(wave("wave2", row("a")))
    assert standings(one, two) == standings(two, one) == {"a": "moved", "b": "left"}
    assert len(told(one, wave("elsewhere", row("a"), target_cluster_id="third"))["flows"]) == 2


@pytest.mark.parametrize("way", ["rollback", "undo plan"])
def test_what_was_rolled_back_is_undone_whether_by_rollback_or_by_an_undo_plan(tmp_path, wave, way):
    one, other = applied(wave("one", row("a"))), wave("other", row("z"))
    waves = [one, other]
    if way == "rollback":
        one.rollback()
    else:
        undo = Scene(one.undo(), tmp_path, name="undo.plan")
        write_plan(undo.plan, undo.path)
        waves.append(applied(undo, spends=one.journal))
    assert standings(one, other) == standings(*waves) == {"a": "undone", "z": "left"}


BACK = {
    "source_alias": "B", "target_alias": "A", "source_cluster_id": "target-id", "target_cluster_id": "source-id",
    "failback": True,
}  # fmt: skip


def places(*waves: Scene) -> dict[str, list[str]]:
    (located,) = told(*waves)["locations"]
    return {**located["on"], "?": located["not_certain"]}


def test_after_a_failback_the_sum_ends_with_where_each_group_is(wave):
    rows = row("a"), row("b", partition=1), row("r", partition=2, target_group="r-eu")
    one, two = applied(wave("wave1", *rows, created_at_ms=1)), wave("wave2", row("left"), created_at_ms=2)
    rows = row("a"), row("r-eu", partition=2, target_group="r"), row("never-moved")
    back = wave("back", *rows, created_at_ms=3, **BACK)
    assert places(one, two, back) == {"A": ["left"], "B": ["a", "b", "never-moved", "r-eu"], "?": []}
    applied(back, unsure="never-moved")
    for waves in ((one, two, back), (back, one, two)):
        assert places(*waves) == {"A": ["a", "left", "r"], "B": ["b"], "?": ["never-moved"]}
    *_, on_a, on_b, unknown = show(one, two, back).stdout.splitlines()
    assert on_a == "on A: 3 groups: a, left, r" and on_b == "on B: 1 group: b"
    assert unknown == "on A or B, which these journals do not say: 1 group: never-moved"


def test_one_plan_twice_and_options_for_one_plan_are_wrong_use(wave):
    one, two, copy = (wave(name, row(group)) for name, group in (("wave1", "a"), ("wave2", "b"), ("copy", "a")))
    assert show(one, copy).exit_code == 2 and show(one, one).exit_code == 2
    for words in (["--group", "a"], ["--only", "set"], ["--diff", two], ["--format", "kcg"]):
        assert show(one, two, *words).exit_code == 2, words
