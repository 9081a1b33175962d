"""`show` and `sign`: one plan in five formats, its difference from another, several added up, and who signed."""

import json

import pytest
from jsonschema import Draft202012Validator

from migrate.cli.sign import run_sign
from migrate.plan.file import read_plan, write_plan
from tests.builders import make_plan, make_row
from tests.documentschema import plan_document_schema
from tests.fakes import Script
from tests.unit.answers import DENIED
from tests.unit.applyscene import Scene
from tests.unit.commands import run
from tests.unit.plans import plan, row


@pytest.fixture
def rehearsal(tmp_path):
    path = tmp_path / "rehearsal.plan"
    write_plan(make_plan([make_row(group="billing", target_offset=1), make_row(group="gone")]), path)
    return path


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv", "kcg"])
def test_show_writes_results_to_stdout_in_every_format(plan_file, form):
    shown = run("show", str(plan_file), "--format", form)
    assert shown.exit_code == 0 and "billing" in shown.stdout and "refunds" in shown.stdout
    assert ("kafka-consumer-groups" in shown.stderr) == (form == "kcg")


def test_a_difference_is_of_the_groups_that_were_asked_for_also_of_one_that_is_gone(plan_file, rehearsal):
    words = ("show", str(plan_file), "--diff", str(rehearsal), "--format", "json")
    whole, one = (json.loads(run(*words, *more).stdout) for more in ((), ("--group", "gone")))
    assert [row["group"] for row in whole["new"]] == ["refunds"] and whole["changed"]
    assert [row["group"] for row in one["gone"]] == ["gone"] and not one["new"] and not one["changed"]


def test_several_plans_are_added_up_each_once_and_as_a_whole_only(plan_file, rehearsal):
    both = run("show", str(plan_file), str(rehearsal))
    assert both.exit_code == 0 and "cutover.plan" in both.stdout and "rehearsal.plan" in both.stdout
    for words, said in (
        ([str(plan_file)], "are one plan"),
        *(
            ([str(rehearsal), *words], "for one plan")
            for words in (("--group", "g"), ("--only", "set"), ("--diff", "p"))
        ),
        ([str(rehearsal), "--format", "csv"], "no format csv"),
        (["--diff", str(rehearsal), "--format", "csv"], "no format csv"),
    ):
        refused = run("show", str(plan_file), *words)
        assert refused.exit_code == 2 and said in refused.stderr


def first_line_and_next(*words: str) -> tuple[str, str]:
    shown = run("show", *words)
    assert shown.exit_code == 0, shown.output
    return shown.stdout.splitlines()[0], shown.stdout.partition("NEXT\n")[2]


@pytest.fixture
def night(tmp_path):
    scene = Scene(plan(row("a", target_prior=10), row("b", target_prior=10)), tmp_path)
    write_plan(scene.plan, tmp_path / "cutover.plan")
    return scene


def test_show_says_first_what_has_happened_to_a_plan_and_offers_what_comes_next(night):
    path = str(night.folder / "cutover.plan")
    first, after = first_line_and_next(path)
    assert first.startswith("READY TO APPLY") and first.endswith("no journal beside this file")
    assert "mm2-migrate apply" in after and "mm2-migrate verify" not in after
    night.apply()
    first, after = first_line_and_next(path)
    assert first.startswith("APPLIED AT 2023-11-14T22:13:20.000Z: 2 offsets are as planned")
    assert "mm2-migrate apply" not in after and "mm2-migrate verify" in after and "mm2-migrate rollback" in after
    night.rollback()
    first, after = first_line_and_next(path)
    assert first.startswith("ROLLED BACK AT 2023-11-14T22:13:20.000Z: 2 offsets restored")
    assert "SPENT" in run("show", path).stdout
    assert "mm2-migrate plan" in after and "date +%F-%H%M%S" in after and "mm2-migrate apply" not in after


def test_show_says_how_far_an_apply_came_and_where_the_journal_is_damaged_that_nobody_knows(night):
    night.target.script("alter", "b", Script(DENIED))
    night.apply(concurrency=1)
    first, after = first_line_and_next(str(night.folder / "cutover.plan"))
    assert first.startswith("PARTLY APPLIED: 1 as planned, 1 failed") and "the same command again" in after
    night.journal.path.write_bytes(b"damaged\n")
    first, _ = first_line_and_next(str(night.folder / "cutover.plan"))
    assert first.startswith("NOT KNOWN WHETHER IT WAS APPLIED: Line 1 of the journal")


def test_who_has_signed_stands_in_the_first_line_until_enough_have(tmp_path):
    path = tmp_path / "cutover.plan"
    write_plan(make_plan([make_row()], settings={"require-signatures": "2"}), path)
    for number, name in enumerate(("Ada", "Grace")):
        first, after = first_line_and_next(str(path))
        assert f"SIGNED {number} OF 2" in first and after.index("sign ") < after.index("apply ")
        signed = run("sign", str(path), "--by", name)
        title, fingerprint, _, count, *_ = signed.stdout.splitlines()
        assert signed.exit_code == 0 and title == f"SIGNED by {name}" and f"{number + 1} of 2" in count
        assert fingerprint.endswith(read_plan(path).fingerprint)
    assert run_sign(path, "ADA", "")[0] == "SIGNED by ADA (again: a name counts once)"
    first, after = first_line_and_next(str(path))
    assert "SIGNED 2 OF 2" in first and "2 of 2 (Ada, Grace)" in run("show", str(path)).stdout
    assert "mm2-migrate sign" not in after


def test_json_says_the_same_as_the_table(night):
    path = str(night.folder / "cutover.plan")
    assert json.loads(run("show", path, "--format", "json").stdout)["beside"]["runs"] == []
    night.apply()
    document = json.loads(run("show", path, "--format", "json").stdout)
    Draft202012Validator(plan_document_schema()).validate(document)
    assert document["verdict"] in " ".join(run("show", path).stdout.split())
    assert document["beside"]["complete"] and not document["beside"]["spent"]
    assert document["beside"]["rows"] == {"set": 2} and document["beside"]["runs"][0]["exit_code"] == 0
