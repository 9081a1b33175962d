"""The notebooks' tables: the numbers that `show` adds up, and what became of a plan."""

import pytest

from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import apply_plan
from migrate.apply.journal import Journal
from migrate.apply.signatures import add_signature, signature_of, signatures_path
from migrate.apply.undo import undo_plan
from migrate.apply.verify import verify
from migrate.model import Decision
from migrate.plan.companions import journal_path
from migrate.plan.file import write_plan
from migrate.plan.totals import group_totals
from migrate.show import review
from migrate.show import review_outcome as outcome
from migrate.show.verify import verify_document
from tests.builders import make_plan, make_row, make_untranslated
from tests.fakes import FakeClock, NoProgress
from tests.notebooks import Tables, outputs, run
from tests.unit.goldenplan import golden_plan
from tests.unit.plans import clusters, plan, row


def test_every_table_of_an_empty_plan_has_its_columns_and_no_line():
    empty = make_plan()
    for table in (review.rows_table, review.groups_table, review.attention_table, review.checks_table):
        made = table(empty)
        assert len(made) == 0 and len(made.columns) > 5


def test_a_groups_line_has_the_sums_of_show():
    plan = golden_plan()
    table = review.groups_table(plan)
    for group, rows in plan.groups().items():
        sums = group_totals(rows)
        line = table.loc[group]
        for column, number in (("lag", sums.lag), ("rereads", sums.rereads)):
            assert line[column] is review.extra_module("pandas").NA if number is None else line[column] == number
        assert line[str(Decision.SET)] == sums.decisions.get(Decision.SET, 0)


def test_the_next_commands_sign_and_apply_this_fingerprint():
    plan = make_plan([make_row()])
    first, sign, apply = review.next_commands(plan, "my plan").split("\n")
    assert first == f"Fingerprint {plan.fingerprint}" and sign.startswith("mm2-migrate sign 'my plan' --by")
    assert apply == f"mm2-migrate apply 'my plan' --approve {plan.fingerprint} --execute"
    assert review.next_commands(make_plan(), "p").endswith("There is nothing that may be applied.")
    # One that leaves blocked groups out is never given without saying so.
    plan = make_plan([make_row(), make_untranslated(Decision.BLOCK, "commit-beyond-log-end", "bad")])
    *_, said, apply = review.next_commands(plan, "p").split("\n")
    assert "leave the blocked groups out" in said and "--allow-partial" in apply


def test_a_plan_of_rules_is_no_plan_to_review(tmp_path):
    write_plan(make_plan([], kind="rules"), tmp_path / "m.plan")
    with pytest.raises(review.ReviewStopped, match="holds rules"):
        review.open_plan(tmp_path / "m.plan")


pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def applied(tmp_path):
    made = plan(row("billing"), row("crm", decision=Decision.BLOCK), row("shipping", partition=1))
    path = tmp_path / "cutover.plan"
    write_plan(made, path)
    add_signature(
        signatures_path(path, made.fingerprint),
        signature_of(made.fingerprint, "Ada", "read", "2026-11-21T02:00:00.000Z"),
    )
    target, source = clusters(made)
    journal = Journal(journal_path(path, made.fingerprint), made.fingerprint, FakeClock().now_ms)
    options = RunOptions(execute=True, allow_partial=True)
    assert apply_plan(made, ApplyClusters(target, source), journal, FakeClock(), NoProgress(), options).exit_code == 4
    found = verify(made, target, NoProgress())
    lines = verify_document(found, made, None, FakeClock().now_ms())
    (tmp_path / "verification.json").write_text("\n".join(lines))
    return path, made


def test_the_second_notebook_tells_what_was_done_and_found(applied):
    path, made = applied
    notebook = run("after_cutover.ipynb", path.parent, VERIFICATION="verification.json")
    tables = [Tables(text).rows for text in outputs(notebook, "text/html")]
    standings = {r[0]: r[1] for r in tables[1][1:]}
    assert standings == {"moved": "2", "uncertain": "0", "undone": "0", "left": "1", "as-it-is": "0"}
    assert ["0", "2026-11-21T02:00:00.000Z", "Ada", "read"] in [r for rows in tables for r in rows]
    rows = outcome.outcome_table(outcome.open_wave(path, made))
    assert list(rows["status"]) == ["set", "set"] and list(rows["group_is"]) == ["moved", "moved"]
    assert list(rows["as_planned"]) == [True, True] and rows[~rows["as_planned"]].empty
    unwritten = outcome.not_written_table(path.parent / "verification.json", made)
    assert list(zip(unwritten["group"], unwritten["why"], strict=True)) == [("crm", "blocked")]
    assert any("VERIFIED IN PART: 2 equal; 1 row not written" in text for text in outputs(notebook, "text/plain"))
    assert list(outcome.verification_table(path.parent / "verification.json", made)["standing"]) == ["equal", "equal"]
    assert set(outcome.events_table(path, made)["event"]) >= {"begin", "backup", "intent", "outcome", "readback", "end"}


def test_a_plan_without_a_journal_and_a_verification_of_another_plan_are_one_line(tmp_path, applied):
    _, made = applied
    other = make_plan([make_row()])
    with pytest.raises(review.ReviewStopped, match="There is no journal"):
        outcome.open_wave(tmp_path / "other.plan", other)
    for file, of, said in (("verification.json", other, "verifies plan"), ("cutover.plan", made, "is not what")):
        with pytest.raises(review.ReviewStopped, match=said):
            outcome.verification_table(tmp_path / file, of)


def test_what_an_undo_plan_took_back_is_undone_here_too(applied):
    path, made = applied
    target, _ = clusters(made)
    later = FakeClock(1_700_000_060_000)
    log = Journal(journal_path(path, made.fingerprint), made.fingerprint, later.now_ms)
    undo = undo_plan(made, log.read(), 0, "0.1.0")
    own = Journal(journal_path(path.with_name("undo.plan"), undo.fingerprint), undo.fingerprint, FakeClock().now_ms)
    for planned in made.rows:
        if planned.decision is Decision.SET:
            target.commit(planned.group, planned.target_topic, planned.partition, planned.target_offset)
    done = apply_plan(undo, ApplyClusters(target), own, FakeClock(), NoProgress(), RunOptions(True, spends=log))
    assert done.exit_code == 0
    wave = outcome.open_wave(path, made)
    assert outcome.standings_table(wave)["groups"].to_dict() == {
        "moved": 0, "uncertain": 0, "undone": 2, "left": 1, "as-it-is": 0,
    }  # fmt: skip
    rows = outcome.outcome_table(wave)
    assert list(rows["group_is"]) == ["undone", "undone"] and not any(rows["as_planned"])
    verdict = outcome.verification_verdict(path.parent / "verification.json", path, made)
    assert verdict.startswith("VERIFIED BEFORE OR AMID THE LAST APPLY OF AN UNDO PLAN")
