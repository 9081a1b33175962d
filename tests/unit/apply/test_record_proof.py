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
from tests.unit.answers import DENIED
from tests.unit.plans import plan, row

THERE, HERE = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
SECRET = "card 4711"
V = RecordVerdict
Logs = tuple[LogSide, LogSide]


def record(offset: int, name: int, timestamp: int | None = None, **changes: Any) -> NextRecord:
    content: dict[str, Any] = {"key": b"k", "value": f"{SECRET} {name}".encode(), "headers": [("id", b"%d" % name)]}
    return next_record(offset, 1_700_000_000_000 + name if timestamp is None else timestamp, **(content | changes))


def copies(names: Collection[int], start: int = 0) -> list[NextRecord]:
    """A log of records called by these names, at the offsets from `start` on."""
    return [record(start + i, name) for i, name in enumerate(names)]


class FakeLogs:
    """Records of logs in memory, behind `migrate.match.next_record.ReadNext`."""

    def __init__(self, logs: Mapping[TopicPartition, Collection[NextRecord]]):
        self.logs = logs

    def __call__(self, positions: Collection[Position]) -> Mapping[Position, tuple[NextRecord, ...] | Failure]:
        return {
            p: tuple(r for r in self.logs[p.partition] if p.offset <= r.offset < p.end)[: p.most] for p in positions
        }


def sides(
    source: Collection[NextRecord], target: Collection[NextRecord], source_start: int = 0, target_start: int = 0,
    source_end: int = 200, target_end: int = 100,
) -> Logs:  # fmt: skip
    """Two clusters with one partition each, whose logs end as `plans.row` has it."""
    a = FakeCluster(Side.SOURCE, "A", ranges={THERE: LogRange(source_start, source_end)})
    b = FakeCluster(ranges={HERE: LogRange(target_start, target_end)})
    return LogSide(a, FakeLogs({THERE: source})), LogSide(b, FakeLogs({HERE: target}))


def exact(**changes: Any) -> Row:
    values = {"grade": Grade.EXACT, "method": Method.MATCH, "rereads_at_most": 0, "equality": "all", "why": "proven"}
    return row("g", **(values | changes))


def as_planned(*rows: Row) -> tuple[VerifyFinding, ...]:
    commits = {r.group: {r.target_partition: Commit(standing_offset(r) or 0)} for r in rows}
    return compare(plan(*rows), commits).findings


def proved(found: Row, logs: Logs, **options: Any) -> RecordProof:
    """The proof of a row whose offset is where it was planned."""
    return prove([found], as_planned(found), *logs, NoProgress(), **options)


def moved(found: Row, seen: int | None, logs: Logs, consumed: bool = False) -> RowProof:
    """The proof of a row whose group has another offset committed now; `consumed` says that consumers ran."""
    commits = {} if seen is None else {found.target_partition: Commit(seen)}
    findings = compare(plan(found), {found.group: commits}, known=Known(consumers_ran=consumed)).findings
    (proof,) = prove([found], findings, *logs, NoProgress()).rows
    return proof


NOW = [record(120, 7)]
SAME, OTHER = [record(60, 7)], [record(60, 8)]
OWED_NOTHING = exact(source_committed=200, target_offset=100)
CHOSEN = row("g", grade=None, method=Method.EXPLICIT)
KEPT_AHEAD = exact(decision=Decision.KEEP, reason="ahead-kept", target_offset=40, target_prior=60)
SHORT = exact(source_log_end=130, target_log_end=65)
OF_A = [record(120, 7, key=b"a"), record(121, 8, key=b"b"), record(130, 9, key=b"a")]
KEYLESS, OF_B, COPY_OF_B = record(120, 7, key=None), record(121, 8, key=b"b"), record(60, 8, key=b"b")
TAKEN = "compaction may have taken it"

