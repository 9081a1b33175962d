"""What a report says after an apply: the same as apply itself said, and never more than the journal knows."""

import json
from pathlib import Path

import pytest

from migrate.apply.engine import ApplyResult
from migrate.apply.history import read_history
from migrate.apply.outcome import RowStatus
from migrate.apply.runs import UNDONE
from migrate.apply.verify import Known, compare
from migrate.cli.report import run_report
from migrate.errors import UnreadablePlan, UsageError
from migrate.model import Decision, Failure
from migrate.plan.file import write_plan
from migrate.show.aftermath import Aftermath
from migrate.show.report_outcome import aftermath, verified_of
from migrate.show.verify import verify_document
from tests.builders import make_check
from tests.fakes import Script
from tests.unit.answers import DENIED, TIMED_OUT, UNSURE
from tests.unit.applyscene import Scene
from tests.unit.plans import plan, row

SAME_WORD = {RowStatus.SET, RowStatus.ALREADY, RowStatus.FAILED, RowStatus.UNKNOWN, RowStatus.REMOVED,
             RowStatus.KEPT, RowStatus.SKIPPED}  # fmt: skip


def after(scene: Scene, verification: str = "") -> Aftermath:
    content = scene.journal.path.read_bytes() if scene.journal.path.exists() else b""
    state = read_history(content, "journal", scene.plan.fingerprint)
    found = verified_of(verification.encode(), "v.json", scene.plan) if verification else None
    return aftermath(scene.plan, state, found)


def verdicts(told: Aftermath) -> list[tuple[str, str]]:
    return [(verdict.text, verdict.kind) for verdict in told.verdicts]


def assert_same(result: ApplyResult, told: Aftermath) -> None:
    for ended in result.rows:
        if ended.status in SAME_WORD:
            assert told.rows[ended.key].status == ended.status, ended


def test_an_apply_that_went_well_is_told_as_such(tmp_path: Path) -> None:
    scene = Scene(plan(row("a"), row("b", partition=1), row("c", decision=Decision.KEEP, target_prior=60)), tmp_path)
    assert not after(scene)
    result = scene.apply()
    told = after(scene)
    assert result.exit_code == 0 and told.complete and not told.spent
    assert verdicts(told) == [("APPLIED AT 2023-11-14T22:13:20.000Z: 2 offsets are as planned, read back", "good")]
    assert_same(result, told)
    assert told.rows["a", "orders", 0].seen == "60"
    run = told.runs[0]
    assert (run.command, run.exit_code) == ("apply", 0) and run.began and run.ended and "process" in run.who


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("answer", [DENIED, TIMED_OUT, UNSURE, Failure("GROUP_SUBSCRIBED_TO_TOPIC", "alive")])
def test_the_report_says_of_each_row_what_apply_said(tmp_path: Path, answer: Failure, applied: bool) -> None:
    scene = Scene(plan(row("a"), row("b", partition=1)), tmp_path)
    scene.target.script("alter", "b", *[Script(answer, applied)] * 500)
    result = scene.apply()
    told = after(scene)
    assert_same(result, told)
    good = result.exit_code == 0
    assert told.complete is good and (told.verdicts[0].kind == "good") is good


@pytest.mark.parametrize("fails", [False, True])
def test_an_undo_that_was_begun_makes_it_spent_and_is_never_told_as_applied(tmp_path: Path, fails: bool) -> None:
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)
    scene.apply()
    undo = Scene(scene.undo(), tmp_path, scene.clock, name="undo.plan")
    undo.target.script("alter", "a", *[Script(DENIED)] * 500 * fails)
    assert undo.apply(spends=scene.journal).exit_code == fails
    told = after(scene)
    said = f"SPENT: its undo {undo.plan.short_fingerprint} was begun, and the journal of that is not beside this plan"
    assert told.spent and verdicts(told) == [(said, "warn")]
    assert [(run.command, bool(run.ended)) for run in told.runs] == [("apply", True), (UNDONE, False)]
    assert told.runs[-1].exit_code is None


def verified(scene: Scene, consumers_ran: bool = True) -> str:
    groups = {r.group for r in scene.plan.rows}
    known = Known(scene.journal.read(), consumers_ran)
    found = compare(scene.plan, scene.target.commits(groups), known=known)
    return "\n".join(verify_document(found, scene.plan, None, scene.clock.now_ms()))


