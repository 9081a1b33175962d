"""What people read of an audit, and what programs do."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from migrate.cli.main import cli
from migrate.extras.audit.state import opened_state
from migrate.extras.audit.text import document_of, result_lines
from migrate.extras.audit.verdict import Category, Named, TopicAudit, Verdict
from migrate.match.equality import Equality

T = 1_767_225_600_000
COMPLETE = TopicAudit("paid", "A.paid", Equality.ALL, {Category.COPIED: 12, Category.COPIED_AGAIN: 2})
SHORT = TopicAudit(
    "orders",
    "A.orders",
    Equality.WITHOUT_HEADERS,
    {Category.COPIED: 5, Category.MISSING: 12, Category.NOT_COPIED_YET: 1},
    tuple(Named(Category.MISSING, 3, o, T + o) for o in range(10)),
    (T, T + 11),
)
OPEN = TopicAudit("new", "A.new", None, unproven=("there is no topic A.new on B",))


def lines(*audits, left_out=()):
    return list(result_lines(json.loads(json.dumps(document_of(audits, left_out, "A", "B", T))), 120, False))


def test_the_first_line_is_the_verdict_and_what_it_rests_on():
    assert lines(COMPLETE)[0] == "COMPLETE: 12 records of 1 topic have their copies"
    said = "INCOMPLETE: 12 records of orders, from 2026-01-01T00:00:00.000Z to 2026-01-01T00:00:00.011Z"
    assert lines(COMPLETE, SHORT, OPEN)[0] == said
    assert lines(COMPLETE, OPEN)[0] == "NOT PROVEN: new: there is no topic A.new on B"
    assert lines()[0].startswith("NOT PROVEN: no topic")


def test_every_topic_has_its_counts_and_what_it_lacks():
    page = "\n".join(lines(COMPLETE, SHORT, OPEN, left_out=["secret"]))
    assert "12        0  2 copied again" in page
    assert "compared by timestamp, key and value" in page and "1 not copied yet" in page
    assert "3:0 (2026-01-01T00:00:00.000Z), 3:1" in page and " and 2 more" in page
    assert "Not looked at: 1 topic that the replicator's filter or naming leaves out (secret)" in page


def test_of_a_plan_it_is_said_which_groups_find_what_they_are_owed_and_which_miss_what():
    lack = {"topic": "orders", "partition": 3, "category": "missing", "records": 2}
    short = {"group": "billing", "verdict": "INCOMPLETE", "not_proven_topics": []}
    short["lacks"] = [lack | {"first_offset": 5, "last_offset": 9}]
    open_ = {"group": "crm", "verdict": "NOT PROVEN", "lacks": [], "not_proven_topics": ["new"]}
    plan = {"fingerprint": "13b530444374" + "0" * 52, "groups": 7, "open": [short, open_]}
    page = list(result_lines(document_of([SHORT, OPEN], [], "A", "B", T, {"plan": plan}), 120, False))
    assert page[2] == "Plan 13b530444374, 7 groups: 5 COMPLETE, 1 INCOMPLETE, 1 NOT PROVEN"
    assert page[-5:] == [
        "billing: INCOMPLETE",
        "    2 records of orders-3 missing between offsets 5 and 9",
        "",
        "crm: NOT PROVEN",
        "    not proven: new",
    ]
    whole = list(result_lines(document_of([COMPLETE], [], "A", "B", T, {"plan": plan | {"open": []}}), 120, False))
    assert whole[2] == "Plan 13b530444374: all that its 7 groups are owed is there"


def test_what_was_too_old_to_be_looked_at_is_said():
    page = list(result_lines(document_of([COMPLETE], [], "A", "B", T, {"since_ms": T - 1}), 80, False))
    assert page[2] == "Records since 2025-12-31T23:59:59.999Z alone: older ones were not looked at"


def test_whether_copies_are_in_order_is_said_where_it_was_looked_at():
    def third_line(audit):
        return list(result_lines(document_of([audit], [], "A", "B", T, {"order_looked_at": True}), 80, False))[2]

    assert third_line(COMPLETE) == "No copy was seen out of order"
    late = replace(COMPLETE, counts={**COMPLETE.counts, Category.OUT_OF_ORDER: 3})
    assert late.verdict is Verdict.COMPLETE and third_line(late) == "Out of order: 3 records"


@pytest.mark.parametrize(("audits", "code"), [((COMPLETE,), 0), ((SHORT,), 1), ((OPEN,), 4)])
def test_show_prints_the_last_run_and_exits_as_it_did(tmp_path, audits, code):
    with opened_state(tmp_path / "s", ("A", "B")) as state:
        state.end(document_of(audits, [], "A", "B", T))
    printed = CliRunner().invoke(cli, ["audit", "show", str(tmp_path / "s")])
    assert printed.exit_code == code and "As of 2026-01-01T00:00:00.000Z: A to B" in printed.stdout
    document = json.loads(CliRunner().invoke(cli, ["audit", "show", str(tmp_path / "s"), "--format", "json"]).stdout)
    assert document == json.loads(json.dumps(state.result))


def test_a_folder_without_a_run_that_ended_says_so(tmp_path):
    with opened_state(tmp_path / "s", ("A", "B")):
        pass
    printed = CliRunner().invoke(cli, ["audit", "show", str(tmp_path / "s")])
    assert printed.exit_code == 2 and "has ended yet" in printed.stderr
