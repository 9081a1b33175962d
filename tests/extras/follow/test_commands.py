"""The commands of `follow` as they are typed; the clusters are in memory."""

import json
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

import migrate.extras.follow.plan as plan_module
import migrate.extras.follow.rollback as rollback_module
import migrate.extras.follow.run as follow_module
import migrate.extras.follow.status as status_module
from migrate.apply.journal import Journal
from migrate.clock import iso
from migrate.extras.follow.mandate import mandate_of
from migrate.extras.follow.passes import read_status, status_path
from migrate.plan.companions import journal_path
from migrate.plan.file import read_plan, write_plan
from tests.builders import make_plan, make_row
from tests.extras.follow.followscene import FollowScene, G, H
from tests.fakes import ALIVE, Crash, FakeApplyEdges
from tests.unit.commands import clusters, plug_in, run
from tests.unit.nights import told
from tests.unit.planscene import planned


def approved(plan):
    return ("--approve", plan.fingerprint, "--execute") if plan else ()


class Night:
    """Commands on the clusters of a scene, with a clock that does not wait."""

    def __init__(self, folder, patch):
        self.scene, self.folder = FollowScene(folder), folder
        self.path, self.words = folder / "follow.plan", clusters(folder)
        scene = self.scene

        def apply_session(*arguments):
            return nullcontext(FakeApplyEdges(scene.target, scene.source))

        sides = [SimpleNamespace(admin=lambda of=of: of) for of in (scene.source, scene.target)]
        patch.setattr(follow_module, "follow_session", lambda *_: nullcontext(scene.edges()))
        patch.setattr(plan_module, "endpoints", lambda flow, deadline: sides)
        for module in (follow_module, plan_module, rollback_module, status_module):
            patch.setattr(module, "SystemClock", lambda: scene.clock)
        patch.setattr(rollback_module, "apply_session", apply_session)
        plug_in(patch, SystemClock=lambda: scene.clock, apply_session=apply_session)

    def plan(self, *options, until=None):
        until = until or iso(self.scene.clock.now_ms() + 3_600_000)
        return run("follow", "plan", *self.words, "--until", until, "--out", str(self.path), *options)

    def mandate(self, *options):
        made = self.plan(*options)
        assert made.exit_code == 0, made.output
        return read_plan(self.path)

    def follow(self, *options, plan=None):
        return run("follow", "run", str(self.path), *self.words, *approved(plan), "--passes", "2", *options)

    def rollback(self, *options, plan=None):
        return run("follow", "rollback", str(self.path), *self.words, *approved(plan), *options)

    def status(self, *options):
        ran = run("follow", "status", str(self.path), *options)
        assert ran.exit_code == 0, ran.output
        return " ".join(ran.stdout.split())

    def status_file(self, plan):
        return read_status(status_path(self.path, plan.fingerprint))

    def on_b(self, *groups):
        return [self.scene.on_b(group) for group in groups]


@pytest.fixture
def night(tmp_path, monkeypatch):
    return Night(tmp_path, monkeypatch)


def test_a_mandate_is_made_shown_and_signed_and_has_no_rows(night):
    made = night.plan("--group", "g", "--max-rereads", "7", "--accept", "group-sync:g")
    plan, said = read_plan(night.path), "MANDATE: keep the offsets of groups of A fresh on B"
    assert made.exit_code == 0 and made.stdout.startswith(said) and night.status().startswith(said)
    assert (plan.header.source_cluster_id, plan.header.target_cluster_id) == ("id-a", "id-b")
    assert mandate_of(plan).group == ("g",) and mandate_of(plan).max_rereads == 7 and not plan.rows
    shown = run("show", str(night.path)).stdout
    assert shown.startswith("RULES for `follow`") and 'group=["g"]; max-rereads=7' not in shown
    assert 'group=["g"]' in shown and f"mm2-migrate follow status {night.path}" in " ".join(shown.split())
    document = json.loads(run("show", str(night.path), "--format", "json").stdout)
    assert document["header"]["settings"]["group"] == '["g"]'
    assert "RULES for `follow`" in run("sign", str(night.path), "--by", "Ada").stdout


