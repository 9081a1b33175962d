"""What `verify` certifies, and where a row is, in which word, by the answer to its write and by what was read."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from migrate.apply.history import FAILED, REMOVED, SET, UNKNOWN, GroupTrace, JournalState
from migrate.apply.outcome import Noted, RowStatus, noted, written
from migrate.apply.verify import (
    Known,
    Standing,
    Verification,
    VerifyFinding,
    blocks_without_rows,
    compare,
    joint_exit_code,
    verify,
    with_members,
)
from migrate.model import UNACKNOWLEDGED, Commit, Decision, Failure, GroupState, Level, Row, Scope, TopicPartition
from migrate.plan.plan import Plan
from migrate.show.verify import ROWS_SHOWN, verdict, verify_document, verify_lines
from tests.builders import make_check
from tests.fakes import ALIVE, EMPTY, NoProgress, Script
from tests.unit.answers import DENIED, TIMED_OUT
from tests.unit.plans import clusters, plan, row

P0 = TopicPartition("A.orders", 0)
RAN = Known(consumers_ran=True)
ALIVE_NOW = Known(states={"g": ALIVE})
EMPTY_NOW = Known(states={"g": EMPTY})


def journal(result: str = SET, read_back: bool | None = True, **changes: Any) -> JournalState:
    """A journal that tells of one write to partition 0 of group g."""
    trace = GroupTrace({P0: 60}, {P0: result}, read_back)
    return JournalState(**({"prior": {"g": {}}, "applied": {"g": trace}, "events": 5} | changes))


# The journal of an apply that wrote another group only.
LEFT_OUT = Known(journal(prior={}, applied={"other": GroupTrace({P0: 1}, {P0: SET}, True)}))


def only(found: Verification) -> VerifyFinding:
    (finding,) = found.findings
    return finding


def held(made: Row | Plan, seen: int | None, metadata: str = "", known: Known | None = None) -> Verification:
    """The one row's verification where the group has committed this offset."""
    commits = {} if seen is None else {P0: Commit(seen, metadata)}
    return compare(made if isinstance(made, Plan) else plan(made), {"g": commits}, known=known)


def text(found: Verification, made: Plan) -> str:
    return " ".join(" ".join(verify_lines(found, made, 80, False)).split())


KEPT = row("g", decision=Decision.KEEP, reason="ahead-kept", target_prior=70)
GONE = row("g", offset=None, decision=Decision.REMOVE, target_prior=60)
REWOUND = row("g", target_prior=500)
BLOCKED = row("b", decision=Decision.BLOCK, reason="target-group-empty")
UNDO = plan(row("g", offset=10, target_prior=60), kind="undo", undoes="f" * 64)
WRITTEN, NEVER_WRITTEN = ({"journal": each} for each in (journal(), journal(applied={}, prior={})))


@pytest.mark.parametrize(
    ("made", "seen", "known", "standing"),
    [
        (row("g"), 60, ALIVE_NOW, Standing.EQUAL),
        (row("g"), 180, ALIVE_NOW, Standing.AHEAD),
        (row("g"), 59, ALIVE_NOW, Standing.BEHIND),
        (row("g"), None, ALIVE_NOW, Standing.MISSING),
        (row("g"), 95, None, Standing.AHEAD_EMPTY),
        (row("g"), 95, EMPTY_NOW, Standing.AHEAD_EMPTY),
        (row("g"), 95, Known(states={"g": GroupState("Dead")}), Standing.AHEAD_EMPTY),
        (row("g"), 95, Known(states={"g": DENIED}), Standing.UNREADABLE),
        (row("g"), 60, Known(journal(spent_groups=frozenset("g"))), Standing.ROLLED_BACK),
        # Metadata alone differs: that needs a consumer, too.
        (row("g"), (60, "x"), ALIVE_NOW, Standing.OTHER_METADATA),
        (row("g"), (60, "x"), RAN, Standing.OTHER_METADATA),
        (row("g", target_metadata="stream time"), 60, EMPTY_NOW, Standing.METADATA_EMPTY),
        (row("g"), (60, "x"), replace(ALIVE_NOW, **NEVER_WRITTEN), Standing.METADATA_NOT_SET),
        (KEPT, 70, None, Standing.EQUAL),
        (KEPT, 65, None, Standing.BEHIND),
        (KEPT, 75, EMPTY_NOW, Standing.AHEAD_EMPTY),
        # Nothing was to be set there, so no journal has to say that it was.
        (KEPT, 75, replace(ALIVE_NOW, **NEVER_WRITTEN), Standing.AHEAD),
        (GONE, None, None, Standing.EQUAL),
        (GONE, 60, None, Standing.NOT_REMOVED),
        # A rewind that was never written is no consumer that moved on.
        (REWOUND, 500, ALIVE_NOW, Standing.NOT_REWOUND),
        (REWOUND, 501, ALIVE_NOW, Standing.AHEAD),
        # It was, and consumers have come to the same place again: the log's end, as a rule.
        (REWOUND, 500, replace(ALIVE_NOW, **WRITTEN), Standing.AHEAD),
        (REWOUND, 500, replace(EMPTY_NOW, **WRITTEN), Standing.AHEAD_EMPTY),
        # What an undo finds ahead before it is applied is not done.
        *((UNDO, seen, known, None) for seen in (60, 95) for known in (ALIVE_NOW, RAN)),
        *((UNDO, 10, known, Standing.EQUAL) for known in (ALIVE_NOW, RAN)),
        *((UNDO, 95, replace(known, **WRITTEN), Standing.AHEAD) for known in (ALIVE_NOW, RAN)),
    ],
)
def test_a_row_is_where_planned_or_somebody_accounts_for_where_it_is(made, seen, known, standing):
    found = held(made, *seen, known=known) if isinstance(seen, tuple) else held(made, seen, known=known)
    good = standing in (Standing.EQUAL, Standing.AHEAD, Standing.OTHER_METADATA)
    assert found.exit_code == (0 if good else 1) and only(found).standing is (standing or only(found).standing)


