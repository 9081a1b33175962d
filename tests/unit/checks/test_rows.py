"""Checks whose subject is one committed offset."""

from migrate.match.protocol import Unmatched, WhyUnmatched
from migrate.mm2.flow import ANY
from migrate.model import Commit, Level, LogRange
from migrate.survey.policies import Policies, Waiver
from tests.unit.checkscene import found, levels, row


def test_a_rewind_and_a_commit_beyond_the_log_end_are_named_by_row():
    rows = (row("g", "t", prior=Commit(90)), row("h", "u", commit=Commit(101)))
    assert levels("rewind", rows=rows) == {"g/t/0": Level.BLOCK}
    assert levels("commit-beyond-log-end", rows=rows) == {"h/u/0": Level.BLOCK}


def test_metadata_that_brokers_refuse_by_default_blocks_until_somebody_has_raised_their_limit():
    # Java counts UTF-16 units: 2,048 characters beyond the first plane are 4,096.
    fits, too_long = Commit(50, "x" * 4096), Commit(50, "\U0001f600" * 2049)
    assert not found("metadata-too-long", rows=(row("g", "t", 0, commit=fits),))
    rows = (row("g", "t", 0, commit=too_long),)
    block = found("metadata-too-long", rows=rows)[0]
    assert (block.level, block.seen) == (Level.BLOCK, "4,098 characters")
    assert found("metadata-too-long", rows, policies=Policies(waivers=(Waiver("metadata-too-long", None),)))[0].accepted


def test_a_row_that_the_targets_retention_has_moved_is_named_where_nothing_was_compared():
    late = row("g", "t", target_log=LogRange(70, 100))
    assert levels("target-retention", rows=(late,)) == {"g/t/0": Level.WARN}
    assert not found("target-retention", rows=(late._replace(missing_on_target=0),))
    assert not found("target-retention")


def test_estimated_rows_are_counted_by_what_kept_them_from_being_compared():
    rows = (
        row("g", "t", answer=Unmatched(WhyUnmatched.MATCH_LIMIT)),
        row("h", "u"),
        row("h", "t", answer=Unmatched(WhyUnmatched.MATCH_LIMIT)),
    )
    reasons = "2 match-limit, 1 not-compared"
    assert found("estimated-rows", rows)[0].seen == f"3 rows rest on MM2's syncs alone: {reasons}"
    # Another replicator writes none.
    assert found("estimated-rows", rows, replicator=ANY)[0].seen == f"3 rows rest on no record: {reasons}"


def test_estimated_rows_at_the_targets_log_start_are_told_apart_from_those_that_rest_on_syncs():
    rows = (
        row("g", "t", answer=Unmatched(WhyUnmatched.MATCH_LIMIT)),
        row("h", "t", answer=Unmatched(WhyUnmatched.MATCH_LIMIT))._replace(lower_kind="log-start"),
        row("h", "u")._replace(lower_kind="log-start"),
    )
    assert [result.seen for result in found("estimated-rows", rows)] == [
        "1 row rests on MM2's syncs alone: 1 match-limit",
        "2 rows rest on no record: 1 match-limit, 1 not-compared",
    ]
