"""A verification as text and JSON: the worst first, what was left out never silent."""

import json

from migrate.apply.verify import Standing, Verification, VerifyFinding
from migrate.model import TopicPartition
from migrate.show.verify import ROWS_SHOWN, verdict, verify_document, verify_lines
from tests.builders import make_plan, make_row

PLAN = make_plan([make_row("g")])
PLACE = TopicPartition("A.orders", 0)
EQUAL = VerifyFinding(("g", "orders", 0), PLACE, 650, 650, Standing.EQUAL, "as planned")
BEHIND = next(s for s in Standing if not EQUAL._replace(standing=s).is_good)
LEFT_OUT = VerifyFinding(("h", "orders", 0), PLACE, None, None, Standing.BLOCKED, "its block", reason="drained")


def test_only_what_is_whole_is_verified_without_a_but():
    assert verdict(Verification((EQUAL,)))[0] == "VERIFIED: 1 offset of 1 group"
    assert verdict(Verification((EQUAL,), not_written=(LEFT_OUT,)))[0].endswith("BUT 1 row of 1 group was not written")
    assert verdict(Verification((), not_written=(LEFT_OUT,)))[0].startswith("NOTHING VERIFIED: 1 row")
    assert verdict(Verification(()))[0].startswith("NOTHING TO VERIFY")


def test_rows_beyond_what_is_shown_are_counted_with_where_they_are():
    found = Verification((EQUAL._replace(standing=BEHIND),) * (ROWS_SHOWN + 5))
    told = "\n".join(verify_lines(found, PLAN, 100, False))
    assert told.startswith("NOT AS PLANNED") and "and 5 more; --format json has every row" in told


def test_the_document_has_what_was_compared_and_what_was_not():
    document = json.loads("".join(verify_document(Verification((EQUAL,), not_written=(LEFT_OUT,)), PLAN, None, 0)))
    assert document["offsets"] == [
        {"group": "g", "target_group": "", "target_topic": "A.orders", "partition": 0, "expected": 650, "seen": 650,
         "standing": "equal", "sentence": "as planned", "journal": ""},
    ]  # fmt: skip
    assert (document["time"], document["rows_looked_at"]) == ("1970-01-01T00:00:00.000Z", 2)
    assert document["left_out"][0]["why"] == "blocked" and "records" not in document