def test_a_verification_stands_beside_the_results(tmp_path: Path) -> None:
    scene = Scene(plan(row("a"), row("b", partition=1)), tmp_path)
    scene.apply()
    only_a = compare(scene.plan, scene.target.commits({"a"}), tuple(r for r in scene.plan.rows if r.group == "a"))
    content = "\n".join(verify_document(only_a, scene.plan, None, scene.clock.now_ms()))
    document = json.loads(content)
    assert (document["rows_looked_at"], document["rows_in_plan"], document["exit_code"]) == (1, 2, 0)
    told = after(scene, content)
    assert verdicts(told)[-1] == ("VERIFIED IN PART: 1 equal; 1 row not looked at", "warn")
    scene.target.commit("a", "A.orders", 0, 75)
    told = after(scene, verified(scene))
    assert told.verdicts[-1].text == "VERIFIED: 1 ahead, 1 equal"
    assert told.rows["a", "orders", 0].standing == "ahead"
    told = after(scene, verified(scene, consumers_ran=False))
    assert told.verdicts[-1].kind == "bad" and told.rows["a", "orders", 0].standing == "ahead-empty"
    scene.target.commit("b", "A.orders", 1, 3)
    told = after(scene, verified(scene))
    assert told.verdicts[-1].kind == "bad" and told.rows["b", "orders", 1].standing == "behind"


def test_a_verification_that_leaves_rows_or_blocks_out_is_no_good_news(tmp_path: Path) -> None:
    block = make_check("named-groups-exist", "biling")
    blocked = row("b", partition=1, decision=Decision.BLOCK, reason="x", sentence="Alive.")
    scene = Scene(plan(row("a"), blocked, checks=(block,)), tmp_path)
    scene.target.commit("a", "A.orders", 0, 60)
    told = after(scene, verified(scene))
    said = "VERIFIED IN PART: 1 equal; 1 row not written, 1 block of the plan open"
    assert verdicts(told)[-1] == (said, "warn")
    assert told.rows["b", "orders", 1].verified == "not verified: Alive."


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"fingerprint": "x", "exit_code": 0, "offsets": [1]}'])
def test_a_file_that_is_no_verification_or_one_of_another_plan_is_refused(tmp_path: Path, content: str) -> None:
    scene = Scene(plan(row("a")), tmp_path)
    for text, of, said in ((content, scene.plan, "is not what"), (verified(scene), plan(row("b")), "verifies plan")):
        with pytest.raises(UsageError, match=said):
            verified_of(text.encode(), "v.json", of)


def test_report_finds_the_journal_beside_the_plan_under_any_name(tmp_path: Path) -> None:
    scene = Scene(plan(row("a"), row("b", partition=1)), tmp_path)
    path, proof, out = (tmp_path / name for name in ("renamed.plan", "verify.json", "report.html"))
    write_plan(scene.plan, path)

    def page(verification: Path | None = None) -> str:
        run_report(path, out, verification, ())
        return out.read_text()

    assert "APPLIED" not in page()
    scene.apply()
    assert "APPLIED AT 2023-11-14T22:13:20.000Z: 2 offsets are as planned" in page() and "mm2-migrate verify" in page()
    proof.write_text(json.dumps(json.loads(verified(scene))))
    assert "VERIFIED: 2 equal" in page(proof)
    scene.journal.path.write_text("torn\n")
    with pytest.raises(UnreadablePlan, match="damaged"):
        page()


def test_an_undone_write_without_a_certain_answer_is_restored_only_once_it_is_acknowledged(tmp_path: Path) -> None:
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)
    scene.target.script("alter", "a", Script(TIMED_OUT), Script(TIMED_OUT))
    assert scene.apply(group_timeout_seconds=0.0).exit_code == 4
    assert scene.rollback(group_timeout_seconds=0.0).exit_code == 4
    assert after(scene).rows["a", "orders", 0].status == "undo-unknown"
    assert scene.rollback().exit_code == 0
    assert after(scene).rows["a", "orders", 0].status == "restored"


def test_a_kept_row_that_was_read_back_elsewhere_has_failed(tmp_path: Path) -> None:
    scene = Scene(plan(row("a"), row("c", decision=Decision.KEEP, target_prior=60)), tmp_path)
    scene.target.when("alter", lambda: scene.target.commit("c", "A.orders", 0, 95))
    result = scene.apply()
    assert result.exit_code == 4
    assert_same(result, after(scene))
    assert not after(scene).complete and after(scene).rows["c", "orders", 0].seen == "95"


@pytest.mark.parametrize(("answer", "code", "verdict"), [(DENIED, 1, "1 failed"), (TIMED_OUT, 4, "1 unknown")])
def test_an_offset_that_stood_there_with_other_metadata_is_never_told_as_planned(tmp_path, answer, code, verdict):
    scene = Scene(plan(row("a", target_prior=60, target_metadata="m")), tmp_path)
    scene.target.script("alter", "a", *[Script(answer, False)] * 500)
    result = scene.apply()
    told = after(scene)
    assert result.exit_code == code and not told.complete
    # What may have been written is not said to be not applied.
    word = "PARTLY" if answer is TIMED_OUT else "NOT"
    assert verdicts(told) == [(f"{word} APPLIED: 0 as planned, {verdict}", "bad")]
    assert_same(result, told)
