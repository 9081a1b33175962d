"""What people read of an audit, on a screen and as a page, and what programs do."""

import json
import re
from dataclasses import replace

import pytest

from migrate.extras.audit.report import BARS, missing_by_time
from migrate.extras.audit.state import named_file, opened_state
from migrate.extras.audit.text import document_of, result_lines
from migrate.extras.audit.verdict import Category, Named, TopicAudit, Verdict
from migrate.match.equality import Equality
from tests.unit.commands import run

T = 1_767_225_600_000
HOUR_MS = 3_600_000
COMPLETE = TopicAudit("paid", "A.paid", Equality.ALL, {Category.COPIED: 1_200, Category.COPIED_AGAIN: 2})
LOST = [Named(Category.MISSING, 3, o, T + o * HOUR_MS) for o in (*range(9), 99)]
SHORT = TopicAudit(
    "<b>orders", "A.orders", Equality.WITHOUT_HEADERS,
    {Category.COPIED: 5, Category.MISSING: 12, Category.NOT_COPIED_YET: 1}, tuple(LOST), (T, T + 99 * HOUR_MS),
)  # fmt: skip
OPEN = TopicAudit("new", "A.new", None, unproven=("there is no topic A.new on B",))


def document(*audits, left_out=(), **more):
    return json.loads(json.dumps(document_of(audits, left_out, "A", "B", T, more or None)))


def lines(*audits, **more):
    return list(result_lines(document(*audits, **more), 120, False))


@pytest.fixture
def kept(tmp_path):
    """Keep a run of these audits, or one that has not ended."""

    def keep(*audits):
        with opened_state(tmp_path / "s", ("A", "B")) as state:
            if audits:
                with named_file(state.folder) as found:
                    found.take(SHORT.topic, LOST)
                state.end(document(*audits, left_out=["secret"]))
        return tmp_path / "s"

    return keep


def report(folder):
    page = folder.parent / "page.html"
    ran = run("audit", "report", str(folder), "--out", str(page))
    return ran, page.read_text() if page.exists() else ""


def test_the_first_line_is_the_verdict_and_what_it_rests_on():
    assert lines(COMPLETE)[0] == "COMPLETE: 1,200 records of 1 topic have their copies"
    said = "INCOMPLETE: 12 records of <b>orders, from 2026-01-01T00:00:00.000Z to 2026-01-05T03:00:00.000Z"
    assert lines(COMPLETE, SHORT, OPEN)[0] == said
    assert lines(COMPLETE, OPEN)[0] == "NOT PROVEN: new: there is no topic A.new on B"
    assert lines()[0].startswith("NOT PROVEN: no topic")


def test_every_topic_has_its_counts_and_what_it_lacks():
    page = "\n".join(lines(COMPLETE, SHORT, OPEN, left_out=["secret"]))
    for said in (
        "0  2 copied again", "compared by timestamp, key and value", "1 not copied yet",
        "3:0 (2026-01-01T00:00:00.000Z), 3:1", " and 2 more",
        "Not looked at: 1 topic that the replicator's filter or naming leaves out (secret)",
    ):  # fmt: skip
        assert said in page


def test_of_a_plan_it_is_said_which_groups_find_what_they_are_owed_and_which_miss_what():
    lack = {"topic": "orders", "partition": 3, "category": "missing", "records": 2}
    short = {"group": "billing", "verdict": "INCOMPLETE", "not_proven_topics": []}
    short["lacks"] = [lack | {"first_offset": 5, "last_offset": 9}]
    open_ = {"group": "crm", "verdict": "NOT PROVEN", "lacks": [], "not_proven_topics": ["new"]}
    plan = {"fingerprint": "13b530444374" + "0" * 52, "groups": 7, "open": [short, open_]}
    page = lines(SHORT, OPEN, plan=plan)
    assert page[2] == "Plan 13b530444374, 7 groups: 5 COMPLETE, 1 INCOMPLETE, 1 NOT PROVEN"
    assert page[-5:] == [
        "billing: INCOMPLETE",
        "    2 records of orders-3 missing between offsets 5 and 9",
        "",
        "crm: NOT PROVEN",
        "    not proven: new",
    ]
    whole = lines(COMPLETE, plan=plan | {"open": []})
    assert whole[2] == "Plan 13b530444374: all that its 7 groups are owed is there"


def test_what_was_too_old_to_be_looked_at_and_whether_copies_are_in_order_is_said_where_it_was_asked():
    since = "Records since 2025-12-31T23:59:59.999Z alone: older ones were not looked at"
    assert lines(COMPLETE, since_ms=T - 1)[2] == since
    assert lines(COMPLETE, order_looked_at=True)[2] == "No copy was seen out of order"
    late = replace(COMPLETE, counts={**COMPLETE.counts, Category.OUT_OF_ORDER: 3})
    assert late.verdict is Verdict.COMPLETE and lines(late, order_looked_at=True)[2] == "Out of order: 3 records"


@pytest.mark.parametrize(("audits", "code"), [((COMPLETE,), 0), ((SHORT,), 1), ((OPEN,), 4)])
def test_show_prints_the_last_run_and_exits_as_it_did(kept, audits, code):
    folder = kept(*audits)
    printed = run("audit", "show", str(folder))
    assert printed.exit_code == code and "As of 2026-01-01T00:00:00.000Z: A to B" in printed.stdout
    assert json.loads(run("audit", "show", str(folder), "--format", "json").stdout) == document(
        *audits, left_out=["secret"]
    )


def test_a_folder_without_a_run_that_ended_says_so_and_has_no_page(kept):
    folder = kept()
    ran, page = report(folder)
    assert not page
    for printed in (run("audit", "show", str(folder)), ran):
        assert printed.exit_code == 2 and "has ended yet" in printed.stderr


def test_on_the_page_topics_stand_by_verdict_say_what_they_lack_and_no_name_is_obeyed(kept):
    ran, page = report(kept(COMPLETE, OPEN, SHORT))
    assert ran.exit_code == 0 and "INCOMPLETE: 12 records of" in ran.stdout
    body = page[page.index("<body>") :]
    assert re.findall(r'class="group">(?:<a [^>]*>)?([^<]*)', body) == ["&lt;b&gt;orders", "new", "paid"]
    assert "there is no topic A.new on B" in body and "1,200" in body and "secret: the replicator" in body
    assert "<b>orders" not in page and "script-src" in page and "Missing, by the records' own time" in body


def test_what_is_missing_is_counted_by_time():
    result = document(SHORT)
    named = [{"topic": SHORT.topic, "category": "missing", "time_ms": T + n * HOUR_MS} for n in (0, 0, 1, 99)]
    other = {"topic": SHORT.topic, "category": "foreign", "time_ms": T}
    bars = missing_by_time(result, [*named, other])[SHORT.topic]
    assert list(bars.values()) == [3, 1] and next(iter(bars)) == T
    assert max(bars) <= T + 99 * HOUR_MS < max(bars) + 99 * HOUR_MS // BARS + 1


def test_a_page_replaces_nothing_but_an_older_one_and_records_that_are_gone_are_not_shown_as_none(kept):
    folder = kept(SHORT)
    assert report(folder)[0].exit_code == 0 == report(folder)[0].exit_code
    page = folder.parent / "page.html"
    page.write_text("mine")
    ran, text = report(folder)
    assert ran.exit_code == 3 and text == "mine" and "refusing to overwrite" in ran.stderr
    page.unlink()
    (folder / "found.jsonl").unlink()
    ran, text = report(folder)
    assert ran.exit_code == 2 and "found.jsonl cannot be read" in ran.stderr and not text
