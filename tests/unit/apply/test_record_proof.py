"""The records as proof: verdicts from two found records, how far is looked, and what is shown of it."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from migrate.apply.history import GroupTrace, JournalState
from migrate.apply.record_proof import (
    FAILED,
    LOOK_AHEAD,
    LogSide,
    Next,
    RecordProof,
    RecordVerdict,
    RowProof,
    judge,
    prove,
    standing_offset,
)
from migrate.apply.verify import Known, Verification, VerifyFinding, compare
from migrate.match.equality import ALL_PARTS, Part
from migrate.match.next_record import NextRecord, Position, next_record
from migrate.model import Commit, Decision, Failure, Grade, LogRange, Method, Row, Side, TopicPartition
from migrate.show.verify import proof_lines, verify_document
from migrate.text import cells
from tests.fakes import FakeCluster, NoProgress
from tests.unit.plans import plan, row

THERE, HERE = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
SECRET = "card 4711"


def record(offset: int, name: int, timestamp: int | None = None, **changes: Any) -> NextRecord:
    content: dict[str, Any] = {"key": b"k", "value": f"{SECRET} {name}".encode(), "headers": [("id", b"%d" % name)]}
    return next_record(offset, 1_700_000_000_000 + name if timestamp is None else timestamp, **(content | changes))


def copies(names: Collection[int], start: int = 0) -> list[NextRecord]:
    """A log of records called by these names, at the offsets from `start` on."""
    return [record(start + i, name) for i, name in enumerate(names)]


class FakeLogs:
    """Records of logs in memory, behind `migrate.match.next_record.NextRecordReader`."""

    def __init__(self, logs: Mapping[TopicPartition, Collection[NextRecord]]) -> None:
        self.logs = logs
        self.asked: list[Position] = []

    def next_records(self, positions: Collection[Position]) -> Mapping[Position, tuple[NextRecord, ...] | Failure]:
        self.asked += positions
        return {
            p: tuple(r for r in self.logs[p.partition] if p.offset <= r.offset < p.end)[: p.most] for p in positions
        }


def sides(
    source: Collection[NextRecord], target: Collection[NextRecord], source_start: int = 0, target_start: int = 0
) -> tuple[LogSide, LogSide]:
    """Two clusters with one partition each, whose logs end at 200 and 100 as `plans.row` has it."""
    a = FakeCluster(Side.SOURCE, "A", ranges={THERE: LogRange(source_start, 200)})
    b = FakeCluster(ranges={HERE: LogRange(target_start, 100)})
    return LogSide(a, FakeLogs({THERE: source})), LogSide(b, FakeLogs({HERE: target}))


def exact(**changes: Any) -> Row:
    values = {"grade": Grade.EXACT, "method": Method.MATCH, "rereads_at_most": 0, "equality": "all", "why": "proven"}
    return row("g", **(values | changes))


def proved(found: Row, logs: tuple[LogSide, LogSide]) -> RecordProof:
    """The proof of a row whose offset is where it was planned."""
    return prove([found], as_planned(found), *logs, NoProgress())


def as_planned(*rows: Row) -> tuple[VerifyFinding, ...]:
    commits = {r.group: {r.target_partition: Commit(standing_offset(r) or 0)} for r in rows}
    return compare(plan(*rows), commits).findings


def moved(found: Row, seen: int | None, logs: tuple[LogSide, LogSide], consumed: bool = False) -> RowProof:
    """The proof of a row whose group has another offset committed now; `consumed` says that consumers ran."""
    commits = {} if seen is None else {found.target_partition: Commit(seen)}
    findings = compare(plan(found), {found.group: commits}, known=Known(consumers_ran=consumed)).findings
    (proof,) = prove([found], findings, *logs, NoProgress()).rows
    return proof


def test_the_same_record_on_both_sides_is_equal() -> None:
    proof = proved(exact(), sides([record(120, 7)], [record(60, 7)]))
    assert proof.rows[0].verdict is RecordVerdict.EQUAL and proof.exit_code == 0


def test_an_exact_row_whose_records_differ_fails() -> None:
    proof = proved(exact(), sides([record(120, 7)], [record(60, 8)]))
    assert proof.rows[0].verdict is RecordVerdict.DIFFERENT and proof.exit_code == 1
    assert proof.rows[0].differing == (Part.TIMESTAMP, Part.VALUE, Part.HEADERS)


def test_an_exact_row_that_starts_one_record_early_fails_too() -> None:
    proof = proved(exact(), sides([record(120, 7)], copies([6, 7, 8], 60)))
    assert proof.rows[0].verdict is RecordVerdict.DIFFERENT
    assert (proof.rows[0].found_at, proof.rows[0].records_before) == (61, 1)


def test_an_estimated_row_may_start_earlier_and_says_by_how_much() -> None:
    proof = proved(row("g"), sides([record(120, 7)], copies([4, 5, 6, 7], 60)))
    assert proof.rows[0].verdict is RecordVerdict.EARLIER and proof.exit_code == 0
    assert proof.rows[0].records_before == 3 and "3 records further on" in proof.rows[0].sentence


def test_a_row_beyond_the_record_finds_none_and_says_so() -> None:
    proof = proved(row("g"), sides([record(120, 7)], [*copies([6, 7], 58), *copies([8, 9], 60)]))
    assert proof.rows[0].verdict is RecordVerdict.NOT_FOUND
    assert "None of the target's next 2 records" in proof.rows[0].sentence


def test_both_at_the_end_say_so() -> None:
    proof = proved(exact(source_committed=200, target_offset=100), sides([], []))
    assert proof.rows[0].verdict is RecordVerdict.AT_END and proof.exit_code == 0


def test_what_was_written_after_the_plan_is_not_looked_at() -> None:
    source, target = sides([record(150, 9)], [record(70, 8)])
    proof = proved(exact(source_log_end=130, target_log_end=65), (source, target))
    assert proof.rows[0].verdict is RecordVerdict.AT_END


def test_a_log_that_ends_on_one_side_only_is_an_exact_rows_failure_and_no_other_rows() -> None:
    # Without a key: no cleaner takes it.
    assert proved(exact(), sides([], [record(60, 7, key=None)])).exit_code == 1
    assert proved(exact(), sides([record(120, 7, key=None)], [])).exit_code == 1
    assert proved(row("g"), sides([], [record(60, 7)])).rows[0].verdict is RecordVerdict.EARLIER
    assert proved(row("g"), sides([record(120, 7)], [])).rows[0].verdict is RecordVerdict.NOT_FOUND


def emptied(found: Row, still_copied: Collection[str] = ()) -> RecordProof:
    """The proof of a row at the start of a target log that is empty, and was when the plan was made."""
    source, target = sides([record(120, 7)], [])
    target.admin.ranges[HERE] = LogRange(0, 0)  # type: ignore[attr-defined]
    return prove([found], as_planned(found), source, target, NoProgress(), still_copied=still_copied)


def test_an_empty_target_that_the_plan_took_to_be_copied_in_full_fails_a_row_that_no_records_placed() -> None:
    proof = emptied(row("g", offset=0, target_log_end=0))
    assert proof.rows[0].verdict is RecordVerdict.NOTHING_LEFT and proof.exit_code == 1


def test_where_not_one_row_is_proven_the_command_ends_partly() -> None:
    waiting = emptied(row("g", offset=0, target_log_end=0), still_copied={"orders"})
    assert waiting.rows[0].verdict is RecordVerdict.NOT_FOUND and waiting.exit_code == 4
    chosen = proved(row("g", grade=None, method=Method.EXPLICIT), sides([record(120, 7)], [record(60, 8)]))
    assert chosen.rows[0].verdict is RecordVerdict.CHOSEN and chosen.exit_code == 4
    removed = proved(exact(), sides([record(120, 7)], [record(80, 9)], target_start=80))
    assert removed.rows[0].verdict is RecordVerdict.REMOVED and removed.exit_code == 4
    same = proved(exact(), sides([record(120, 7)], [record(60, 7)]))
    assert replace(waiting, rows=waiting.rows + same.rows).exit_code == 0
    assert RecordProof(()).exit_code == 0


def test_what_retention_has_removed_is_said_on_either_side() -> None:
    source = proved(exact(), sides([record(150, 9)], [record(60, 7)], source_start=150)).rows[0]
    assert source.verdict is RecordVerdict.REMOVED and "source's records from 120 on" in source.sentence
    # A plan that was made with the source down knows no end of its log.
    unpinned = proved(exact(source_log_end=None), sides([record(150, 9)], [record(60, 7)], source_start=150)).rows[0]
    assert unpinned.verdict is RecordVerdict.REMOVED
    target = proved(exact(), sides([record(120, 7)], [record(80, 9)], target_start=80)).rows[0]
    assert target.verdict is RecordVerdict.REMOVED and "target's records from 60 on" in target.sentence


def test_what_compaction_has_taken_since_is_no_failure_of_an_exact_row() -> None:
    on_source = proved(exact(), sides([record(125, 9)], copies([7, 8, 9], 60))).rows[0]
    assert on_source.verdict is RecordVerdict.REMOVED and on_source.found_at == 62
    on_target = proved(exact(), sides([record(120, 7)], [record(64, 9)])).rows[0]
    assert on_target.verdict is RecordVerdict.REMOVED and "no record at 60 any more" in on_target.sentence


def test_what_compaction_had_taken_on_the_target_alone_is_no_failure_of_an_exact_row() -> None:
    superseded, next_one, newer = record(120, 7, key=b"a"), record(121, 8, key=b"b"), record(130, 9, key=b"a")
    target = [record(60, 8, key=b"b"), record(61, 9, key=b"a")]
    (proof,) = proved(exact(), sides([superseded, next_one, newer], target)).rows
    assert (
        proof.verdict is RecordVerdict.REMOVED and "next record has no copy, as compaction leaves it" in proof.sentence
    )


@pytest.mark.parametrize("key", [b"c", None], ids=["the last of its key", "without a key"])
def test_a_record_that_no_cleaner_takes_and_that_has_no_copy_is_a_failure_of_an_exact_row(key: bytes | None) -> None:
    source = [record(120, 7, key=key), record(121, 8, key=b"b")]
    proof = proved(exact(), sides(source, [record(60, 8, key=b"b")]))
    assert proof.rows[0].verdict is RecordVerdict.DIFFERENT and proof.exit_code == 1


def test_a_record_is_looked_for_as_far_as_the_source_has_lost_records_since() -> None:
    names = range(1000, 1030)
    a = FakeCluster(Side.SOURCE, "A", ranges={THERE: LogRange(0, 2000)})
    b = FakeCluster(ranges={HERE: LogRange(0, 2000)})
    found = exact(source_log_end=2000, target_log_end=2000)
    for gap in (300, 1500):
        target = [*copies(range(gap), 60), *copies(names, 60 + gap)]
        logs = LogSide(a, FakeLogs({THERE: copies(names, 120 + gap)})), LogSide(b, FakeLogs({HERE: target}))
        (proof,) = proved(found, logs).rows
        assert proof.verdict is RecordVerdict.REMOVED and "has no record at 120 any more" in proof.sentence, gap
        assert proof.records_before == (gap if gap < LOOK_AHEAD else None)


def test_the_last_record_of_a_key_that_a_cleaner_took_since_is_removed_on_either_side() -> None:
    for logs in (sides([], [record(60, 7)]), sides([record(120, 7)], [])):
        (proof,) = proved(exact(), logs).rows
        assert proof.verdict is RecordVerdict.REMOVED and "compaction may have taken it" in proof.sentence


def test_a_record_that_was_still_to_come_or_counted_as_missing_is_not_found_and_no_failure() -> None:
    at_the_end = exact(target_offset=100)
    assert proved(at_the_end, sides([record(120, 7, key=None)], [])).rows[0].verdict is RecordVerdict.NOT_FOUND
    (counted,) = proved(exact(missing_on_target=1), sides([record(120, 7, key=None)], [])).rows
    assert counted.verdict is RecordVerdict.NOT_FOUND and "counted 1 record" in counted.sentence


def test_a_tombstone_that_the_target_alone_has_lost_is_no_failure() -> None:
    source = [record(120, 7, key=b"a", value=None), record(121, 8, key=b"b")]
    assert proved(exact(), sides(source, [record(60, 8, key=b"b")])).rows[0].verdict is RecordVerdict.REMOVED


def test_where_too_few_records_were_looked_through_to_tell_nothing_is_said_to_differ() -> None:
    names = range(LOOK_AHEAD + 500)
    a = FakeCluster(Side.SOURCE, "A", ranges={THERE: LogRange(0, 2000)})
    b = FakeCluster(ranges={HERE: LogRange(0, 2000)})
    source = [record(120 + n, n, key=b"%d" % n) for n in names]
    logs = LogSide(a, FakeLogs({THERE: source})), LogSide(b, FakeLogs({HERE: [record(60, 1, key=b"1")]}))
    (proof,) = proved(exact(source_log_end=2000, target_log_end=2000), logs).rows
    assert proof.verdict is RecordVerdict.NOT_FOUND and "or not" in proof.sentence


def test_a_transactions_marker_excuses_no_offset_that_is_wrong() -> None:
    target = [record(60, 5, key=None), record(61, 6, key=None), record(62, 7, key=None)]
    assert proved(exact(), sides([record(121, 7, key=None)], target)).rows[0].verdict is RecordVerdict.DIFFERENT


def test_a_planned_record_that_was_taken_is_not_looked_for_in_an_equal_one_further_on() -> None:
    source = [record(120, 7, 1), record(121, 8, 1, key=b"b")]
    (proof,) = proved(exact(), sides(source, [record(61, 8, 1, key=b"b"), record(70, 7, 1)])).rows
    assert proof.verdict is RecordVerdict.REMOVED and "no record at 60 any more" in proof.sentence


def test_what_lies_below_a_logs_start_is_never_equal_nor_at_the_end() -> None:
    equal = proved(exact(), sides([record(150, 9)], [record(75, 9)], source_start=150, target_start=75))
    at_end = proved(exact(), sides([], [], source_start=200, target_start=100))
    assert [proof.rows[0].verdict for proof in (equal, at_end)] == [RecordVerdict.REMOVED] * 2
    nothing_owed = exact(source_committed=200, target_offset=100)
    (drained,) = proved(nothing_owed, sides([], [], source_start=200, target_start=100)).rows
    assert drained.verdict is RecordVerdict.AT_END


@pytest.mark.parametrize("side", list(Side))
def test_a_log_that_ends_before_what_the_plan_saw_proves_nothing(side: Side) -> None:
    logs = sides([record(120, 7)], [record(60, 7)])
    cut = logs[0] if side is Side.SOURCE else logs[1]
    place = THERE if side is Side.SOURCE else HERE
    cut.admin.ranges[place] = LogRange(0, 90 if side is Side.TARGET else 190)  # type: ignore[attr-defined]
    (proof,) = proved(exact(), logs).rows
    assert proof.verdict is RecordVerdict.UNREADABLE and f"The {side}'s log ends at" in proof.sentence


def test_only_the_parts_that_the_rows_evidence_names_have_to_agree() -> None:
    logs = sides([record(120, 7)], [record(60, 7, headers=[])])
    assert proved(exact(equality="without-headers"), logs).rows[0].verdict is RecordVerdict.EQUAL
    assert proved(exact(), logs).rows[0].verdict is RecordVerdict.DIFFERENT


def test_without_evidence_a_record_whose_key_and_value_are_kept_is_alike() -> None:
    proof = proved(row("g"), sides([record(120, 7)], [record(60, 7, timestamp=1, headers=[])])).rows[0]
    assert proof.verdict is RecordVerdict.ALIKE and proof.differing == (Part.TIMESTAMP, Part.HEADERS)


def test_a_row_that_a_reviewer_chose_is_held_to_nothing() -> None:
    logs = sides([record(120, 7)], [record(60, 8)])
    chosen = row("g", grade=None, method=Method.EXPLICIT)
    kept = exact(decision=Decision.KEEP, reason="ahead-kept", target_offset=40, target_prior=60)
    assert {proved(r, logs).rows[0].verdict for r in (chosen, kept)} == {RecordVerdict.CHOSEN}


def test_a_missing_record_that_the_plan_has_counted_is_no_failure() -> None:
    proof = proved(exact(missing_on_target=2), sides([record(120, 7)], [record(60, 9)]))
    assert proof.rows[0].verdict is RecordVerdict.NOT_FOUND and "2 records without a copy" in proof.rows[0].sentence


def test_a_log_that_cannot_be_read_is_never_a_pass() -> None:
    source, target = sides([record(120, 7)], [record(60, 7)])
    source.admin.ranges.clear()  # type: ignore[attr-defined]
    proof = proved(row("g"), (source, target))
    assert proof.rows[0].verdict is RecordVerdict.UNREADABLE and proof.exit_code == 1


def test_a_place_that_the_reader_leaves_out_is_never_a_pass() -> None:
    class Silent:
        def next_records(self, positions: Collection[Position]) -> Mapping[Position, tuple[NextRecord, ...] | Failure]:
            return {}

    source, target = sides([record(120, 7)], [record(60, 7)])
    assert proved(exact(), (LogSide(source.admin, Silent()), target)).exit_code == 1


def test_rows_without_an_offset_are_left_out_and_a_limit_says_how_many_more_there_are() -> None:
    rows = [row("a"), row("b"), row("c", decision=Decision.BLOCK), row("d", source_committed=None), row("e")]
    findings = as_planned(rows[0], rows[1], rows[3], rows[4])
    proof = prove(rows, findings, *sides([record(120, 7)], [record(60, 7)]), NoProgress(), limit=2)
    assert [p.row.group for p in proof.rows] == ["a", "b"] and proof.left_out == 1


def test_groups_at_the_same_place_share_one_reading_and_no_log_is_searched_without_need() -> None:
    source, target = sides([record(120, 7)], [record(60, 7)])
    prove([row("a"), row("b")], as_planned(row("a"), row("b")), source, target, NoProgress())
    assert isinstance(target.reader, FakeLogs) and isinstance(source.reader, FakeLogs)
    assert len(target.reader.asked) == len(source.reader.asked) == 1


def test_a_search_is_bounded_whatever_the_plan_estimates() -> None:
    source, target = sides([record(120, 7)], [record(60, 8)])
    proved(row("g", rereads_estimate=10**9), (source, target))
    assert isinstance(target.reader, FakeLogs)
    assert max(p.most for p in target.reader.asked) == LOOK_AHEAD


def test_an_offset_that_was_moved_ahead_is_never_equal_and_the_planned_record_is_beside_it() -> None:
    logs = sides([record(120, 7)], [*copies([7, 8, 9], 60), record(95, 7)])
    for found in (exact(), row("g")):
        proof = moved(found, 62, logs)
        assert proof.verdict is RecordVerdict.BEYOND and proof.verdict in FAILED
        assert "2 beyond the planned 60" in proof.sentence
        assert isinstance(proof.target, Next) and proof.target.record == record(62, 9)
        assert isinstance(proof.planned, Next) and proof.planned.record == record(60, 7)
        # A record that looks the same further on is another copy: what is between is skipped all the same.
        assert moved(found, 95, logs).verdict is RecordVerdict.BEYOND


def test_an_offset_beyond_the_end_is_no_end_of_both_logs() -> None:
    found = exact(source_committed=200, target_offset=90)
    assert moved(found, 100, sides([], [])).verdict is RecordVerdict.BEYOND


def test_an_offset_behind_the_planned_one_is_compared_where_it_is_and_says_how_far_the_record_is() -> None:
    logs = sides([record(120, 7)], copies(range(1, 9), 54))
    proof = moved(exact(), 55, logs)
    assert proof.verdict is RecordVerdict.DIFFERENT and (proof.found_at, proof.records_before) == (60, 5)
    assert moved(row("g"), 55, logs).verdict is RecordVerdict.EARLIER
    assert isinstance(proof.planned, Next) and proof.planned.record == record(60, 7)


def test_a_record_far_behind_the_planned_offset_is_looked_for_from_the_committed_one() -> None:
    far = row("g", offset=400, target_log_end=500, rereads_estimate=0)
    source, target = sides([record(120, 401)], copies(range(1, 500)))
    target.admin.ranges[HERE] = LogRange(0, 500)  # type: ignore[attr-defined]
    assert moved(far, 100, (source, target)).found_at == 400


def test_no_committed_offset_is_no_proof_and_says_what_was_planned() -> None:
    logs = sides([record(120, 7)], [record(60, 7)])
    proof = moved(row("g"), None, logs)
    assert proof.verdict is RecordVerdict.UNCOMMITTED and proof.verdict in FAILED
    assert isinstance(proof.planned, Next) and proof.planned.record == record(60, 7)
    dark = compare(plan(row("g")), {"g": Failure("GROUP_AUTHORIZATION_FAILED", "no")}).findings
    assert prove([row("g")], dark, *logs, NoProgress()).rows[0].verdict is RecordVerdict.UNREADABLE


def test_where_consumers_have_moved_on_what_they_began_with_is_compared_and_both_are_shown() -> None:
    logs = sides([record(120, 7)], [*copies([7, 8, 9], 60), record(140, 50)])
    logs[1].admin.ranges[HERE] = LogRange(0, 150)  # type: ignore[attr-defined]
    proof = moved(exact(), 62, logs, consumed=True)
    assert proof.verdict is RecordVerdict.MOVED_ON and proof.verdict not in FAILED
    assert proof.sentence == "Consumers have moved on to 62. At the planned offset: The same record."
    assert isinstance(proof.target, Next) and proof.target.record == record(62, 9)
    assert isinstance(proof.planned, Next) and proof.planned.record == record(60, 7)
    # Beyond what the plan pinned the record is shown all the same: producers have moved too.
    later = moved(exact(), 120, logs, consumed=True)
    assert isinstance(later.target, Next) and later.target.record == record(140, 50)
    wrong = moved(exact(), 62, sides([record(120, 5)], copies([7, 8, 9], 60)), consumed=True)
    assert wrong.verdict is RecordVerdict.DIFFERENT


def test_rows_that_nobody_was_to_write_are_not_proven() -> None:
    out = Known(JournalState(events=1, applied={"other": GroupTrace({HERE: 1}, {}, True)}))
    findings = compare(plan(row("g")), {}, known=out).findings
    assert prove([row("g")], findings, *sides([record(120, 7)], [record(60, 7)]), NoProgress()).rows == ()


def mixed() -> RecordProof:
    """Rows of several verdicts: one that could not be read, and one that is not at its planned offset."""
    rows = [
        judge(exact(), Next(120, 0, 200, record(120, 7)), Next(60, 0, 100, record(60, 7))),
        judge(exact(), Next(200, 0, 200, None), Next(100, 0, 100, None)),
        judge(exact(), Next(120, 0, 200, record(120, 7)), Next(60, 0, 100, record(60, 8))),
        judge(
            row("lagging"), Next(120, 0, 200, record(120, 7)), Next(60, 0, 100, record(60, 5)), copies([5, 6, 7], 60)
        ),
        judge(row("dark"), Failure("TOPIC_AUTHORIZATION_FAILED", "no"), Next(60, 0, 100, record(60, 5))),
        moved(row("ahead"), 62, sides([record(120, 7)], copies([7, 8, 9], 60))),
    ]
    return RecordProof(tuple(rows), 3)


@pytest.mark.parametrize("width", [80, 200])
def test_the_text_keeps_to_its_width_and_names_every_row_and_both_sides(width: int) -> None:
    made = plan(*(p.row for p in mixed().rows[3:]))
    lines = list(proof_lines(mixed(), made, width, False))
    assert all(cells(line) <= width for line in lines), lines
    text = "\n".join(lines)
    assert lines[0] == "RECORDS NOT AS PLANNED: 3 of 6 rows"
    for word in (
        "lagging",
        "dark",
        "2023-11-14T22:13:20.007Z",
        "end of log",
        "They differ in",
        "3 more rows not looked",
        "no consumer accounts for it",
    ):
        assert word in text, word
    assert SECRET not in text and text.count(record(120, 7).fingerprint()) == 6
    assert sum(line.rstrip().endswith("  planned") for line in lines) == 1


def test_the_json_document_has_every_row_with_both_sides() -> None:
    proof = mixed()
    made = plan(*(p.row for p in proof.rows[3:]))
    text = "\n".join(verify_document(Verification(()), made, proof, 0))
    document = json.loads(text)
    assert [r["verdict"] for r in document["records"]] == [str(p.verdict) for p in proof.rows]
    assert document["record_counts"]["equal"] == 1 and document["record_rows_left_out"] == 3
    first, earlier, dark = document["records"][0], document["records"][3], document["records"][4]
    assert first["source"]["record"]["fingerprint"] == first["target"]["record"]["fingerprint"]
    assert first["compared"] == ["timestamp", "key", "value", "headers"] == [str(p) for p in Part if p in ALL_PARTS]
    assert (earlier["found_at"], earlier["records_before"]) == (62, 2)
    assert "TOPIC_AUTHORIZATION_FAILED" in dark["source"]["error"] and SECRET not in text
    ahead = document["records"][5]
    assert (ahead["verdict"], ahead["target"]["looked_from"], ahead["planned"]["looked_from"]) == ("beyond", 62, 60)
    assert first["planned"] is None and document["exit_code"] == 1


@pytest.mark.parametrize("width", [80, 200])
def test_a_group_of_another_name_on_the_target_is_called_by_both(width: int) -> None:
    proof = RecordProof((judge(exact(target_group="g-eu"), Next(200, 0, 200, None), Next(100, 0, 100, None)),), 0)
    made = plan(proof.rows[0].row)
    assert any("g -> g-eu  orders:0" in line for line in proof_lines(proof, made, width, False))
    (row,) = json.loads("\n".join(verify_document(Verification(()), made, proof, 0)))["records"]
    assert (row["group"], row["target_group"]) == ("g", "g-eu")


def test_the_json_document_of_verify_without_records_has_none() -> None:
    document = json.loads("\n".join(verify_document(Verification((), spent=True), plan(row("g")), None, 0)))
    assert "records" not in document and document["rolled_back"] is True and document["exit_code"] == 1


def test_a_log_that_could_not_be_read_is_named_also_where_the_group_has_no_commit() -> None:
    source, target = sides([record(120, 7)], [record(60, 7)])
    denied = Failure("TOPIC_AUTHORIZATION_FAILED", "grant the principal READ on the topic")
    source.admin.ranges[TopicPartition("orders", 0)] = denied  # type: ignore[attr-defined]
    proof = moved(row("g"), None, (source, target))
    assert proof.verdict is RecordVerdict.UNCOMMITTED and "READ on the topic" in proof.sentence
