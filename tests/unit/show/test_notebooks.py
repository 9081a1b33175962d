"""The notebooks: run from a clean kernel on files alone, stored without outputs, and their numbers are `show`'s."""

import json
import re
import subprocess
import sys

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from migrate.model import Decision, Row
from migrate.plan.file import write_plan
from migrate.plan.totals import totals
from migrate.show import review
from migrate.show.aftermath import Aftermath
from migrate.show.report_page import report
from tests.builders import make_plan, make_row
from tests.notebooks import NOTEBOOKS, Tables, facts, outputs, run
from tests.unit.goldenplan import golden_plan
from tests.unit.pages import render, squeezed

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


def test_a_name_in_a_table_stays_text():
    hostile = "<script>alert(1)</script>$x$"
    shown = review.groups_table(make_plan([make_row(hostile)])).to_html()
    assert "<script>" not in shown and "&lt;script&gt;" in shown