# What a row is, the records of both logs, the verdict, words of its sentence, and where the logs start.
CASES: dict[str, tuple[Any, ...]] = {
    "the same record": (exact(), NOW, SAME, V.EQUAL, ""),
    "another record": (exact(), NOW, OTHER, V.DIFFERENT, ""),
    "one record early": (exact(), NOW, copies([6, 7, 8], 60), V.DIFFERENT, ""),
    "estimated, earlier": (row("g"), NOW, copies([4, 5, 6, 7], 60), V.EARLIER, "3 records further on"),
    "estimated, beyond": (
        row("g"), NOW, [*copies([6, 7], 58), *copies([8, 9], 60)], V.NOT_FOUND, "None of the target's next 2 records",
    ),
    "both at the end": (OWED_NOTHING, [], [], V.AT_END, ""),
    "written after the plan": (SHORT, [record(150, 9)], [record(70, 8)], V.AT_END, ""),
    # Without a key: no cleaner takes it.
    "the source alone ends": (exact(), [], [record(60, 7, key=None)], V.DIFFERENT, ""),
    "the target alone ends": (exact(), [KEYLESS], [], V.DIFFERENT, ""),
    "estimated, the source alone ends": (row("g"), [], SAME, V.EARLIER, ""),
    "estimated, the target alone ends": (row("g"), NOW, [], V.NOT_FOUND, ""),
    "retention on the source": (exact(), [record(150, 9)], SAME, V.REMOVED, "source's records from 120 on", 150),
    "retention on a source that was down": (exact(source_log_end=None), [record(150, 9)], SAME, V.REMOVED, "", 150),
    "retention on the target": (exact(), NOW, [record(80, 9)], V.REMOVED, "target's records from 60 on", 0, 80),
    "equal below both starts": (exact(), [record(150, 9)], [record(75, 9)], V.REMOVED, "", 150, 75),
    "at the end below both starts": (exact(), [], [], V.REMOVED, "", 200, 100),
    "owed nothing, both emptied": (OWED_NOTHING, [], [], V.AT_END, "", 200, 100),
    "compacted on the source": (exact(), [record(125, 9)], copies([7, 8, 9], 60), V.REMOVED, ""),
    "compacted on the target": (exact(), NOW, [record(64, 9)], V.REMOVED, "no record at 60 any more"),
    "never copied, as superseded": (
        exact(), OF_A, [COPY_OF_B, record(61, 9, key=b"a")], V.REMOVED,
        "next record has no copy, as compaction leaves it",
    ),
    "no copy of the last of its key": (exact(), [record(120, 7, key=b"c"), OF_B], [COPY_OF_B], V.DIFFERENT, ""),
    "no copy of one without a key": (exact(), [KEYLESS, OF_B], [COPY_OF_B], V.DIFFERENT, ""),
    "no copy of a tombstone": (exact(), [record(120, 7, key=b"a", value=None), OF_B], [COPY_OF_B], V.REMOVED, ""),
    "the last of its key gone on the source": (exact(), [], SAME, V.REMOVED, TAKEN),
    "the last of its key gone on the target": (exact(), NOW, [], V.REMOVED, TAKEN),
    "still to come": (exact(target_offset=100), [KEYLESS], [], V.NOT_FOUND, ""),
    "counted as missing": (exact(missing_on_target=1), [KEYLESS], [], V.NOT_FOUND, "counted 1 record"),
    "counted as missing, others there": (
        exact(missing_on_target=2), NOW, [record(60, 9)], V.NOT_FOUND, "2 records without a copy",
    ),
    "a transaction's marker excuses no wrong offset": (
        exact(), [record(121, 7, key=None)], [record(60 + n, 5 + n, key=None) for n in range(3)], V.DIFFERENT, "",
    ),
    "a record that looks the same further on is another": (
        exact(), [record(120, 7, 1), record(121, 8, 1, key=b"b")], [record(61, 8, 1, key=b"b"), record(70, 7, 1)],
        V.REMOVED, "no record at 60 any more",
    ),
    "headers, which the evidence leaves out": (
        exact(equality="without-headers"), NOW, [record(60, 7, headers=[])], V.EQUAL, "",
    ),
    "headers, which it names": (exact(), NOW, [record(60, 7, headers=[])], V.DIFFERENT, ""),
    "chosen by a reviewer": (CHOSEN, NOW, OTHER, V.CHOSEN, ""),
    "kept ahead": (KEPT_AHEAD, NOW, OTHER, V.CHOSEN, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_two_found_records_prove(case):
    found, source, target, verdict, said, *starts = CASES[case]
    proof = proved(found, sides(source, target, *starts))
    assert proof.rows[0].verdict is verdict and said in proof.rows[0].sentence
    # Where no row is proven it ends partly.
    unproven = verdict in (V.REMOVED, V.NOT_FOUND, V.CHOSEN)
    assert proof.exit_code == (1 if verdict is V.DIFFERENT else 4 if unproven else 0)


def test_how_far_the_record_was_is_told_and_what_differs():
    early = proved(exact(), sides(NOW, copies([6, 7, 8], 60))).rows[0]
    assert (early.found_at, early.records_before) == (61, 1)
    assert proved(row("g"), sides(NOW, copies([4, 5, 6, 7], 60))).rows[0].records_before == 3
    assert proved(exact(), sides([record(125, 9)], copies([7, 8, 9], 60))).rows[0].found_at == 62
    different = proved(exact(), sides(NOW, OTHER)).rows[0]
    assert different.differing == (Part.TIMESTAMP, Part.VALUE, Part.HEADERS)
    alike = proved(row("g"), sides(NOW, [record(60, 7, timestamp=1, headers=[])])).rows[0]
    assert alike.verdict is V.ALIKE and alike.differing == (Part.TIMESTAMP, Part.HEADERS)


def test_an_empty_target_that_the_plan_took_to_be_copied_in_full_fails_and_one_proven_row_is_enough_for_0():
    emptied = row("g", offset=0, target_log_end=0)
    proof = proved(emptied, sides(NOW, [], target_end=0))
    assert proof.rows[0].verdict is V.NOTHING_LEFT and proof.exit_code == 1
    waiting = proved(emptied, sides(NOW, [], target_end=0), still_copied={"orders"})
    assert waiting.rows[0].verdict is V.NOT_FOUND and waiting.exit_code == 4
    same = proved(exact(), sides(NOW, SAME))
    assert same.exit_code == 0 and replace(waiting, rows=waiting.rows + same.rows).exit_code == 0
    assert RecordProof(()).exit_code == 0


def proved_in_long_logs(source: Collection[NextRecord], target: Collection[NextRecord]) -> RowProof:
    logs = sides(source, target, source_end=2000, target_end=2000)
    return proved(exact(source_log_end=2000, target_log_end=2000), logs).rows[0]


@pytest.mark.parametrize("gap", [300, 1500])
def test_a_record_is_looked_for_as_far_as_the_source_has_lost_records_since(gap):
    names = range(1000, 1030)
    proof = proved_in_long_logs(copies(names, 120 + gap), [*copies(range(gap), 60), *copies(names, 60 + gap)])
    assert proof.verdict is V.REMOVED and "has no record at 120 any more" in proof.sentence
    assert proof.records_before == (gap if gap < LOOK_AHEAD else None)


def test_where_too_few_records_were_looked_through_to_tell_nothing_is_said_to_differ():
    source = [record(120 + n, n, key=b"%d" % n) for n in range(LOOK_AHEAD + 500)]
    proof = proved_in_long_logs(source, [record(60, 1, key=b"1")])
    assert proof.verdict is V.NOT_FOUND and "or not" in proof.sentence


def test_a_log_that_ends_before_what_the_plan_saw_or_is_not_read_or_is_left_out_of_the_answer_proves_nothing():
    for side, cut in ((Side.SOURCE, {"source_end": 190}), (Side.TARGET, {"target_end": 90})):
        (proof,) = proved(exact(), sides(NOW, SAME, **cut)).rows
        assert proof.verdict is V.UNREADABLE and f"The {side}'s log ends at" in proof.sentence
    source, target = sides(NOW, SAME)
    left_out = LogSide(source.admin, lambda positions: {}), target
    assert proved(exact(), left_out).exit_code == 1
    source.admin.ranges.clear()
    unread = proved(row("g"), (source, target))
    assert unread.rows[0].verdict is V.UNREADABLE and unread.exit_code == 1


def test_rows_without_an_offset_or_that_nobody_was_to_write_are_left_out_and_a_limit_says_how_many_more_there_are():
    rows = [row("a"), row("b"), row("c", decision=Decision.BLOCK), row("d", source_committed=None), row("e")]
    findings = as_planned(rows[0], rows[1], rows[3], rows[4])
    proof = prove(rows, findings, *sides(NOW, SAME), NoProgress(), limit=2)
    assert [p.row.group for p in proof.rows] == ["a", "b"] and proof.left_out == 1
    out = Known(JournalState(events=1, applied={"other": GroupTrace({HERE: 1}, {}, True)}))
    findings = compare(plan(row("g")), {}, known=out).findings
    assert prove([row("g")], findings, *sides(NOW, SAME), NoProgress()).rows == ()


def test_an_offset_that_was_moved_ahead_is_never_equal_and_the_planned_record_is_beside_it():
    logs = sides(NOW, [*copies([7, 8, 9], 60), record(95, 7)])
    for found in (exact(), row("g")):
        proof = moved(found, 62, logs)
        assert proof.verdict is V.BEYOND and proof.verdict in FAILED
        assert "2 beyond the planned 60" in proof.sentence
        assert proof.target.record == record(62, 9) and proof.planned.record == SAME[0]
        # A record that looks the same further on is another copy: what is between is skipped all the same.
        assert moved(found, 95, logs).verdict is V.BEYOND
    # Nor is one beyond the end the end of both logs.
    assert moved(exact(source_committed=200, target_offset=90), 100, sides([], [])).verdict is V.BEYOND


def test_an_offset_behind_the_planned_one_is_compared_where_it_is_and_says_how_far_the_record_is():
    logs = sides(NOW, copies(range(1, 9), 54))
    proof = moved(exact(), 55, logs)
    assert proof.verdict is V.DIFFERENT and (proof.found_at, proof.records_before) == (60, 5)
    assert moved(row("g"), 55, logs).verdict is V.EARLIER and proof.planned.record == SAME[0]
    far = row("g", offset=400, target_log_end=500, rereads_estimate=0)
    logs = sides([record(120, 401)], copies(range(1, 500)), target_end=500)
    assert moved(far, 100, logs).found_at == 400, "it is looked for from the committed one, not from the planned one"


def test_no_committed_offset_is_no_proof_and_says_what_was_planned_or_which_log_could_not_be_read():
    logs = sides(NOW, SAME)
    proof = moved(row("g"), None, logs)
    assert proof.verdict is V.UNCOMMITTED and proof.verdict in FAILED and proof.planned.record == SAME[0]
    dark = compare(plan(row("g")), {"g": DENIED}).findings
    assert prove([row("g")], dark, *logs, NoProgress()).rows[0].verdict is V.UNREADABLE
    logs[0].admin.ranges[THERE] = Failure("TOPIC_AUTHORIZATION_FAILED", "grant the principal READ on the topic")
    proof = moved(row("g"), None, logs)
    assert proof.verdict is V.UNCOMMITTED and "READ on the topic" in proof.sentence


def test_where_consumers_have_moved_on_what_they_began_with_is_compared_and_both_are_shown():
    logs = sides(NOW, [*copies([7, 8, 9], 60), record(140, 50)], target_end=150)
    proof = moved(exact(), 62, logs, consumed=True)
    assert proof.verdict is V.MOVED_ON and proof.verdict not in FAILED
    assert proof.sentence == "Consumers have moved on to 62. At the planned offset: The same record."
    assert proof.target.record == record(62, 9) and proof.planned.record == SAME[0]
    # Beyond what the plan pinned the record is shown all the same: producers have moved too.
    assert moved(exact(), 120, logs, consumed=True).target.record == record(140, 50)
    wrong = moved(exact(), 62, sides([record(120, 5)], copies([7, 8, 9], 60)), consumed=True)
    assert wrong.verdict is V.DIFFERENT


@pytest.fixture
def mixed() -> RecordProof:
    """Rows of several verdicts: one that could not be read, and one that is not at its planned offset."""
    there, early = Next(120, 0, 200, NOW[0]), Next(60, 0, 100, record(60, 5))
    rows = [
        judge(exact(), there, Next(60, 0, 100, SAME[0])),
        judge(exact(), Next(200, 0, 200, None), Next(100, 0, 100, None)),
        judge(exact(), there, Next(60, 0, 100, OTHER[0])),
        judge(row("lagging"), there, early, copies([5, 6, 7], 60)),
        judge(row("dark"), Failure("TOPIC_AUTHORIZATION_FAILED", "no"), early),
        moved(row("ahead"), 62, sides(NOW, copies([7, 8, 9], 60))),
    ]
    return RecordProof(tuple(rows), 3)


@pytest.mark.parametrize("width", [80, 200])
def test_the_text_keeps_to_its_width_and_names_every_row_and_both_sides(mixed, width):
    lines = list(proof_lines(mixed, plan(*(p.row for p in mixed.rows[3:])), width, False))
    assert all(cells(line) <= width for line in lines), lines
    text = "\n".join(lines)
    assert lines[0] == "RECORDS NOT AS PLANNED: 3 of 6 rows"
    words = ["lagging", "dark", "2023-11-14T22:13:20.007Z", "end of log", "They differ in", "3 more rows not looked"]
    assert [word for word in (*words, "no consumer accounts for it") if word not in text] == []
    assert SECRET not in text and text.count(NOW[0].fingerprint()) == 6
    assert sum(line.rstrip().endswith("  planned") for line in lines) == 1


def test_the_json_document_has_every_row_with_both_sides(mixed):
    made = plan(*(p.row for p in mixed.rows[3:]))
    text = "\n".join(verify_document(Verification(()), made, mixed, 0))
    document = json.loads(text)
    assert [r["verdict"] for r in document["records"]] == [str(p.verdict) for p in mixed.rows]
    assert document["record_counts"]["equal"] == 1 and document["record_rows_left_out"] == 3
    first, _, _, earlier, dark, ahead = document["records"]
    assert first["source"]["record"]["fingerprint"] == first["target"]["record"]["fingerprint"]
    assert first["compared"] == ["timestamp", "key", "value", "headers"] == [str(p) for p in Part if p in ALL_PARTS]
    assert (earlier["found_at"], earlier["records_before"]) == (62, 2)
    assert "TOPIC_AUTHORIZATION_FAILED" in dark["source"]["error"] and SECRET not in text
    assert (ahead["verdict"], ahead["target"]["looked_from"], ahead["planned"]["looked_from"]) == ("beyond", 62, 60)
    assert first["planned"] is None and document["exit_code"] == 1
