import pytest

from migrate.model import Commit, Commits, Decision, Failure, TopicPartition
from migrate.verification import Standing, compare, verify
from tests.fakes import NoProgress
from tests.unit.plans import clusters, plan, row

P0 = TopicPartition("A.orders", 0)


@pytest.mark.parametrize(
    ("seen", "standing", "exit_code"),
    [
        (60, Standing.EQUAL, 0),
        (180, Standing.AHEAD, 0),
        (59, Standing.BEHIND, 1),
        (None, Standing.MISSING, 1),
    ],
)
def test_a_row_stands_where_planned_or_beyond(seen: int | None, standing: Standing, exit_code: int) -> None:
    commits: Commits = {} if seen is None else {P0: Commit(seen)}
    found = compare(plan(row("g")), {"g": commits})
    assert (found.findings[0].standing, found.exit_code) == (standing, exit_code)


def test_how_far_a_group_moved_on_is_said() -> None:
    found = compare(plan(row("g")), {"g": {P0: Commit(180)}})
    assert found.findings[0].sentence == "moved on by 120"


def test_what_cannot_be_read_is_a_failure_not_a_pass() -> None:
    found = compare(plan(row("g")), {"g": Failure("GROUP_AUTHORIZATION_FAILED", "no")})
    assert found.findings[0].standing is Standing.UNREADABLE and found.exit_code == 1


def test_kept_rows_are_held_to_what_they_were_kept_at() -> None:
    kept = row("g", decision=Decision.KEEP, reason="ahead-kept", target_prior=70)
    assert compare(plan(kept), {"g": {P0: Commit(70)}}).counts() == {Standing.EQUAL: 1}
    assert compare(plan(kept), {"g": {P0: Commit(65)}}).exit_code == 1


def test_blocked_and_skipped_rows_are_not_verified() -> None:
    rows = [row("g", decision=Decision.BLOCK), row("g", partition=1, decision=Decision.SKIP)]
    assert compare(plan(*rows), {}).findings == ()


def test_a_row_to_remove_must_be_gone() -> None:
    gone = row("g", offset=None, decision=Decision.REMOVE, target_prior=60)
    assert compare(plan(gone), {"g": {}}).exit_code == 0
    assert compare(plan(gone), {"g": {P0: Commit(60)}}).findings[0].standing is Standing.NOT_REMOVED


def test_verify_reads_the_target_and_a_second_reading_tells_who_moves() -> None:
    made = plan(row("g"), row("h"))
    target, _ = clusters(made)
    for group in "gh":
        target.commit(group, "A.orders", 0, 60)
    first = verify(made, target, NoProgress())
    assert first.exit_code == 0 and first.moving == frozenset()
    target.commit("h", "A.orders", 0, 61)
    second = verify(made, target, NoProgress()).after(first)
    assert second.moving == {"h"} and second.exit_code == 0


def test_a_rewind_that_was_never_written_is_not_taken_for_a_consumer_that_moved_on() -> None:
    rewinding = row("g", target_prior=500)
    found = compare(plan(rewinding), {"g": {P0: Commit(500)}})
    assert found.findings[0].standing is Standing.NOT_REWOUND and found.exit_code == 1
    assert compare(plan(rewinding), {"g": {P0: Commit(501)}}).exit_code == 0


def test_what_stands_on_a_topic_that_is_not_shown_is_unreadable_and_not_missing() -> None:
    made = plan(row("g"))
    found = compare(made, {})
    place = found.findings[0].target_partition.topic
    assert found.seen_from({place}, "B") == found
    (finding,) = found.seen_from({"other"}, "B").findings
    assert (found.findings[0].standing, finding.standing) == (Standing.MISSING, Standing.UNREADABLE)
    assert "lacks DESCRIBE" in finding.sentence
    assert place in finding.sentence
