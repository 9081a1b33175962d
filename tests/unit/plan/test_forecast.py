"""What a rehearsal says of the night."""

from dataclasses import replace

import pytest

from migrate.model import Decision
from migrate.plan.totals import forecast
from migrate.text import duration_text
from tests.builders import make_plan, make_row, make_untranslated
from tests.unit.pages import render

TIMINGS = {"reach": 1.0, "commits": 2.0, "states": 2.0, "pin": 1.0, "compare": 60.0, "settle": 15.0}


def test_plan_takes_what_it_took_and_the_others_what_they_read_again_and_write():
    told = forecast(make_plan([make_row()], timings=TIMINGS))
    assert told is not None
    assert (told.plan_seconds, told.apply_seconds, told.verify_seconds) == (82.0, 14.0, 4.0)
    assert replace(told, offsets=1000).text == "plan about 82 s, apply about 14 s, verify about 4 s"


def test_of_a_small_plan_only_what_plan_took_is_said_for_what_the_others_take_its_timings_do_not_tell():
    told = forecast(make_plan([make_row()], timings=TIMINGS))
    assert told is not None and told.text == "plan about 82 s"


def test_rows_that_are_blocked_in_a_rehearsal_are_written_on_the_night():
    rows = [
        make_row("a"),
        make_row("b", decision=Decision.BLOCK, reason="source-group-stopped"),
        make_row("c", decision=Decision.KEEP, reason="already-there"),
        make_untranslated(Decision.BLOCK, "target-topic-missing", "d"),
    ]
    told = forecast(make_plan(rows, timings=TIMINGS))
    assert told is not None and (told.offsets, told.groups) == (2, 2)


def test_an_undo_has_no_timings_and_no_forecast():
    assert forecast(make_plan([make_row()], timings={})) is None


def test_show_says_it():
    text = "\n".join(render(make_plan([make_row()], timings=TIMINGS), "table", "x.plan", width=200))
    assert "Forecast     plan about 82 s: by the timings of this plan" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"), (0.4, "0 s"), (99.4, "99 s"), (100, "1 min 40 s"), (600, "10 min"), (3599, "59 min"),
        (6000, "1 h 40 min"), (7200, "2 h"), (172800, "2 d"), (190000, "2 d 4 h"),
    ],
)  # fmt: skip
def test_spans_of_time_are_told_in_two_units_at_most(seconds, text):
    assert duration_text(seconds) == text