@pytest.mark.parametrize("typed", [
    ("apply",), ("rollback",), ("verify",), ("report",), ("explain", "g"), ("show", "--format", "csv"),
    ("show", "--diff", "follow.plan"),
])  # fmt: skip
def test_what_is_for_rows_refuses_a_mandate(night, typed, monkeypatch):
    plan = night.mandate()
    monkeypatch.chdir(night.folder)
    command, *rest = typed
    if command == "rollback":
        night.follow(plan=plan)
    options = night.words if command in ("apply", "verify", "rollback") else []
    ran = run(command, "follow.plan", *rest, *options)
    assert ran.exit_code == 2 and "holds rules for `follow`" in ran.output


def test_a_plan_of_rows_is_not_followed_and_no_mandate_no_rehearsal(night):
    night.mandate()
    assert run("status", *night.words, "--rehearsal", str(night.path)).exit_code == 2
    night.path = night.folder / "rows.plan"
    write_plan(make_plan([make_row()]), night.path)
    for ran in (night.follow(), run("follow", "status", str(night.path))):
        assert ran.exit_code == 2 and "is not a mandate" in ran.output


@pytest.mark.parametrize("options", [
    ("--untranslatable", "earliest"), ("--replicator", "any"), ("--grades", "best"), ("--moving-group", "("),
    ("--group", "("),
])  # fmt: skip
def test_what_a_mandate_cannot_have_is_wrong_use_and_writes_no_file(night, options):
    assert night.plan(*options).exit_code == 2 and not night.path.exists()


def test_a_mandate_needs_an_end_that_is_near_enough_and_two_clusters(night):
    assert run("follow", "plan", *night.words, "--out", str(night.path)).exit_code == 2
    assert night.plan(until=iso(night.scene.clock.now_ms() + 31 * 86_400_000)).exit_code == 2
    night.scene.target.cluster_id = "id-a"
    assert night.plan().exit_code == 3 and not night.path.exists()


def test_it_tells_a_dry_run_follows_tells_each_pass_and_rolls_back_exactly_and_is_spent(night):
    plan = night.mandate()
    assert "no status file" in night.status() and json.loads(night.status("--format", "json")) is None
    dry = night.follow()
    assert dry.exit_code == 0 and dry.stdout.startswith("DRY RUN: a pass would set 3 rows of 2 groups")
    assert f"mm2-migrate follow run {night.path} --approve {plan.fingerprint} --execute" in told(dry)
    assert night.scene.target.writes == 0 and not journal_path(night.path, plan.fingerprint).exists()
    ran = night.follow(plan=plan)
    assert ran.exit_code == 0 and ran.stdout.startswith("FOLLOWED: 2 passes, 3 rows set"), ran.output
    lines = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
    assert [(line["pass"], line["rows_set"], line["rows_changed"]) for line in lines] == [(1, 3, 3), (2, 0, 0)]
    assert night.on_b("g", "h") == [G, H]
    status = night.status_file(plan)
    assert (status["pass"], status["every_seconds"]) == (lines[1], 30.0)
    assert status["ended"] == "it made the 2 passes that it was asked for"
    assert "pass 2" in night.status() and "2 groups, 3 rows, 0 set; left out: none" in night.status()
    assert json.loads(night.status("--format", "json")) == status
    assert "RESTORED" in night.rollback(plan=plan).stdout and night.on_b("g", "h") == [{}, {}]
    again = night.follow(plan=plan)
    assert again.exit_code == 3 and "is spent" in again.output


def test_where_it_fails_its_status_does_not_say_that_it_runs(night):
    plan, night.scene.target.crash_after = night.mandate(), 1
    with pytest.raises(Crash):
        night.follow(plan=plan)
    assert night.status_file(plan)["ended"] == "it failed (Crash)"


