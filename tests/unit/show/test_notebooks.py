"""The notebooks, their tables and charts: run from a clean kernel, stored without outputs, their numbers `show`'s."""

import json
import re
import subprocess
import sys

import nbformat
import pytest
from matplotlib import pyplot
from nbclient.exceptions import CellExecutionError

from migrate.apply.signatures import add_signature, signature_of, signatures_path
from migrate.apply.verify import verify
from migrate.model import Decision, Grade, Row
from migrate.plan.file import write_plan
from migrate.plan.totals import totals
from migrate.show import review
from migrate.show import review_outcome as outcome
from migrate.show.aftermath import Aftermath
from migrate.show.charts import chart_of, lag_bars, rereads_bars
from migrate.show.report_page import report
from migrate.show.review import ReviewStopped
from migrate.show.review_charts import grades_chart, lag_chart, places_chart, rereads_chart
from migrate.show.verify import verify_document
from tests.builders import make_plan, make_row, make_untranslated
from tests.fakes import NoProgress
from tests.notebooks import NOTEBOOKS, Tables, facts, outputs, run
from tests.unit.applyscene import Scene
from tests.unit.goldenplan import golden_plan
from tests.unit.pages import render, squeezed
from tests.unit.plans import plan, row

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.name)
def test_a_notebook_is_stored_valid_without_outputs_and_has_a_parameter_cell(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    named = 'HISTORY = "history.parquet"' if path.name == "inventory.ipynb" else 'PLAN = "cutover.plan"'
    assert named in "".join(cell.source for cell in code)


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


def test_the_review_runs_from_a_clean_kernel_draws_its_charts_and_compares(reviewed):
    made, notebook = reviewed
    rows = [row for text in outputs(notebook, "text/html") for row in Tables(text).rows]
    assert ["20", "gone", "long-gone", "orders", "0", "set 650 (translated, estimated)", "", "<NA>", "<NA>"] in rows
    assert len(outputs(notebook, "image/png")) == 4
    assert outputs(notebook, "print") == [review.next_commands(made, "cutover.plan") + "\n"]
    assert made.fingerprint in outputs(notebook, "print")[0]


def test_the_notebooks_head_says_what_the_table_and_the_report_say(reviewed):
    made, notebook = reviewed
    table = "\n".join(render(made, "table", "cutover.plan", width=2000))
    told, page, sums = facts(notebook), squeezed(report(made, "cutover.plan", Aftermath())[0]), totals(made)
    assert told.pop("Verdict") == f"{table.splitlines()[0]}; no journal beside this file"
    assert told.pop("Signatures") == "0, none is required"
    for label, text in filter(all, told.items()):
        assert re.search(rf"^{label} +{re.escape(text)}$", table, re.M), label
    for label in ("Commits", "Rows", "Groups", "Re-reads", "MM2 itself"):
        assert told[label] in page, label
    assert told["Re-reads"].startswith(f"at most {sums.rereads_bounded} records on {sums.bounded_rows} rows")
    assert f"re-read {sums.mm2.behind_records} records more on {sums.mm2.behind_rows} rows" in told["MM2 itself"]


def test_the_tables_add_up_to_the_totals_and_their_rows_are_those_of_json():
    made = golden_plan()
    counted, rows = totals(made), review.rows_table(made)
    document = json.loads("\n".join(render(made, "json", "cutover.plan")))
    missing = review.extra_module("pandas").NA
    for column in Row._fields:
        values = [None if value is missing or value != value else value for value in rows[column]]
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
    may_cost_data = {"kept-ahead", "left-alone", "live-on-target", "no-check-tells", "orders-service", "payments",
                     "reset-to-latest", "streams-app"}  # fmt: skip
    assert set(list(review.outliers(made, 100)["group"])[:5]) <= may_cost_data


@pytest.mark.parametrize("name", ["review_plan.ipynb", "after_cutover.ipynb"])
def test_a_missing_plan_is_one_clear_line(name, tmp_path):
    with pytest.raises(CellExecutionError) as raised:
        run(name, tmp_path, PLAN="absent.plan")
    line, shown = raised.value.evalue, raised.value.traceback
    assert line.startswith("The plan absent.plan cannot be read: No such file or directory.")
    assert "Name the plan file" in line and "Traceback" not in shown and 'File "' not in shown
    assert shown.rpartition("------------------")[2].strip() == f"ReviewStopped: {line}"


def test_without_pandas_the_line_to_type_is_told(tmp_path):
    write_plan(golden_plan(), tmp_path / "cutover.plan")
    code = "import sys; sys.modules['pandas'] = None; from migrate.show import review; review.open_plan('cutover.plan')"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1 and "pip install -c constraints.txt '.[notebook]'" in ran.stderr.splitlines()[-1]


def test_a_name_stays_text_in_a_table_and_a_dollar_sign_in_it_begins_no_formula_in_a_chart():
    plan = make_plan([make_row("<script>$x$")])
    shown = review.groups_table(plan).to_html()
    assert "<script>" not in shown and "&lt;script&gt;" in shown
    (axes,) = lag_chart(plan).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [r"<script>\$x\$"]


def test_every_table_of_an_empty_plan_has_its_columns_and_no_line():
    empty = make_plan()
    for table in (review.rows_table, review.groups_table, review.attention_table, review.checks_table):
        made = table(empty)
        assert len(made) == 0 and len(made.columns) > 5


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


def test_a_plan_of_rules_and_a_partition_without_rows_are_nothing_to_review(tmp_path):
    write_plan(make_plan([], kind="rules"), tmp_path / "m.plan")
    with pytest.raises(ReviewStopped, match="holds rules"):
        review.open_plan(tmp_path / "m.plan")
    with pytest.raises(ReviewStopped, match="orders:0"):
        places_chart(make_plan([make_row()]), "orders", 9)


@pytest.fixture
def applied(tmp_path) -> Scene:
    rows = row("billing"), row("crm", decision=Decision.BLOCK), row("shipping", partition=1)
    scene = Scene(plan(*rows), tmp_path)
    made, path = scene.plan, scene.path
    write_plan(made, path)
    signature = signature_of(made.fingerprint, "Ada", "read", "2026-11-21T02:00:00.000Z")
    add_signature(signatures_path(path, made.fingerprint), signature)
    assert scene.apply(allow_partial=True).exit_code == 4
    lines = verify_document(verify(made, scene.target, NoProgress()), made, None, scene.clock.now_ms())
    (tmp_path / "verification.json").write_text("\n".join(lines))
    return scene


def test_the_second_notebook_tells_what_was_done_and_found(applied):
    path, made = applied.path, applied.plan
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
    made = applied.plan
    other = make_plan([make_row()])
    with pytest.raises(ReviewStopped, match="There is no journal"):
        outcome.open_wave(tmp_path / "other.plan", other)
    for file, of, said in (("verification.json", other, "verifies plan"), ("cutover.plan", made, "is not what")):
        with pytest.raises(ReviewStopped, match=said):
            outcome.verification_table(tmp_path / file, of)


def test_what_an_undo_plan_took_back_is_undone_here_too(applied):
    applied.clock.wait(60.0)
    undo = Scene(applied.undo(), applied.folder, applied.clock, name="undo.plan")
    assert undo.apply(spends=applied.journal).exit_code == 0
    path, made = applied.path, applied.plan
    wave = outcome.open_wave(path, made)
    assert outcome.standings_table(wave)["groups"].to_dict() == {
        "moved": 0, "uncertain": 0, "undone": 2, "left": 1, "as-it-is": 0,
    }  # fmt: skip
    rows = outcome.outcome_table(wave)
    assert list(rows["group_is"]) == ["undone", "undone"] and not any(rows["as_planned"])
    verdict = outcome.verification_verdict(path.parent / "verification.json", path, made)
    assert verdict.startswith("VERIFIED BEFORE OR AMID THE LAST APPLY OF AN UNDO PLAN")


def test_bars_are_the_longest_first_equal_ones_by_name_and_without_a_number_where_nobody_tells_one():
    rows = [make_row(g, source_committed=90, source_log_end=90 + n) for g, n in (("b", 1), ("c", 5), ("a", 1))]
    bars = lag_bars(make_plan([*rows, make_row("unknown", source_log_end=None)]).groups())
    assert [(bar.group, bar.own) for bar in bars] == [("unknown", None), ("c", 5), ("a", 1), ("b", 1)]
    assert bars[0].total == 0


def test_what_mm2_adds_lengthens_the_bar_and_what_it_leaves_out_is_noted():
    placed = make_row("g", target_offset=600, checkpoint_target_offset=560, rereads_at_most=3, grade=Grade.BOUNDED)
    without = make_row("g", partition=1, target_offset=600, checkpoint_target_offset=None)
    (bar,) = rereads_bars(make_plan([placed, without]).groups())
    assert bar.mm2_adds == 40 and bar.own is not None and bar.total == bar.own + 40
    assert bar.note == "no checkpoint for 1 row"


def test_a_chart_leaves_no_group_out():
    rows = [make_row(f"g{i:02}", rereads_estimate=i, target_offset=600) for i in range(10)]
    groups = make_plan([*rows, make_row("unknown", rereads_estimate=None, source_log_end=None)]).groups()
    for chart in (chart_of(rereads_bars(groups), 3, " by this plan", True), chart_of(lag_bars(groups), 3)):
        assert len(chart.bars) == 3 and chart.most == chart.bars[0].total
        assert "7 more groups" in chart.rest and "unknown for 1 group" in chart.rest


@pytest.fixture(autouse=True)
def closed():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def test_charts_have_the_reports_bars_from_the_bottom_up_count_those_beyond_the_limit_and_hold_every_row():
    bars = rereads_bars(golden_plan().groups())[::-1]
    (axes,) = rereads_chart(golden_plan()).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [bar.group for bar in bars]
    assert [patch.get_width() for patch in axes.patches] == [b.own or 0 for b in bars] + [b.mm2_adds for b in bars]
    (axes,) = lag_chart(golden_plan(), 3).axes
    assert len(axes.patches) == 3
    assert axes.get_title().endswith(f"(the 3 highest of {len(golden_plan().groups())})")
    (axes,) = grades_chart(golden_plan()).axes
    assert sum(patch.get_width() for patch in axes.patches) == len(golden_plan().rows)
