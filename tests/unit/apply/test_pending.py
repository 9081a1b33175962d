"""Rows that are still to be written say, as columns, just what each of them says."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.apply.pending import PendingRows
from migrate.model import UNACKNOWLEDGED, Decision, Row
from tests.unit.plans import row

TEXTS = st.sampled_from(["", "AAA=\x00"])


def written(partition: int, offset: int | None, metadata: str, reason: str) -> Row:
    decision = Decision.REMOVE if offset is None else Decision.SET
    return row("g", "orders", partition, offset, decision=decision, target_metadata=metadata, reason=reason)


ROWS = st.dictionaries(
    st.integers(0, 9),
    st.tuples(st.none() | st.integers(0, 99), TEXTS, st.sampled_from(["proven", UNACKNOWLEDGED])),
    min_size=1,
).map(lambda given: [written(partition, *rest) for partition, rest in given.items()])


@given(ROWS)
def test_what_is_planned_and_what_is_committed_is_what_each_row_says(rows: list[Row]) -> None:
    pending = PendingRows(rows)
    assert pending.planned() == {r.target_partition: r.target_offset for r in rows}
    assert pending.commits() == {r.target_partition: c for r in rows if (c := r.target_commit) is not None}
    assert pending == {r.target_partition: r for r in rows}


@given(ROWS)
def test_removals_are_the_rows_that_take_an_offset_away(rows: list[Row]) -> None:
    removals = {r.target_partition: r for r in rows if r.decision is Decision.REMOVE}
    found = PendingRows(rows).removals()
    assert found == (removals or None)
    if found is not None:
        assert found.need_acknowledgement == any(r.needs_acknowledgement for r in removals.values())
