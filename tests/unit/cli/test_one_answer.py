"""What show, explain, apply, sign, verify and report say of one plan in one state: the same, and what helps."""

import re
import shlex
import subprocess

import pytest

from migrate.cli import plan as cli_plan
from migrate.model import Decision
from migrate.plan.file import read_plan, write_plan
from migrate.show.next_steps import plan_anew
from tests.fakes import Script
from tests.unit.answers import DENIED
from tests.unit.commands import run
from tests.unit.nights import PRIOR, UNDO, Night, ends, first_line, night_on, told, verify
from tests.unit.plans import plan

# What follows the first plan's name in that of a new one.
NEW = '-"$(date +%F-%H%M%S)".plan'


@pytest.fixture
def night(tmp_path, monkeypatch):
    return night_on(tmp_path, monkeypatch)


def with_a_blocked_group(night: Night) -> str:
    night.plan()
    made = read_plan(night.folder / "cutover.plan")
    rows = [r._replace(decision=Decision.BLOCK, reason="rewind") if r.group == "g00" else r for r in made.rows]
    write_plan(plan(*rows, source_down=True, source_cluster_id=""), night.folder / "cutover.plan")
    return str(night.folder / "cutover.plan")


def said(*words: str) -> str:
    return told(run(*words))


def plan_commands(text: str) -> list[list[str]]:
    """The plan commands in what was said, as the words of each."""
    rest = text.split("mm2-migrate plan ")[1:]
    return [shlex.split("plan " + one.partition(NEW)[0] + NEW) for one in rest]


def test_where_only_blocked_and_undone_groups_are_left_all_say_that_only_a_new_plan_helps_and_which(night):
    path = with_a_blocked_group(night)
    ends(night.execute("apply", "cutover.plan", "--allow-partial"), 4)
    ends(night.execute("rollback", "cutover.plan", "--group", "g03"), 0)
    shown = said("show", path).partition("NEXT")[2]
    applied = told(night.run("apply", "cutover.plan", "--allow-partial"))
    for text in (shown, applied, told(verify(night))):
        (command,) = plan_commands(text)
        assert [command[n + 1] for n, word in enumerate(command) if word == "--group"] == ["g00", "g03"]
        assert command[-2:] == ["--out", path.replace(".plan", shlex.split(NEW)[0])]
        assert "Only a new plan helps" in text or "make a new plan" in text
    assert "mm2-migrate apply" not in shown and "mm2-migrate apply" not in applied


def test_the_command_for_a_new_plan_has_what_the_first_was_made_of_and_is_taken_as_it_is_printed(night, monkeypatch):
    settings = {"failback": "yes", "require-signatures": "2", "group": "'a b' c.*", "topic": "orders", "rewind": "set"}
    night.plan()
    rows = read_plan(night.folder / "cutover.plan").rows
    write_plan(plan(*rows, settings=settings, source_down=True, source_cluster_id=""), night.folder / "cutover.plan")
    for who in ("Ada", "Grace"):
        said("sign", str(night.folder / "cutover.plan"), "--by", who)
    ends(night.execute("apply", "cutover.plan"), 0)
    ends(night.execute("rollback", "cutover.plan"), 0)
    (command,) = plan_commands(told(night.run("apply", "cutover.plan")))
    asked = []
    monkeypatch.setattr(cli_plan, "make_plan", lambda options, *_: asked.append(options) or read_plan(options.plan))
    run(*command)
    (options,) = asked
    assert options.failback and options.require_signatures == 2 and options.groups.groups == ("a b", "c.*")
    assert options.groups.topics == ("orders",) and options.out.name == "cutover" + shlex.split(NEW)[0]
    assert options.policies.rewind == "block"
    # The plan's own file is refused: its journal lies beside it.
    first = [word.replace(shlex.split(NEW)[0], ".plan") for word in command]
    monkeypatch.undo()
    ends(run(*first), 3)


def test_a_new_plan_has_a_name_that_no_earlier_one_has_in_a_folder_of_any_name():
    command = plan_anew(plan(), "to night's/cutover.plan", ()).replace("mm2-migrate", "printf '%s\\n'")
    spoken = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    out = spoken.stdout.splitlines()[-1]
    assert re.fullmatch(r"to night's/cutover-\d{4}-\d\d-\d\d-\d{6}\.plan", out), spoken