def test_how_far_a_group_moved_on_is_said_and_who_accounts_for_it():
    moved_on = only(held(row("g"), 180, known=ALIVE_NOW)).sentence
    assert moved_on.startswith("moved on by 120 to 180: the group has 1 member;")
    found = held(row("g"), 95)
    assert "is at 95, 35 beyond the planned 60, and the group has no members" in only(found).sentence
    assert "--consumers-ran" in text(found, plan(row("g")))


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (journal(), Noted.READ_BACK),
        (journal(read_back=None), Noted.NOT_READ_BACK),
        (journal(read_back=False), Noted.NOT_READ_BACK),
        (journal(FAILED, False), Noted.NOT_READ_BACK),
        (journal(UNKNOWN, None), Noted.NOT_READ_BACK),
        (journal(applied={}), Noted.NOT_READ_BACK),
        (journal(applied={}, prior={}), Noted.NO_WRITE),
        (JournalState(), Noted.NOTHING),
    ],
)
def test_a_journal_has_to_say_that_the_row_was_set_and_read_back_but_is_never_enough_alone(
    state: JournalState, word: Noted
):
    assert noted(row("g"), state.applied.get("g"), state) is word
    good = word in (Noted.READ_BACK, Noted.NOTHING)
    for known in (Known(state, states={"g": ALIVE}), Known(state, consumers_ran=True)):
        assert (held(row("g"), 95, known=known).exit_code == 0) is good
    alone = held(row("g"), 95, known=Known(state, states={"g": EMPTY}))
    assert alone.exit_code == 1
    assert only(alone).standing is (Standing.AHEAD_EMPTY if good else Standing.AHEAD_NOT_SET)


def test_rows_that_the_plan_does_not_write_are_counted_and_named_with_their_reason():
    made = plan(row("g"), BLOCKED, row("s", decision=Decision.SKIP, reason="not-replicated"))
    found = held(made, 60)
    assert found.exit_code == 4
    assert [(n.group, n.standing) for n in found.not_written] == [("b", Standing.BLOCKED), ("s", Standing.SKIPPED)]
    told = text(found, made)
    assert verdict(found)[0] == "VERIFIED: 1 offset of 1 group, BUT 2 rows of 2 groups were not written"
    assert verdict(held(row("g"), 60))[0] == "VERIFIED: 1 offset of 1 group"
    assert verdict(replace(found, findings=()))[0].startswith("NOTHING VERIFIED: 2 rows")
    assert verdict(Verification(()))[0].startswith("NOTHING TO VERIFY")
    assert "1 equal, 1 blocked, 1 skipped" in told
    assert "b: 1 row blocked in the plan: target-group-empty" in told
    assert "s: 1 row skipped, as the plan says: not-replicated" in told


@pytest.mark.parametrize(
    ("planned", "where"),
    [
        (row("g"), "it has no committed offset, as before"),
        (row("g", target_prior=20), "it is at 20, as before"),
        (row("g", target_prior=60, target_metadata="m"), "it is at 60, as before"),
    ],
)
def test_a_group_that_apply_left_out_is_named_where_it_is_as_before(planned, where):
    found = held(planned, planned.target_prior, known=LEFT_OUT)
    assert found.exit_code == 4 and found.findings == ()
    (unwritten,) = found.not_written
    assert unwritten.standing is Standing.LEFT_OUT
    assert unwritten.sentence == f"the journal holds no write to it: {where}"
    # Somebody has moved it since: that is no row left out, but one to look at.
    assert held(planned, 21, known=LEFT_OUT).exit_code == 1
    # And one that apply meant to write, and did not come to, was not left out.
    assert held(planned, planned.target_prior, known=Known(journal(applied={}))).exit_code == 1


