"""What a watch says of the time left; whole screens are in `tests/unit/plan`: `test_status.py`, `test_watch.py`."""

import pytest

from migrate.plan.watch import Pace, TimeLeft
from migrate.show.status import late_text, left_text
from migrate.survey.drain import Lag
from migrate.watch import Freshness, Waiting


@pytest.mark.parametrize(("lag", "left", "said"), [
    (Lag(0, True), TimeLeft(Pace.TOO_EARLY), "everything is copied"),
    (Lag(None, False), TimeLeft(Pace.TOO_EARLY), "an unknown number of records left"),
    (Lag(1, True), TimeLeft(Pace.STALLED), "1 record left: nothing is being copied: restart MM2, or your replicator"),
    (Lag(90, False), TimeLeft(Pace.GROWING), "about 90 records left: producers are faster than MM2"),
])  # fmt: skip
def test_why_nobody_can_tell_how_long_is_said(lag, left, said):
    assert left_text(left, lag) == said


def test_who_does_not_answer_is_said_escaped_and_since_when():
    freshness = Freshness(problem="it\x1b failed", waiting=Waiting("log ends of A", 75.0))
    assert late_text(freshness) == r"it\x1b failed NO ANSWER for 75 s: log ends of A"
    assert late_text(Freshness()) == ""
