"""Checks whose subject is one committed offset."""

from migrate.match.protocol import Unmatched, WhyUnmatched
from migrate.mm2.flow import ANY
from migrate.model import Commit, Level, LogRange
from tests.unit.checkscene import found, levels, row, waiving

LIMITED = {"answer": Unmatched(WhyUnmatched.MATCH_LIMIT)}


def test_a_rewind_an_offset_of_another_log_and_a_commit_beyond_the_log_end_are_named_by_row():
    rows = (row("g", "t", prior=Commit(90)), row("h", "u", commit=Commit(101)), row("k", "u", prior=Commit(4100)))
    for check, subject, way in (
        ("rewind", "g/t/0", "--rewind keep"),
        ("commit-beyond-log-end", "h/u/0", "--untranslatable commit-beyond-log-end=earliest"),
        ("inside-target-log", "k/u/0", "--rewind set"),
    ):
        (block,) = found(check, rows)
        assert (block.level, block.subject) == (Level.BLOCK, subject) and way in block.todo


def test_metadata_that_brokers_refuse_by_default_blocks_until_somebody_has_raised_their_limit():
    # Java counts UTF-16 units: 2,048 characters beyond the first plane are 4,096.
    fits, too_long = ((row(commit=Commit(50, text)),) for text in ("x" * 4096, "\U0001f600" * 2049))
    assert not found("metadata-too-long", fits)
    (block,) = found("metadata-too-long", too_long)
    assert (block.level, block.seen) == (Level.BLOCK, "4,098 characters")
    assert found("metadata-too-long", too_long, **waiving("metadata-too-long"))[0].accepted


def test_a_row_that_the_targets_retention_has_moved_is_named_where_nothing_was_compared():
    late = row("g", "t", target_log=LogRange(70, 100))
    assert levels("target-retention", (late,)) == {"g/t/0": Level.WARN}
    assert not found("target-retention", (late._replace(missing_on_target=0),))
    assert not found("target-retention")


def test_estimated_rows_are_counted_by_what_kept_them_from_being_compared_apart_from_those_at_the_log_start():
    rows = (row("g", "t", **LIMITED), row("h", "u"), row("h", "t", **LIMITED))
    reasons = "2 match-limit, 1 not-compared"
    assert found("estimated-rows", rows)[0].seen == f"3 rows rest on MM2's syncs alone: {reasons}"
    # Another replicator writes none.
    assert found("estimated-rows", rows, replicator=ANY)[0].seen == f"3 rows rest on no record: {reasons}"
    at_start = [each._replace(lower_kind="log-start") for each in rows[1:]]
    assert [result.seen for result in found("estimated-rows", (rows[0], *at_start))] == [
        "1 row rests on MM2's syncs alone: 1 match-limit",
        "2 rows rest on no record: 1 match-limit, 1 not-compared",
    ]