@pytest.mark.parametrize(
    ("planned", "known", "standing"),
    [
        (row("g"), None, Standing.MISSING),
        (row("g"), LEFT_OUT, None),
        (row("g", offset=None, decision=Decision.REMOVE), None, Standing.EQUAL),
    ],
)
def test_what_is_on_a_topic_that_is_not_shown_is_unreadable_and_neither_missing_nor_removed_nor_left_out(
    planned, known, standing
):
    made = plan(planned)
    target, _ = clusters(made)
    assert [f.standing for f in verify(made, target, NoProgress(), known=known).findings] == [standing] * bool(standing)
    target.ranges.clear()
    found = verify(made, target, NoProgress(), known=known)
    assert only(found).standing is Standing.UNREADABLE and found.exit_code == 1
    assert "lacks DESCRIBE" in only(found).sentence and "A.orders" in only(found).sentence


def test_a_row_that_is_not_as_planned_outranks_one_that_was_not_written():
    made = plan(row("g"), BLOCKED)
    found = held(made, 95, known=EMPTY_NOW)
    assert found.exit_code == 1
    assert text(found, made).startswith("NOT AS PLANNED: 1 of 1 offset; and 1 row of 1 group was not written")
    assert (joint_exit_code(4, 1), joint_exit_code(0, 4), joint_exit_code(0, 0)) == (1, 4, 0)


def test_each_partition_of_a_group_is_compared():
    found = compare(plan(row("g"), row("g", partition=1)), {"g": {P0: Commit(60)}})
    assert [finding.standing for finding in found.findings] == [Standing.EQUAL, Standing.MISSING]


def test_open_blocks_that_no_blocked_row_shows_keep_a_plan_from_being_verified_whole_and_no_selection_of_rows():
    misspelt = make_check("named-groups-exist", "biling", seen="no such group")
    made = plan(row("g"), checks=(misspelt,))
    found = held(made, 60)
    assert found.exit_code == 4 and found.blocks == (misspelt,)
    told = text(found, made)
    assert "BUT 1 block of the plan is open" in told and "named-groups-exist biling: no such group" in told
    made = plan(row("g"), BLOCKED, checks=(misspelt,))
    assert compare(made, {"g": {P0: Commit(60)}}, [row("g")]).exit_code == 0
    assert compare(made, {"g": {P0: Commit(60)}}, [row("g"), BLOCKED]).exit_code == 4


def test_a_block_is_said_once_by_its_rows_or_by_itself():
    by_rows = [(Scope.GROUP, "b"), (Scope.TOPIC, "orders"), (Scope.ROW, "b/orders/0"), (Scope.CLUSTER, "A")]
    for scope, subject in (*by_rows, (Scope.GROUP, "g"), (Scope.TOPIC, "bills")):
        block = make_check("some-check", subject, scope=scope)
        waived = replace(block, accepted=True, level=Level.WARN, counts_as=Level.WARN)
        made = plan(row("g"), row("b", decision=Decision.BLOCK, reason="some-check"), checks=(block, waived))
        assert (blocks_without_rows(made) == ()) is ((scope, subject) in by_rows)


def test_verify_reads_the_target_and_a_second_reading_tells_who_moves():
    made = plan(row("g"), row("h"))
    target, _ = clusters(made)
    for group in "gh":
        target.commit(group, "A.orders", 0, 60)
    first = verify(made, target, NoProgress())
    assert first.exit_code == 0 and first.moving == frozenset() and target.calls["states"] == 0
    target.commit("h", "A.orders", 0, 61)
    # A group that moves while it has no members is moved by somebody who does not join it: that is no pass.
    alive = partial(with_members, target, Known())
    assert verify(made, target, NoProgress()).after(first, alive).exit_code == 1
    target.states["h"] = ALIVE
    second = verify(made, target, NoProgress()).after(first, alive)
    assert second.moving == {"h"} and second.exit_code == 0
    target.script("states", "h", Script(DENIED))
    assert verify(made, target, NoProgress()).exit_code == 1


@pytest.mark.parametrize("seen", [60, 10])
@pytest.mark.parametrize(
    ("read_back", "words"),
    [(True, "ROLLED BACK: this plan is spent"), (None, "SPENT: a rollback of this plan has begun")],
)
def test_a_plan_that_was_rolled_back_is_never_verified(seen, read_back, words):
    made = plan(row("g", target_prior=10))
    back = {"g": GroupTrace({P0: 10}, {P0: SET}, read_back)}
    found = held(made, seen, known=Known(journal(spends=("rollback",), rolled_back=back), consumers_ran=True))
    assert found.exit_code == 1 and text(found, made).startswith(words)


