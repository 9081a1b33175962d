"""What a plan's groups are owed: where each stands on either side, and which of them lacks what was found lacking."""

import pytest

from migrate.errors import Refused, UsageError
from migrate.extras.audit.owed import Owed, Place
from migrate.extras.audit.pin import PinnedTopic
from migrate.extras.audit.verdict import Category, Lack, TopicAudit
from migrate.match.equality import Equality
from migrate.model import Decision, LogRange, Side
from tests.unit.plans import plan, row

ROWS = (
    row("audit", "orders", 0, 60),
    row("audit", "orders", 1, 10, source_committed=None),
    row("billing", "bills", 0, 60, decision=Decision.KEEP, target_prior=90),
    row("billing", "orders", 0, 70, source_committed=130),
    row("crm", "orders", 0, None, decision=Decision.SKIP, source_committed=140, target_prior=40),
)


def pinned(ids=("id-3", "id-1"), source_end=200, target_end=100):
    return PinnedTopic(
        topic="orders", target="A.orders", ids=ids, source_logs={p: LogRange(0, source_end) for p in (0, 1)},
        target_logs={p: LogRange(20, target_end) for p in (0, 1)}, next_to_copy={}, open_on_source=frozenset(),
        open_on_target=frozenset(), compacted=frozenset(), only_compacted=False, hides_policy=False, unproven=("so",),
    )  # fmt: skip


def test_a_group_is_owed_records_from_its_commit_on_and_all_that_some_group_is_owed_is_looked_at():
    owed = Owed.of(plan(*ROWS))
    assert owed.places == {
        "orders": [
            Place("audit", 0, 120, 60), Place("audit", 1, 0, 10), Place("billing", 0, 130, 70),
            Place("crm", 0, 140, 40),
        ],
        "bills": [Place("billing", 0, 120, 90)],
    }  # fmt: skip
    assert owed.partitions == {"orders": {0, 1}, "bills": {0}}
    part = owed.part(pinned())
    assert part.logs(Side.SOURCE) == {0: LogRange(120, 200), 1: LogRange(0, 200)}
    assert part.logs(Side.TARGET) == {0: LogRange(40, 100), 1: LogRange(20, 100)}
    assert part.owed_from == {(0, 120), (0, 130), (0, 140), (1, 0)} and part.unproven == ("so",)


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        (pinned(ids=("other", "id-1")), "orders on A was created anew since the plan was made"),
        (pinned(ids=("id-3", "other")), "A.orders on B was created anew since the plan was made"),
        (pinned(source_end=110), "partition 0 ends at 110 on A, below 120, from which a group reads"),
        (pinned(target_end=30), "partition 0 ends at 30 on B, below 40, from which a group reads"),
    ],
)
def test_logs_that_are_not_those_of_the_plan_prove_nothing(topic, why):
    part = Owed.of(plan(*ROWS)).part(topic)
    assert part.unproven == ("so", why)
    assert all(log.start <= log.end for side in Side for log in part.logs(side).values())


def test_each_group_lacks_what_lies_beyond_its_commit_and_no_other_groups_records():
    owed = Owed.of(plan(*ROWS))
    lost = Lack(0, 120, Category.MISSING, 2, 121, 125)
    late = [Lack(0, start, Category.NOT_COPIED_YET, 1, 150, 150) for start in (120, 130)]
    audits = [
        TopicAudit("orders", "A.orders", Equality.ALL, {Category.MISSING: 2}, lacks=(lost, *late)),
        TopicAudit("bills", "A.bills", Equality.ALL, {Category.REMOVED: 2}),
    ]
    told = owed.told(audits)
    assert (told["fingerprint"], told["groups"]) == (owed.fingerprint, 3)
    audit, billing = told["open"]
    waiting = {"topic": "orders", "partition": 0, "category": "not-copied-yet", "records": 1}
    waiting |= {"first_offset": 150, "last_offset": 150}
    missing = waiting | {"category": "missing", "records": 2, "first_offset": 121, "last_offset": 125}
    assert audit == {"group": "audit", "verdict": "INCOMPLETE", "lacks": [missing, waiting], "not_proven_topics": []}
    # What was removed since an earlier run may have been any group's.
    assert billing == {"group": "billing", "verdict": "NOT PROVEN", "lacks": [waiting], "not_proven_topics": ["bills"]}


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (plan(*ROWS, kind="undo"), UsageError, "is an undo"),
        (plan(*ROWS, failback=True), UsageError, "is a way back"),
        (plan(kind="follow"), UsageError, "holds rules"),
        (plan(), Refused, "is empty"),
    ],
)
def test_a_plan_that_moves_no_group_to_copies_owes_nobody_any(made, error, said):
    with pytest.raises(error, match=said):
        Owed.of(made)