def test_a_group_that_was_left_out_makes_the_exit_code_4_and_is_named(night):
    night.scene.target.states["g"] = ALIVE
    night.scene.target.commit("h", "A.u", 0, 101)
    ran = night.follow(plan=night.mandate())
    assert ran.exit_code == 4 and "g  alive-on-target" in ran.stdout
    assert "h  would-move-back: unsafe-to-fail-over" in ran.stdout
    assert night.follow().exit_code == 4


@pytest.mark.parametrize("lists_no_group", [False, True], ids=["no group fits --group", "the source lists no group"])
def test_over_no_group_at_all_it_is_refused_as_plan_is(night, lists_no_group):
    plan = night.mandate() if lists_no_group else night.mandate("--group", "gg.*")
    if lists_no_group:
        night.scene.source.groups = frozenset  # as brokers do without DESCRIBE on the cluster, and say nothing
    assert [night.follow().exit_code, night.follow(plan=plan).exit_code] == [3, 3]


def test_what_is_not_approved_signed_or_in_time_is_refused_and_nothing_written(night):
    plan = night.mandate("--require-signatures", "1")
    assert night.follow(plan=plan).exit_code == 3
    dry = night.follow()
    assert dry.exit_code == 3 and dry.stdout.startswith("REFUSED:") and "DRY RUN" in dry.stdout
    assert "mm2-migrate sign" in dry.stdout and "--execute" not in dry.stdout
    assert run("sign", str(night.path), "--by", "Ada").exit_code == 0
    assert night.follow("--execute").exit_code == 2
    assert night.follow("--approve", "0" * 64, "--execute").exit_code == 3
    assert night.scene.target.writes == 0
    assert night.follow(plan=plan).exit_code == 0
    night.scene.clock.wait(3600)
    late = night.follow(plan=plan)
    assert late.exit_code == 3 and "ended 2023-11-14T23:13:20.000Z: nothing was written" in late.output


def test_other_names_or_another_cluster_than_those_of_the_mandate_are_refused(night, monkeypatch):
    plan = night.mandate()
    with monkeypatch.context() as patch:
        patch.setenv("MM2_MIGRATE_REPLICATION_POLICY", "identity")
        named = night.follow(plan=plan)
    assert "approved with replication_policy default, and here it is identity" in told(named)
    night.scene.target.cluster_id = "another"
    ran = night.follow(plan=plan)
    assert named.exit_code == ran.exit_code == 3 and "another" in ran.output and night.scene.target.writes == 0


def test_a_rollback_that_ran_while_it_was_starting_is_not_forgotten(night, monkeypatch):
    plan = night.mandate()
    night.follow(plan=plan)
    began = follow_module.follow_edges_of

    @contextmanager
    def rolled_back_meanwhile(*arguments):
        with began(*arguments) as edges:
            assert night.rollback(plan=plan).exit_code == 0
            yield edges

    with monkeypatch.context() as patch:
        patch.setattr(follow_module, "follow_edges_of", rolled_back_meanwhile)
        ran = night.follow(plan=plan)
    assert ran.exit_code == 3 and "Another run worked on" in ran.output
    assert "is spent" in night.follow(plan=plan).output and night.on_b("g") == [{}]


def test_renamed_groups_are_approved_followed_and_taken_back_under_their_new_names(night):
    names = night.folder / "names.csv"
    names.write_text("source_group,target_group\ng,g-eu\nregex:team-(.*),\\1\n")
    plan = night.mandate("--group-map", str(names), "--accept", "named-groups-exist")
    assert r"Names on the target, by the first that fits: g -> g-eu; regex:team-(.*) -> \1" in night.status()
    names.unlink()  # the mandate has it all
    night.scene.target.commit("g", "A.t", 0, 7)
    night.scene.target.commit("g-eu", "A.t", 0, 5)
    assert "FOLLOWED" in night.follow(plan=plan).stdout
    assert night.on_b("g-eu", "h", "g") == [G, H, {("A.t", 0): 7}]
    assert "RESTORED" in night.rollback(plan=plan).stdout
    assert night.on_b("g-eu", "h", "g") == [{("A.t", 0): 5}, {}, {("A.t", 0): 7}]


