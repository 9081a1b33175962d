"""What the page's script draws: exact numbers, harmless JSON, charts that leave no group out."""

import json

from hypothesis import given
from hypothesis import strategies as st

from migrate.plan.plan import PlannedActivity
from migrate.show.aftermath import Aftermath
from migrate.show.report_data import GAP, as_json, report_data, split_sentence
from tests.builders import make_plan, make_row


@given(st.text(alphabet=st.characters(exclude_characters=GAP)))
def test_a_sentence_is_its_wording_and_its_numbers(text):
    wording, numbers = split_sentence(text)
    gaps = [*map(str, numbers), ""]
    assert "".join(a + b for a, b in zip(wording.split(GAP), gaps, strict=True)) == text


@given(st.text())
def test_json_in_a_script_can_not_end_it_and_is_the_same_value(text):
    made = as_json({"x": text})
    assert not set(made) & set("<>&") and made.isascii() and json.loads(made) == {"x": text}


def test_offsets_that_javascript_would_round_are_text():
    plan = make_plan([make_row(source_committed=2**53 + 1, source_log_end=2**60)])
    assert f'"{2**53 + 1}"' in report_data(plan, Aftermath(), "p", 10).groups[0]


def test_how_long_a_group_was_idle_is_in_the_page_where_its_records_told_it():
    activity = (PlannedActivity("g", 1_700_000_000_000, None, None),)
    plan = make_plan([make_row("g"), make_row("h")], activity=activity, created_at_ms=1_700_000_061_500)
    page = report_data(plan, Aftermath(), "c.plan", 10).page
    g, h = page["groups"]
    assert page["activity"] and (g["idle"], h["idle"], h["activity"]) == (62, None, "")
    assert g["activity"].startswith("last commit 2023-11-14T22:13:20.000Z, 62 s before")
    assert not report_data(make_plan([make_row("g")]), Aftermath(), "c.plan", 10).page["activity"]
