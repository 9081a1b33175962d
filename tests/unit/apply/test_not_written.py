"""What was not to be written, and in what words a journal tells of a row."""

from dataclasses import replace
from typing import Any

import pytest

from migrate.apply.history import SET, GroupTrace, JournalState
from migrate.apply.not_written import WORDS, Noted, WhyNotWritten, blocks_without_rows, by_plan, left_out, noted
from migrate.model import Decision, Level, Scope, TopicPartition
from tests.builders import make_check
from tests.unit.plans import plan, row

P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)


def journal(result: str = SET, read_back: bool | None = True, **changes: Any) -> JournalState:
    """A journal that tells of one write to partition 0 of group g."""
    trace = GroupTrace({P0: 60}, {P0: result}, read_back)
    return JournalState(**({"prior": {"g": {}}, "applied": {"g": trace}, "events": 5} | changes))


def test_a_row_that_was_there_already_when_its_group_was_read_back_counts_as_read_back() -> None:
    trace = GroupTrace({P1: 61}, {P1: SET}, True)
    assert noted(row("g"), journal(applied={"g": trace})) is Noted.READ_BACK
    assert noted(row("g"), journal(applied={"g": replace(trace, read_back=None)})) is Noted.NO_WRITE


@pytest.mark.parametrize(
    ("scope", "subject", "shown"),
    [
        (Scope.GROUP, "b", True),
        (Scope.GROUP, "g", False),
        (Scope.TOPIC, "orders", True),
        (Scope.TOPIC, "bills", False),
        (Scope.ROW, "b/orders/0", True),
        (Scope.CLUSTER, "A", True),
    ],
)
def test_a_block_is_said_once_by_its_rows_or_by_itself(scope: Scope, subject: str, shown: bool) -> None:
    block = make_check("some-check", subject, scope=scope)
    waived = replace(block, accepted=True, level=Level.WARN, counts_as=Level.WARN)
    made = plan(row("g"), row("b", decision=Decision.BLOCK, reason="some-check"), checks=(block, waived))
    assert (blocks_without_rows(made) == ()) is shown


def test_what_the_plan_writes_or_keeps_is_not_called_not_written() -> None:
    for decision in (Decision.SET, Decision.REMOVE, Decision.KEEP):
        assert by_plan(row("g", decision=decision)) is None


def test_what_the_plan_blocks_or_skips_is_named_with_the_plans_reason() -> None:
    for decision, why in ((Decision.BLOCK, WhyNotWritten.BLOCKED), (Decision.SKIP, WhyNotWritten.SKIPPED)):
        unwritten = by_plan(row("g", decision=decision, reason="some-check", sentence="Because."))
        assert unwritten is not None and unwritten.group == "g"
        assert (unwritten.why, unwritten.reason, unwritten.sentence) == (why, "some-check", "Because.")


def test_a_row_that_is_kept_or_whose_plan_has_no_journal_has_no_word_of_it() -> None:
    assert noted(row("g", decision=Decision.KEEP), journal()) is Noted.NOTHING
    assert noted(row("g"), JournalState()) is Noted.NOTHING


def test_every_word_of_a_journal_can_be_said() -> None:
    assert WORDS.keys() == set(Noted)


def test_a_row_that_apply_left_out_says_where_it_still_is() -> None:
    assert left_out(row("g"), 10).sentence == "the journal tells of no write to it: it is at 10, as before"
    assert left_out(row("g"), None).sentence.endswith("it has no committed offset, as before")