@pytest.mark.parametrize("seen", [None, 60])
@pytest.mark.parametrize("prior", [{}, {"g": {}}])
def test_a_group_that_was_given_up_before_its_write_needs_a_new_plan_wherever_it_is(seen, prior):
    made = plan(row("g", target_prior=10))
    found = held(made, seen, known=Known(journal(applied={}, prior=prior, spent_groups=frozenset("g"))))
    assert [r.standing for r in found.not_written] == [Standing.ROLLED_BACK] and found.exit_code == 4
    assert "g: 1 row given up by `rollback --group`: make a new plan for it" in text(found, made)


@pytest.mark.parametrize(("answer", "exit_code"), [("", 1), (UNKNOWN, 1), (SET, 0)])
def test_an_undo_that_nobody_acknowledged_is_not_verified_whatever_is_read(answer, exit_code):
    undo = plan(row("g", offset=10, reason=UNACKNOWLEDGED, target_prior=60), kind="undo")
    applied = {"g": GroupTrace({P0: 10}, {P0: answer}, True)} if answer else {}
    known = Known(JournalState(applied=applied, events=len(applied)))
    assert compare(undo, {"g": {P0: Commit(10)}}, known=known).exit_code == exit_code


UNREAD = Failure("_TIMED_OUT", "no answer")
NEEDING = row("g", reason=UNACKNOWLEDGED)
LOST, SURE = TIMED_OUT, DENIED


@pytest.mark.parametrize(
    ("planned", "answer", "is_in_doubt", "after", "status"),
    [
        (row("g"), SET, False, Commit(60), RowStatus.SET),
        # A consumer that has started on the target commits the same offset with a leader epoch, which no plan has.
        *((row("g"), LOST, False, Commit(60, leader_epoch=epoch), RowStatus.SET) for epoch in (None, 7)),
        (row("g"), SURE, False, Commit(60), RowStatus.ALREADY),
        (GONE, REMOVED, False, None, RowStatus.REMOVED),
        # Elsewhere, whatever is there: a failure, unless nobody knows what became of the write.
        *((row("g", target_prior=10), SET, False, Commit(o), RowStatus.FAILED) for o in (10, 75)),
        *((row("g", target_prior=10), LOST, False, Commit(o), RowStatus.UNKNOWN) for o in (10, 75)),
        (row("g"), SURE, False, None, RowStatus.FAILED),
        (row("g"), SURE, True, None, RowStatus.UNKNOWN),
        (row("g"), SET, False, UNREAD, RowStatus.UNKNOWN),
        (row("g"), SURE, False, UNREAD, RowStatus.FAILED),
        # No reading proves a row that needs an acknowledgement.
        *((NEEDING, LOST, False, after, RowStatus.UNKNOWN) for after in (Commit(60), Commit(10), UNREAD)),
        (NEEDING, SET, False, Commit(60), RowStatus.SET),
    ],
)
def test_nothing_is_called_set_that_was_not_read_back_nor_failed_where_the_answer_was_lost(
    planned, answer, is_in_doubt, after, status
):
    assert written(planned, answer, is_in_doubt, after).status is status


def test_what_was_read_back_instead_is_said_and_one_cause_of_a_write_and_of_its_reading_back_once():
    outcome = written(row("g"), LOST, False, UNREAD)
    assert outcome.detail.count("no answer") == 1 and "nor could it be read back" in outcome.detail
    for there, told in ((Commit(60, "tim"), "60 with other metadata"), (Commit(99), "99"), (None, "no offset")):
        assert f"read back {told} instead of 60" in written(row("g"), SET, False, there).detail


def test_rows_beyond_what_is_shown_are_counted_and_the_document_has_all_and_what_was_not_compared():
    made = plan(row("g"), BLOCKED)
    found = held(made, 60)
    many = Verification((only(found)._replace(standing=Standing.BEHIND),) * (ROWS_SHOWN + 5))
    assert "and 5 more; --format json has every row" in text(many, made)
    document = json.loads("".join(verify_document(found, made, None, 0)))
    assert document["offsets"] == [
        {"group": "g", "target_group": "", "target_topic": "A.orders", "partition": 0, "expected": 60, "seen": 60,
         "standing": "equal", "sentence": only(found).sentence, "journal": ""},
    ]  # fmt: skip
    assert (document["time"], document["rows_looked_at"]) == ("1970-01-01T00:00:00.000Z", 2)
    assert document["left_out"][0]["why"] == "blocked" and "records" not in document