def test_what_failed_is_tried_again_and_what_apply_left_out_itself_is_asked_about_first(night):
    night.plan()
    path = str(night.folder / "cutover.plan")
    night.target.script("alter", "g00", Script(DENIED))
    ends(night.execute("apply", "cutover.plan"), 4)
    after = said("show", path).partition("NEXT")[2]
    assert "--execute Take up what is left" in after
    ends(night.execute("apply", "cutover.plan"), 0)
    night.plan("other.plan")
    night.target.commit("g01", "A.orders", 0, 7)
    ends(night.execute("apply", "other.plan", "--allow-partial"), 4)
    after = said("show", path.replace("cutover", "other")).partition("NEXT")[2]
    assert "The last apply left groups out: what it would do now" in after and "--execute" not in after
    ends(night.run("apply", "other.plan"), 3, "Only a new plan helps", "--group g01")


def test_verify_before_any_apply_says_that_nothing_was_applied_and_how_to(night):
    night.plan()
    ends(
        verify(night), 1,
        "NOTHING VERIFIED: nothing of it has been applied, 12 offsets are where they were before",
        f"mm2-migrate apply {night.folder / 'cutover.plan'} --source A",
    )  # fmt: skip
    night.target.commit("g03", "A.orders", 0, 7)
    ends(verify(night), 1, "NOT AS PLANNED: 12 of 12 offsets")


def test_show_explain_and_the_report_name_and_count_what_was_undone_alone(night):
    night.applied()
    ends(night.execute("rollback", "cutover.plan", "--group", "g0[34]"), 0)
    path = str(night.folder / "cutover.plan")
    assert "Rolled back alone, and never set again by this plan: g03" in said("show", path)
    assert "Since 1 restored; rolled back alone: this plan never sets it again." in said("explain", path, "g03")
    assert "Since 1 set." in said("explain", path, "g05")
    verified = verify(night, "--format", "json")
    (night.folder / "v.json").write_text(verified.stdout)
    words = ["--verification", str(night.folder / "v.json"), "--out", str(night.folder / "r.html")]
    ends(run("report", str(night.folder / "cutover.plan"), *words), 0)
    page = (night.folder / "r.html").read_text()
    assert "VERIFIED IN PART: 10 equal; 2 rows rolled back" in page and "not written" not in page.partition("<h2")[0]


def test_a_rollback_ends_with_what_comes_next_and_verify_says_it_beside_what_the_journal_says_was_set(night):
    night.applied()
    done = night.execute("rollback", "cutover.plan")
    ends(done, 0, "Nothing was changed on A: these groups can go on there", "Next: mm2-migrate show")
    text = told(verify(night))
    assert text.startswith("ROLLED BACK: this plan is spent")
    assert "the journal says that it was set and read back, and a rollback has begun since" in text
    assert plan_commands(text)


def test_an_applied_undo_is_shown_as_restored(night):
    night.applied()
    ends(night.save_undo(), 0)
    ends(night.execute("apply", UNDO), 0, "RESTORED", "Next: mm2-migrate verify")
    undo = said("show", str(night.folder / UNDO))
    assert undo.startswith("RESTORED AT") and "APPLIED" not in undo


def test_a_rollback_that_only_began_is_never_called_done_and_its_end_is_offered(night):
    night.applied()
    night.killed("rollback", "cutover.plan", after=3)
    path = str(night.folder / "cutover.plan")
    texts = [
        told(night.run("apply", "cutover.plan")), said("sign", path, "--by", "Ada"), said("show", path),
        told(verify(night)),
    ]  # fmt: skip
    for text in texts:
        assert "has been rolled back" not in text and not text.startswith("ROLLED BACK")
        assert f"mm2-migrate rollback {path}" in text and "Finish the rollback that has begun" in text
    ends(night.execute("rollback", "cutover.plan"), 0)
    assert night.all_at(PRIOR)
    ends(night.run("apply", "cutover.plan"), 3, "has been rolled back", "To go forward again, make a new plan:")
    assert first_line(night, "show").startswith("ROLLED BACK AT")
