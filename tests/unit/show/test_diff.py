"""Differences as text and as JSON: what was decided otherwise row by row, what only moved added up."""

import json

from migrate.model import Decision
from migrate.plan.diff import diff
from migrate.show.diff import diff_document, diff_lines
from tests.builders import make_plan, make_row

BEFORE = make_plan([make_row("kept", target_offset=600), make_row("moved", target_offset=600), make_row("gone")])
NOW = make_plan([make_row("kept", target_offset=600, decision=Decision.KEEP), make_row("moved", target_offset=610)])


def test_each_difference_stands_under_its_heading_and_only_there():
    told = "\n".join(diff_lines(diff(BEFORE, NOW), ("before.plan", "now.plan"), 100))
    order = [told.index(text) for text in ("DECIDED OTHERWISE", "kept", "ROWS THAT ARE GONE", "gone", "moved")]
    assert order[:2] == sorted(order[:2]) and "planned +10" in told and "NEW ROWS" not in told


def test_the_document_names_the_fields_that_differ():
    document = json.loads("".join(diff_document(diff(BEFORE, NOW))))
    changes = {change["group"]: change["fields"] for change in document["changed"]}
    assert changes["kept"]["decision"] == {"before": "set", "now": "keep"}
    assert changes["moved"]["target_offset"] == {"before": 600, "now": 610}
    assert [row["group"] for row in document["gone"]] == ["gone"]
