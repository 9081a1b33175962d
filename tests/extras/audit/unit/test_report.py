"""The page of an audit: topics by verdict, what is missing by time, and of a name nothing that a browser would obey."""

import json
import re

import pytest
from click.testing import CliRunner

from migrate.cli.main import cli
from migrate.extras.audit.report import BARS, audit_page, missing_by_time
from migrate.extras.audit.state import named_file, opened_state
from migrate.extras.audit.text import document_of
from migrate.extras.audit.verdict import Category, Named, TopicAudit
from migrate.match.equality import Equality

T = 1_767_225_600_000
HOUR_MS = 3_600_000
LOST = [Named(Category.MISSING, 0, n, T + n * HOUR_MS) for n in (0, 0, 1, 99)]
SHORT = TopicAudit(
    "<b>orders", "A.orders", Equality.ALL, {Category.COPIED: 5, Category.MISSING: 4}, tuple(LOST), (T, T + 99 * HOUR_MS)
)
AUDITS = (
    TopicAudit("paid", "A.paid", Equality.ALL, {Category.COPIED: 1_200}),
    TopicAudit("new", "A.new", None, unproven=("there is no topic A.new on B",)),
    SHORT,
)


@pytest.fixture
def folder(tmp_path):
    with opened_state(tmp_path / "s", ("A", "B")) as state:
        with named_file(state.folder) as found:
            found.take(SHORT.topic, LOST)
        state.end(document_of(AUDITS, ["secret"], "A", "B", T))
    return tmp_path / "s"


def written(folder, *options):
    page = folder.parent / "page.html"
    ran = CliRunner().invoke(cli, ["audit", "report", str(folder), "--out", str(page), *options])
    return ran, page.read_text() if page.exists() else ""


def test_topics_stand_by_verdict_and_each_says_what_it_lacks(folder):
    ran, page = written(folder)
    assert ran.exit_code == 0 and "INCOMPLETE: 4 records of" in ran.stdout
    body = page[page.index("<body>") :]
    assert re.findall(r'class="group">(?:<a [^>]*>)?([^<]*)', body) == ["&lt;b&gt;orders", "new", "paid"]
    assert "there is no topic A.new on B" in body and "1,200" in body and "secret: the replicator" in body
    assert "<b>orders" not in page and "script-src" in page


def test_what_is_missing_is_counted_by_time():
    result = json.loads(json.dumps(document_of(AUDITS, [], "A", "B", T)))
    named = [{"topic": SHORT.topic, "category": "missing", "time_ms": each.time_ms} for each in LOST]
    other = {"topic": SHORT.topic, "category": "foreign", "time_ms": T}
    bars = missing_by_time(result, [*named, other])[SHORT.topic]
    assert list(bars.values()) == [3, 1] and next(iter(bars)) == T
    assert max(bars) <= T + 99 * HOUR_MS < max(bars) + 99 * HOUR_MS // BARS + 1
    assert "Missing, by the records' own time" in audit_page(result, {SHORT.topic: bars})


def test_nothing_but_an_older_report_is_replaced(folder):
    assert written(folder)[0].exit_code == 0 == written(folder)[0].exit_code
    (folder.parent / "page.html").write_text("mine")
    ran, page = written(folder)
    assert ran.exit_code == 3 and page == "mine" and "refusing to overwrite" in ran.stderr


def test_a_folder_without_a_run_that_ended_has_no_page(tmp_path):
    with opened_state(tmp_path / "s", ("A", "B")):
        pass
    ran, page = written(tmp_path / "s")
    assert ran.exit_code == 2 and "has ended yet" in ran.stderr and not page


def test_records_that_are_named_and_gone_are_not_shown_as_none(folder):
    (folder / "found.jsonl").unlink()
    ran, page = written(folder)
    assert ran.exit_code == 2 and "found.jsonl cannot be read" in ran.stderr and not page
