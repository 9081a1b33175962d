"""The runs that a journal tells of, for people: when each began and ended, what it read back, what failed."""

from pathlib import Path

from migrate.apply.history import APPLY, ROLLBACK, SET
from migrate.apply.past_runs import UNDONE, PastRuns, past_runs
from tests.unit.journals import DENIED, P0, P1, journal, one_group


def told(folder: Path) -> PastRuns:
    return past_runs(journal(folder).path.read_bytes())


def test_a_run_that_noted_its_end_has_its_exit_code_and_one_that_did_not_has_none(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {"source_not_seen": "A is gone."}) as writer:
        writer.end(4, {"set": 1, "failed": 2})
    with journal(tmp_path).open(ROLLBACK, {}):
        pass
    first, second = told(tmp_path).runs
    assert (first.command, first.exit_code, first.counts) == (APPLY, 4, {"set": 1, "failed": 2})
    assert first.began == first.ended == "2023-11-14T22:13:20.123Z" and first.source_not_seen == "A is gone."
    assert (second.command, second.exit_code, second.ended, second.source_not_seen) == (ROLLBACK, None, "", "")


def test_the_last_run_is_told_by_command(tmp_path: Path) -> None:
    for code in (4, 0):
        with journal(tmp_path).open(APPLY, {}) as writer:
            writer.end(code, {})
    last = told(tmp_path).last(APPLY)
    assert last is not None and last.exit_code == 0 and told(tmp_path).last(ROLLBACK) is None


def test_an_undo_plan_that_was_applied_is_a_run_of_its_own_kind(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        writer.spent("f" * 64)
    (run,) = told(tmp_path).runs
    # It is noted before the first write of the undo: when that ended is not known here.
    assert run.command == UNDONE and not run.ended and run.exit_code is None


def test_the_last_answer_and_the_last_reading_count(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}) as writer:
        one_group(writer, DENIED)
        writer.read_back("g", False, {P0: None, P1: 61})
    past = told(tmp_path)
    assert past.errors == {(APPLY, "g", P0): "GROUP_AUTHORIZATION_FAILED: no"}
    assert past.seen == {(APPLY, "g"): {P0: None, P1: 61}}
    with journal(tmp_path).open(APPLY, {}) as writer:
        writer.outcome("g", {P0: SET})
        writer.read_back("g", True, {P0: 60, P1: 61})
    past = told(tmp_path)
    assert past.errors == {} and past.seen == {(APPLY, "g"): {P0: 60, P1: 61}}


def test_what_a_rollback_read_back_is_kept_apart_from_what_apply_did(tmp_path: Path) -> None:
    for command, offset in ((APPLY, 60), (ROLLBACK, 10)):
        with journal(tmp_path).open(command, {}) as writer:
            writer.read_back("g", True, {P0: offset})
    assert told(tmp_path).seen == {(APPLY, "g"): {P0: 60}, (ROLLBACK, "g"): {P0: 10}}


def test_what_follows_the_last_line_feed_is_no_event(tmp_path: Path) -> None:
    with journal(tmp_path).open(APPLY, {}):
        pass
    content = journal(tmp_path).path.read_bytes()
    assert past_runs(content + b'{"event":"en') == past_runs(content)
