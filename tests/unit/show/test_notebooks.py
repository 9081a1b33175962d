"""The notebooks: run from a clean kernel on files alone, stored without outputs, and their numbers are `show`'s."""

import json
import re
import subprocess
import sys

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from migrate.apply.engine import ApplyOptions, apply_plan
from migrate.apply.journal import Journal
from migrate.apply.signatures import add_signature, signature_of, signatures_path
from migrate.apply.undo import undo_plan
from migrate.apply.verify import verify
from migrate.model import Decision, Row
from migrate.plan.companions import journal_path
from migrate.plan.file import write_plan
from migrate.plan.totals import totals
from migrate.show import review
from migrate.show import review_outcome as outcome
from migrate.show.formats import render
from migrate.show.report_outcome import Aftermath
from migrate.show.report_page import report
from migrate.show.verify import verify_document
from tests.builders import make_plan, make_row
from tests.fakes import FakeClock, NoProgress
from tests.notebooks import NOTEBOOKS, Tables, facts, outputs, run
from tests.unit.goldenplan import golden_plan
from tests.unit.pages import squeezed
from tests.unit.plans import clusters, plan, row

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.name)
def test_a_notebook_is_stored_valid_without_outputs_and_has_a_parameter_cell(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    assert 'PLAN = "cutover.plan"' in "".join(cell.source for cell in code)


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    """The golden plan, and another as its rehearsal, through the review notebook."""
    folder = tmp_path_factory.mktemp("review")
    made = golden_plan()
    write_plan(made, folder / "cutover.plan")
    rehearsal = make_plan([make_row("billing", "orders", 0, target_offset=600), make_row("long-gone")])
    write_plan(rehearsal, folder / "rehearsal.plan")
    before = sorted(folder.iterdir())
    notebook = run("review_plan.ipynb", folder, OTHER="rehearsal.plan")
    assert sorted(folder.iterdir()) == before, "a review writes nothing"
    return made, notebook


def test_the_review_runs_from_a_clean_kernel_and_draws_its_charts(reviewed):
    made, notebook = reviewed
    assert len(outputs(notebook, "image/png")) == 4
    assert outputs(notebook, "print") == [review.next_commands(made, "cutover.plan") + "\n"]
    assert made.fingerprint in outputs(notebook, "print")[0]


def test_every_number_of_the_notebook_is_that_of_json_and_of_the_table(reviewed):
    made, notebook = reviewed
    document = json.loads("\n".join(render(made, "json", "cutover.plan")))
    table = "\n".join(render(made, "table", "cutover.plan", width=400))
    told, sums = facts(notebook), document["totals"]
    assert (told["verdict"], told["fingerprint"]) == (document["verdict"], document["fingerprint"])
    assert table.startswith(told["verdict"]) and told["fingerprint"] in table
    assert [int(told[k]) for k in ("commits read", "rows", "groups", "groups to write", "groups blocked")] == [
        sums[k] for k in ("commits_read", "rows", "groups", "groups_to_write", "groups_blocked")
    ]
    assert {d: int(told[f"rows: {d}"]) for d in map(str, Decision)} == sums["decisions"]
    said = re.search(r"^Commits +(\d+) read.* = (\d+) rows \+ (\d+) filtered", table, re.M)
    assert said and [int(n) for n in said.groups()] == [
        int(told["commits read"]), int(told["rows"]), int(told["filtered"].split()[0])
    ]  # fmt: skip
    groups = f"{told['groups to write']} to write, {told['groups blocked']} blocked"
    assert f"Groups       {groups}" in table
    assert told["re-reads at most"] == f"{sums['rereads_bounded']} on {sums['bounded_rows']} rows"
    assert f"at most {sums['rereads_bounded']} records on {sums['bounded_rows']} rows" in table
    assert f"about {sums['rereads_estimated']} records on {sums['estimated_rows']} rows (estimate)" in table
    mm2 = sums["mm2"]
    assert told["MM2 would re-read more"] == f"{mm2['behind_records']} on {mm2['behind_rows']} rows"
    assert f"re-read {mm2['behind_records']} records more on {mm2['behind_rows']} rows" in table


def test_the_report_has_the_numbers_of_the_notebook(reviewed):
    made, notebook = reviewed
    told, page = facts(notebook), squeezed(report(made, "cutover.plan", Aftermath()).html)
    bounded, rows = told["re-reads at most"].removesuffix(" rows").split(" on ")
    mm2, mm2_rows = told["MM2 would re-read more"].removesuffix(" rows").split(" on ")
    for said in (
        told["verdict"],
        told["fingerprint"],
        f"{told['commits read']} read",
        f"= {told['rows']} rows + {told['filtered'].split()[0]} filtered",
        f"{told['groups to write']} to write, {told['groups blocked']} blocked",
        f"at most {bounded} records on {rows} rows",
        f"re-read {mm2} records more on {mm2_rows} rows",
    ):
        assert said in page, said


def test_the_tables_add_up_to_the_totals_and_their_rows_are_those_of_json():
    made = golden_plan()
    counted, rows = totals(made), review.rows_table(made)
    document = json.loads("\n".join(render(made, "json", "cutover.plan")))
    for column in Row.__dataclass_fields__:
        values = [None if value is review.pandas_module().NA or value != value else value for value in rows[column]]
        assert values == [row[column] for row in document["rows"]], column
    groups = review.groups_table(made)
    assert len(groups) == counted.groups and groups["blocked"].sum() == counted.groups_blocked
    assert {d: int(groups[str(d)].sum()) for d in Decision if counted.decisions.get(d)} == dict(counted.decisions)
    placed = rows[rows["target_offset"].notna()]
    assert placed["rereads"].sum() == counted.rereads_bounded + counted.rereads_estimated
    assert placed[placed["mm2_rereads"] > 0]["mm2_rereads"].sum() == counted.mm2.behind_records
    assert rows["may_skip"].sum() == counted.skipping_rows
    assert review.grades_table(made).to_numpy().sum() == counted.rows
    assert len(review.checks_table(made)) == len(document["checks"])


def test_a_comparison_stands_in_the_notebook(reviewed):
    _, notebook = reviewed
    everything = " ".join(outputs(notebook, "text/html"))
    assert "long-gone" in everything and "decided otherwise" in everything or "moved" in everything


def test_rows_to_look_at_first_are_those_that_may_cost_data():
    worst = review.outliers(golden_plan(), 100)
    odd = list(worst["group"])[:5]
    assert set(odd) <= {"kept-ahead", "left-alone", "live-on-target", "no-check-tells", "orders-service", "payments",
                        "reset-to-latest", "streams-app"}  # fmt: skip


@pytest.mark.parametrize("name", ["review_plan.ipynb", "after_cutover.ipynb"])
def test_a_missing_plan_is_one_clear_line(name, tmp_path):
    with pytest.raises(CellExecutionError) as raised:
        run(name, tmp_path, PLAN="absent.plan")
    assert raised.value.ename == "ReviewStopped"
    assert raised.value.evalue.startswith("The plan absent.plan can not be read: No such file or directory.")
    assert "Name the plan file" in raised.value.evalue
    assert "Traceback" not in raised.value.traceback and 'File "' not in raised.value.traceback
    shown = raised.value.traceback.rpartition("------------------")[2].strip()
    assert shown == f"ReviewStopped: {raised.value.evalue}"


def test_without_pandas_the_line_to_type_is_told(tmp_path):
    write_plan(golden_plan(), tmp_path / "cutover.plan")
    code = "import sys; sys.modules['pandas'] = None; from migrate.show import review; review.open_plan('cutover.plan')"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1 and "pip install 'mm2-migrate[notebook]'" in ran.stderr.splitlines()[-1]


def test_reviewing_needs_neither_broker_nor_spark():
    code = "import sys; from migrate.show import review, review_outcome, review_charts; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"pyspark", "py4j", "confluent_kafka"} & {name.split(".")[0] for name in ran.stdout.split()}


def test_a_name_in_a_table_stays_text():
    hostile = "<script>alert(1)</script>$x$"
    shown = review.groups_table(make_plan([make_row(hostile)])).to_html()
    assert "<script>" not in shown and "&lt;script&gt;" in shown


# After the cutover.


@pytest.fixture
def applied(tmp_path):
    made = plan(row("billing"), row("crm", decision=Decision.BLOCK), row("shipping", partition=1))
    path = tmp_path / "cutover.plan"
    write_plan(made, path)
    add_signature(
        signatures_path(path, made.fingerprint), signature_of(made, "Ada", "read", "2026-11-21T02:00:00.000Z")
    )
    target, source = clusters(made)
    journal = Journal(journal_path(path, made.fingerprint), made.fingerprint, FakeClock().now_ms)
    options = ApplyOptions(execute=True, allow_partial=True)
    assert apply_plan(made, target, source, journal, FakeClock(), NoProgress(), options).exit_code == 4
    found = verify(made, target, NoProgress())
    lines = verify_document(found, made, None)
    (tmp_path / "verification.json").write_text("\n".join(lines))
    return path, made


def test_the_second_notebook_tells_what_was_done_and_found(applied):
    path, made = applied
    notebook = run("after_cutover.ipynb", path.parent, VERIFICATION="verification.json")
    tables = [Tables(text).rows for text in outputs(notebook, "text/html")]
    standings = {r[0]: r[1] for r in tables[1][1:]}
    assert standings == {"moved": "2", "uncertain": "0", "undone": "0", "left": "1", "as-it-is": "0"}
    assert any("Ada" in cell for rows in tables for r in rows for cell in r)
    rows = outcome.outcome_table(outcome.open_wave(path, made))
    assert list(rows["answer"]) == ["set", "set"] and list(rows["group_is"]) == ["moved", "moved"]
    unwritten = outcome.not_written_table(path.parent / "verification.json", made)
    assert list(zip(unwritten["group"], unwritten["why"], strict=True)) == [("crm", "blocked")]
    assert list(outcome.verification_table(path.parent / "verification.json", made)["standing"]) == ["equal", "equal"]
    assert set(outcome.events_table(path, made)["event"]) >= {"begin", "backup", "intent", "outcome", "readback", "end"}


def test_a_plan_without_a_journal_and_a_verification_of_another_plan_are_one_line(tmp_path, applied):
    _, made = applied
    other = make_plan([make_row()])
    write_plan(other, tmp_path / "other.plan")
    with pytest.raises(review.ReviewStopped, match="There is no journal"):
        outcome.open_wave(tmp_path / "other.plan", other)
    with pytest.raises(review.ReviewStopped, match="is of plan"):
        outcome.verification_table(tmp_path / "verification.json", other)
    with pytest.raises(review.ReviewStopped, match="is not what"):
        outcome.verification_table(tmp_path / "cutover.plan", made)


def test_what_an_undo_plan_took_back_is_undone_here_too(applied):
    path, made = applied
    target, _ = clusters(made)
    log = Journal(journal_path(path, made.fingerprint), made.fingerprint, FakeClock().now_ms)
    undo = undo_plan(made, log.read(), 0, "0.1.0")
    own = Journal(journal_path(path.with_name("undo.plan"), undo.fingerprint), undo.fingerprint, FakeClock().now_ms)
    for planned in made.rows:
        if planned.decision is Decision.SET and planned.target_offset is not None:
            target.commit(planned.group, planned.target_topic, planned.partition, planned.target_offset)
    done = apply_plan(undo, target, None, own, FakeClock(), NoProgress(), ApplyOptions(execute=True), spends=log)
    assert done.exit_code == 0
    wave = outcome.open_wave(path, made)
    assert outcome.standings_table(wave)["groups"].to_dict() == {
        "moved": 0, "uncertain": 0, "undone": 2, "left": 1, "as-it-is": 0,
    }  # fmt: skip
    assert list(outcome.outcome_table(wave)["undone"]) == ["removed", "removed"]
