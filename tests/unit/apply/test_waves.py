"""`show` over several plans: every group counted once, by what the journals say was written."""

import json
from pathlib import Path

import pytest
from click.testing import Result

from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import apply_plan
from migrate.apply.history import ROLLBACK
from migrate.apply.journal import Journal
from migrate.apply.undo import undo_plan
from migrate.model import Decision
from migrate.plan.companions import journal_path
from migrate.plan.file import write_plan
from migrate.plan.plan import Plan
from tests.fakes import FakeClock, FakeCluster, NoProgress, Script
from tests.unit.answers import UNSURE
from tests.unit.commands import run
from tests.unit.plans import clusters, plan, row


class Waves:
    """Plans in one folder, applied to a cluster in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[Path, Plan] = {}

    def plan(self, name: str, *rows, **header) -> Path:
        path = self.folder / f"{name}.plan"
        self.made[path] = plan(*rows, **header)
        write_plan(self.made[path], path)
        return path

    def apply(self, path: Path, unsure: str = "") -> FakeCluster:
        """Apply a plan; `unsure` is a group whose answer nobody gets. Return the target."""
        header = self.made[path].header
        target, source = clusters(self.made[path])
        target.cluster_id, source.cluster_id = header.target_cluster_id, header.source_cluster_id
        target.script("alter", unsure, *[Script(UNSURE)] * 50)
        self.run(path, self.made[path], ApplyClusters(target, source))
        return target

    def run(self, path: Path, made: Plan, on: ApplyClusters, **options) -> None:
        options = RunOptions(execute=True, allow_partial=True, group_timeout_seconds=1, **options)
        apply_plan(made, on, self.journal(path, made), FakeClock(), NoProgress(), options)

    def undo(self, path: Path) -> Plan:
        return undo_plan(self.made[path], self.journal(path, self.made[path]).read(), 0, "0.1.0")

    def roll_back(self, path: Path, target: FakeCluster) -> None:
        log = self.journal(path, self.made[path])
        options = RunOptions(execute=True, command=ROLLBACK)
        apply_plan(self.undo(path), ApplyClusters(target), log, FakeClock(), NoProgress(), options)

    def journal(self, path: Path, made: Plan) -> Journal:
        return Journal(journal_path(path, made.fingerprint), made.fingerprint, FakeClock().now_ms)


@pytest.fixture
def waves(tmp_path):
    return Waves(tmp_path)


def show(*words: object) -> Result:
    return run("show", *map(str, words))


def told(*paths: Path):
    shown = show(*paths, "--format", "json")
    assert shown.exit_code == 0, shown.stderr
    return json.loads(shown.stdout)


def standings(*paths: Path) -> dict[str, str]:
    (flow,) = told(*paths)["flows"]
    return flow["groups"]


KEPT = row("kept", decision=Decision.KEEP, reason="already-there", target_prior=60)


def test_what_was_applied_has_moved_and_what_was_blocked_or_not_applied_is_left(waves):
    one = waves.plan("wave1", row("a"), row("b", decision=Decision.BLOCK), KEPT)
    two = waves.plan("wave2", row("d"))
    waves.apply(one)
    assert standings(one, two) == {"a": "moved", "b": "left", "kept": "as-it-is", "d": "left"}
    counts = told(one, two)["flows"][0]["counts"]
    assert counts == {"moved": 1, "uncertain": 0, "undone": 0, "left": 2, "as-it-is": 1}


def test_a_group_in_two_waves_counts_once_by_the_furthest_it_came_and_flows_are_added_up_apart(waves):
    one = waves.plan("wave1", row("a", decision=Decision.BLOCK), row("b"))
    two = waves.plan("wave2", row("a"))
    waves.apply(two)
    assert standings(one, two) == standings(two, one) == {"a": "moved", "b": "left"}
    elsewhere = waves.plan("elsewhere", row("a"), target_cluster_id="third")
    assert len(told(one, elsewhere)["flows"]) == 2


@pytest.mark.parametrize("way", ["rollback", "undo plan"])
def test_what_was_rolled_back_is_undone_whether_by_rollback_or_by_an_undo_plan(waves, way):
    path, other = waves.plan("one", row("a")), waves.plan("other", row("z"))
    target, second = waves.apply(path), path
    if way == "rollback":
        waves.roll_back(path, target)
    else:
        second, undo = waves.folder / "undo.plan", waves.undo(path)
        write_plan(undo, second)
        waves.run(second, undo, ApplyClusters(target), spends=waves.journal(path, waves.made[path]))
    assert standings(path, other) == {"a": "undone", "z": "left"}
    assert standings(*{path, second}, other) == {"a": "undone", "z": "left"}


def test_a_group_that_may_have_been_written_is_uncertain_and_never_moved(waves):
    path, other = waves.plan("wave1", row("a"), row("b")), waves.plan("wave2", row("z"))
    waves.apply(path, unsure="a")
    assert standings(path, other)["a"] == "uncertain"
    shown = show(path, other).stdout
    assert "uncertain: a" in shown and "verify" in shown


def test_the_sum_of_the_table_is_that_of_json(waves):
    one, two = waves.plan("wave1", row("a"), row("b", partition=1)), waves.plan("wave2", row("c"))
    waves.apply(one)
    shown = show(one, two)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0] == "A -> B: 3 groups: 2 moved, 1 left"
    (line,) = [text for text in shown.stdout.splitlines() if text.startswith(str(one))]
    wave = told(one, two)["waves"][0]
    assert line.split()[-7:] == ["2", "2", "0", "0", "0", "0", "2"]
    assert wave["offsets_written"] == 2 and wave["counts"]["moved"] == 2


BACK = {
    "source_alias": "B", "target_alias": "A", "source_cluster_id": "target-id", "target_cluster_id": "source-id",
    "failback": True,
}  # fmt: skip


def places(*paths: Path) -> dict[str, list[str]]:
    (located,) = told(*paths)["locations"]
    return {**located["on"], "?": located["not_certain"]}


def test_after_a_failback_the_sum_ends_with_where_each_group_is(waves):
    rows = row("a"), row("b", partition=1), row("r", partition=2, target_group="r-eu")
    one, two = waves.plan("wave1", *rows, created_at_ms=1), waves.plan("wave2", row("left"), created_at_ms=2)
    waves.apply(one)
    rows = row("a"), row("r-eu", partition=2, target_group="r"), row("never-moved")
    back = waves.plan("back", *rows, created_at_ms=3, **BACK)
    assert places(one, two, back) == {"A": ["left"], "B": ["a", "b", "never-moved", "r-eu"], "?": []}
    waves.apply(back, unsure="never-moved")
    # In whatever order they are named.
    for paths in ((one, two, back), (back, one, two)):
        assert places(*paths) == {"A": ["a", "left", "r"], "B": ["b"], "?": ["never-moved"]}
    *_, on_a, on_b, unknown = show(one, two, back).stdout.splitlines()
    assert on_a == "on A: 3 groups: a, left, r" and on_b == "on B: 1 group: b"
    assert unknown == "on A or B, which these journals do not say: 1 group: never-moved"


def test_a_group_that_went_there_back_and_there_again_is_where_the_last_wave_moved_it(waves):
    paths = []
    for number, way in enumerate(({}, BACK, {})):
        paths.append(waves.plan(f"{number}", row("a", offset=60 + number), created_at_ms=number + 1, **way))
        target = waves.apply(paths[-1])
        if number:
            assert places(*paths) == {"A": ["a"] * (number == 1), "B": ["a"] * (number == 2), "?": []}
    waves.roll_back(paths[-1], target)
    assert places(*paths)["A"] == ["a"], "what was rolled back did not go"


def test_a_failback_whose_plan_calls_the_clusters_otherwise_brings_groups_back_to_the_same_clusters(waves):
    one = waves.plan("wave1", row("a"), created_at_ms=1)
    renamed = BACK | {"source_alias": "backup", "target_alias": "primary"}
    back = waves.plan("back", row("a"), created_at_ms=2, **renamed)
    waves.apply(one)
    waves.apply(back)
    assert places(one, back) == {"A": ["a"], "B": [], "?": []}


def test_where_a_group_is_that_a_plan_had_nothing_to_write_for_is_not_certain_and_one_way_tells_nothing(waves):
    one, back = waves.plan("wave1", KEPT, created_at_ms=1), waves.plan("back", row("a"), created_at_ms=2, **BACK)
    assert places(one, back) == {"A": [], "B": ["a"], "?": ["kept"]}
    two = waves.plan("wave2", row("b"))
    assert told(one, two)["locations"] == [] and "on A" not in show(one, two).stdout


def test_one_plan_twice_and_options_for_one_plan_are_wrong_use(waves):
    one, two = waves.plan("wave1", row("a")), waves.plan("wave2", row("b"))
    copy = waves.plan("copy", row("a"))
    assert show(one, copy).exit_code == 2 and show(one, one).exit_code == 2
    for words in (["--group", "a"], ["--only", "set"], ["--diff", two], ["--format", "kcg"]):
        assert show(one, two, *words).exit_code == 2, words
