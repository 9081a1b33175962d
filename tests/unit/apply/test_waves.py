"""`show` over several plans: every group counted once, by what the journals say was written."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrate.apply.engine import apply_plan
from migrate.apply.history import ROLLBACK
from migrate.apply.journal import Journal
from migrate.apply.run import ApplyClusters, ApplyOptions
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

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def plan(self, name: str, *rows, **header) -> tuple[Path, Plan]:
        made = plan(*rows, **header)
        path = self.folder / name
        write_plan(made, path)
        return path, made

    def apply(self, path: Path, made: Plan, target: FakeCluster, source: FakeCluster | None = None, **more) -> None:
        apply_plan(made, ApplyClusters(target, source), self.journal(path, made), FakeClock(), NoProgress(),
                   ApplyOptions(execute=True, allow_partial=True, group_timeout_seconds=1, **more))  # fmt: skip

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
                       ApplyOptions(execute=True, command=ROLLBACK))  # fmt: skip
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


def test_one_plan_twice_and_options_for_one_plan_are_wrong_use(waves):
    one, made = waves.plan("wave1.plan", row("a"))
    copy = waves.folder / "copy.plan"
    write_plan(made, copy)
    two, _ = waves.plan("wave2.plan", row("b"))
    assert show(one, copy).exit_code == 2 and show(one, one).exit_code == 2
    for words in (["--group", "a"], ["--only", "set"], ["--diff", two], ["--format", "kcg"]):
        assert show(one, two, *words).exit_code == 2, words