def test_what_an_undo_plan_has_restored_is_a_later_plans_by_now_and_stays(night):
    plan = night.mandate()
    night.follow(plan=plan)
    saved = night.folder / "undo.plan"
    assert night.rollback("--out", str(saved)).exit_code == 0
    assert run("apply", str(saved), *night.words, *approved(read_plan(saved))).exit_code == 0
    assert night.on_b("g") == [{}]
    for partition, offset in ((0, 55), (1, 60)):
        night.scene.target.commit("g", "A.t", partition, offset)
    assert "NOTHING TO UNDO" in night.rollback(plan=plan).stdout and night.on_b("g") == [G]


def later_plan(night, once_more=None):
    """A plan of the night, after `follow`: applied, it keeps all that was followed.

    Or finds it right, where `once_more`, a mandate, is followed between the plan and its apply.
    """
    scene, path = night.scene, night.folder / "later.plan"
    later = planned(
        scene.source, scene.target, scene.mirror, comparer=scene.comparer, clock=scene.clock,
        source_groups=scene.on_source, target_groups=scene.on_target,
    )  # fmt: skip
    write_plan(later, path)
    if once_more is not None:
        night.follow(plan=once_more)
    for ran in (run("apply", str(path), *night.words, *approved(later)), run("verify", str(path), *night.words)):
        assert ran.exit_code == 0, ran.output
    return path, later


@pytest.mark.parametrize("followed_again", ["", "since", "before its apply", "by a clock that has gone back between"])
def test_a_rollback_leaves_what_a_later_plan_has_kept_or_found_right(night, followed_again):
    followed, clock = night.mandate(), night.scene.clock
    if followed_again == "before its apply":
        path, later = later_plan(night, once_more=followed)
        assert later.rows.tally("decision")["set"]
    else:
        night.follow(plan=followed)
        now = clock.now_ms
        if followed_again.startswith("by a clock"):
            clock.now_ms = lambda: now() - 3_600_000
        path, later = later_plan(night)
        clock.now_ms = now
    if followed_again == "since":
        clock.wait(60)
        night.follow(plan=followed)
    dry, rolled = night.rollback(), night.rollback("--allow-partial", plan=followed)
    assert night.on_b("g", "h") == [G, H], rolled.output
    assert run("verify", str(path), *night.words).exit_code == 0
    assert dry.exit_code == rolled.exit_code == 3
    assert all(f"Plan {later.short_fingerprint}, in this folder too" in told.output for told in (dry, rolled))


def test_a_later_plan_that_was_rolled_back_vouches_for_nothing_and_one_that_is_not_there_ends_the_rollback(night):
    followed = night.mandate()
    night.follow(plan=followed)
    path, later = later_plan(night)
    elsewhere = path.rename(night.folder / "elsewhere")
    ran = night.rollback(plan=followed)
    assert ran.exit_code == 1 and "its plan later.plan does not" in told(ran)
    elsewhere.rename(path)
    journal = journal_path(path, later.fingerprint)
    with Journal(journal, later.fingerprint, night.scene.clock.now_ms).open("rollback", {}):
        pass
    assert night.rollback(plan=followed).exit_code == 0 and night.on_b("g") == [{}]


def test_of_two_mandates_the_one_that_was_first_followed_later_can_be_rolled_back(night):
    paths, made = [night.path, night.folder / "second.plan"], []
    for path, group in zip(paths, (".*", ".+"), strict=True):
        night.path = path
        made.append(night.mandate("--group", group))
        night.follow(plan=made[-1])
        night.scene.clock.wait(60)
    night.path = paths[0]
    night.follow(plan=made[0])
    assert night.rollback(plan=made[0]).exit_code == 3
    night.path = paths[1]
    assert night.rollback(plan=made[1]).exit_code != 3
