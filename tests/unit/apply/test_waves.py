"""`show` over several plans: every group counted once, by what the journals say was written."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import apply_plan
from migrate.apply.history import ROLLBACK
from migrate.apply.journal import Journal
from migrate.apply.undo import undo_plan
from migrate.cli.main import cli
from migrate.model import Decision, Failure
from migrate.plan.companions import journal_path
from migrate.plan.file import write_plan
from migrate.plan.plan import Plan
from tests.fakes import FakeClock, FakeCluster, NoProgress, Script
from tests.unit.plans import clusters, plan, row


class Waves:
    """Plans in one folder, applied to a cluster in memory."""

    def __init__(self, folder: Path):
        self.folder = folder

    def plan(self, name: str, *rows, **header) -> tuple[Path, Plan]:
        made = plan(*rows, **header)
        path = self.folder / name
        write_plan(made, path)
        return path, made

    def apply(self, path: Path, made: Plan, target: FakeCluster, source: FakeCluster | None = None, **more):
        apply_plan(made, ApplyClusters(target, source), self.journal(path, made), FakeClock(), NoProgress(),
                   RunOptions(execute=True, allow_partial=True, group_timeout_seconds=1, **more))  # fmt: skip

    def journal(self, path: Path, made: Plan) -> Journal:
        return Journal(journal_path(path, made.fingerprint), made.fingerprint, FakeClock().now_ms)


@pytest.fixture
def waves(tmp_path: Path) -> Waves:
    return Waves(tmp_path)


def show(*words: object) -> Result:
    return CliRunner().invoke(cli, ["show", *map(str, words)])


def told(*paths: Path):
    shown = show(*paths, "--format", "json")
    assert shown.exit_code == 0, shown.stderr
    return json.loads(shown.stdout)


def standings(*paths: Path) -> dict[str, str]:
    (flow,) = told(*paths)["flows"]
    return flow["groups"]


def test_what_was_applied_has_moved_and_what_was_blocked_or_not_applied_is_left(waves):
    one, first = waves.plan("wave1.plan", row("a"), row("b", decision=Decision.BLOCK), row("c", decision=Decision.KEEP,
                            reason="already-there", target_prior=60))  # fmt: skip
    two, _ = waves.plan("wave2.plan", row("d"))
    waves.apply(one, first, *clusters(first))
    assert standings(one, two) == {"a": "moved", "b": "left", "c": "as-it-is", "d": "left"}
    counts = told(one, two)["flows"][0]["counts"]
    assert counts == {"moved": 1, "uncertain": 0, "undone": 0, "left": 2, "as-it-is": 1}


def test_a_group_in_two_waves_counts_once_by_the_furthest_it_came(waves):
    one, _ = waves.plan("wave1.plan", row("a", decision=Decision.BLOCK), row("b"))
    two, second = waves.plan("wave2.plan", row("a"))
    waves.apply(two, second, *clusters(second))
    assert standings(one, two) == standings(two, one) == {"a": "moved", "b": "left"}


def test_what_was_rolled_back_is_undone_whether_by_rollback_or_by_an_undo_plan(waves):
    for way in ("rollback", "undo-plan"):
        path, made = waves.plan(f"{way}.plan", row("a", offset=61 if way == "rollback" else 62))
        target, source = clusters(made)
        waves.apply(path, made, target, source)
        undo = undo_plan(made, waves.journal(path, made).read(), 0, "0.1.0")
        if way == "rollback":
            apply_plan(undo, ApplyClusters(target), waves.journal(path, made), FakeClock(), NoProgress(),
                       RunOptions(execute=True, command=ROLLBACK))  # fmt: skip
            second = path
        else:
            second = waves.folder / "undo.plan"
            write_plan(undo, second)
            waves.apply(second, undo, target, spends=waves.journal(path, made))
        other, _ = waves.plan(f"other-{way}.plan", row("z"))
        assert standings(path, other) == {"a": "undone", "z": "left"}
        assert standings(*{path, second}, other) == {"a": "undone", "z": "left"}


def test_a_group_that_may_have_been_written_is_uncertain_and_never_moved(waves):
    path, made = waves.plan("wave1.plan", row("a"), row("b"))
    target, source = clusters(made)
    unsure = Failure("UNKNOWN_SERVER_ERROR", "?", outcome_unknown=True)
    target.script("alter", "a", *[Script(unsure)] * 50)
    waves.apply(path, made, target, source)
    other, _ = waves.plan("wave2.plan", row("z"))
    assert standings(path, other)["a"] == "uncertain"
    shown = show(path, other).stdout
    assert "uncertain: a" in shown and "verify" in shown


def test_the_sum_of_the_table_is_that_of_json(waves):
    one, first = waves.plan("wave1.plan", row("a"), row("b", partition=1))
    two, _ = waves.plan("wave2.plan", row("c"))
    waves.apply(one, first, *clusters(first))
    shown = show(one, two)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0] == "A -> B: 3 groups: 2 moved, 1 left"
    (line,) = [text for text in shown.stdout.splitlines() if text.startswith(str(one))]
    wave = told(one, two)["waves"][0]
    assert line.split()[-7:] == ["2", "2", "0", "0", "0", "0", "2"]
    assert wave["offsets_written"] == 2 and wave["counts"]["moved"] == 2


def test_flows_are_added_up_apart(waves):
    one, _ = waves.plan("there.plan", row("a"))
    two, _ = waves.plan("elsewhere.plan", row("a"), target_cluster_id="third")
    assert len(told(one, two)["flows"]) == 2


THERE_AND_BACK = {
    "source_alias": "B",
    "target_alias": "A",
    "source_cluster_id": "target-id",
    "target_cluster_id": "source-id",
    "failback": True,
}


def places(*paths: Path) -> dict[str, list[str]]:
    (located,) = told(*paths)["locations"]
    return {**located["on"], "?": located["not_certain"]}


def test_after_a_failback_the_sum_ends_with_where_each_group_is(waves):
    one, first = waves.plan("wave1.plan", row("a"), row("b", partition=1), row("r", partition=2, target_group="r-eu"),
                            created_at_ms=1)  # fmt: skip
    two, _ = waves.plan("wave2.plan", row("left"), created_at_ms=2)
    waves.apply(one, first, *clusters(first))
    back, plan_back = waves.plan("back.plan", row("a"), row("r-eu", partition=2, target_group="r"), row("never-moved"),
                                 created_at_ms=3, **THERE_AND_BACK)  # fmt: skip
    assert places(one, two, back) == {"A": ["left"], "B": ["a", "b", "never-moved", "r-eu"], "?": []}
    target, source = clusters(plan_back)
    unsure = Failure("UNKNOWN_SERVER_ERROR", "?", outcome_unknown=True)
    target.cluster_id, source.cluster_id = "source-id", "target-id"
    target.script("alter", "never-moved", *[Script(unsure)] * 50)
    waves.apply(back, plan_back, target, source)
    # In whatever order they are named.
    for paths in ((one, two, back), (back, one, two)):
        assert places(*paths) == {"A": ["a", "left", "r"], "B": ["b"], "?": ["never-moved"]}
    *_, on_a, on_b, unknown = show(one, two, back).stdout.splitlines()
    assert on_a == "on A: 3 groups: a, left, r" and on_b == "on B: 1 group: b"
    assert unknown == "on A or B, which these journals do not say: 1 group: never-moved"


def test_a_group_that_went_there_back_and_there_again_is_where_the_last_wave_moved_it(waves):
    paths = []
    for number, way in enumerate(({}, THERE_AND_BACK, {})):
        path, made = waves.plan(f"{number}.plan", row("a", offset=60 + number), created_at_ms=number + 1, **way)
        target, source = clusters(made)
        target.cluster_id, source.cluster_id = made.header.target_cluster_id, made.header.source_cluster_id
        waves.apply(path, made, target, source)
        paths.append(path)
        if number:
            assert places(*paths) == {"A": ["a"] * (number == 1), "B": ["a"] * (number == 2), "?": []}
    last = waves.journal(path, made)
    apply_plan(undo_plan(made, last.read(), 0, "0.1.0"), ApplyClusters(target), last, FakeClock(), NoProgress(),
               RunOptions(execute=True, command=ROLLBACK))  # fmt: skip
    assert places(*paths)["A"] == ["a"], "what was rolled back did not go"


def test_a_failback_whose_plan_calls_the_clusters_otherwise_brings_groups_back_to_the_same_clusters(waves):
    one, first = waves.plan("wave1.plan", row("a"), created_at_ms=1)
    waves.apply(one, first, *clusters(first))
    renamed = THERE_AND_BACK | {"source_alias": "backup", "target_alias": "primary"}
    back, plan_back = waves.plan("back.plan", row("a"), created_at_ms=2, **renamed)
    target, source = clusters(plan_back)
    target.cluster_id, source.cluster_id = "source-id", "target-id"
    waves.apply(back, plan_back, target, source)
    assert places(one, back) == {"A": ["a"], "B": [], "?": []}


def test_where_a_group_is_that_a_plan_had_nothing_to_write_for_is_not_certain(waves):
    kept = row("kept", decision=Decision.KEEP, reason="already-there", target_prior=60)
    one, _ = waves.plan("wave1.plan", kept, created_at_ms=1)
    back, _ = waves.plan("back.plan", row("a"), created_at_ms=2, **THERE_AND_BACK)
    assert places(one, back) == {"A": [], "B": ["a"], "?": ["kept"]}


def test_waves_that_all_go_one_way_do_not_tell_where_groups_are(waves):
    one, _ = waves.plan("wave1.plan", row("a"))
    two, _ = waves.plan("wave2.plan", row("b"))
    assert told(one, two)["locations"] == [] and "on A" not in show(one, two).stdout


def test_one_plan_twice_and_options_for_one_plan_are_wrong_use(waves):
    one, made = waves.plan("wave1.plan", row("a"))
    copy = waves.folder / "copy.plan"
    write_plan(made, copy)
    two, _ = waves.plan("wave2.plan", row("b"))
    assert show(one, copy).exit_code == 2 and show(one, one).exit_code == 2
    for words in (["--group", "a"], ["--only", "set"], ["--diff", two], ["--format", "kcg"]):
        assert show(one, two, *words).exit_code == 2, words
