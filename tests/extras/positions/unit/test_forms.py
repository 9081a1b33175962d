"""What holders are to be set to, in each form: read back by what reads it, where that can be done without it."""

import csv
import json
import re
from io import StringIO

import pytest

from migrate.errors import Refused, UsageError
from migrate.extras.positions.forms import beside, csv_of_positions, json_lines_of_positions, lines_of_form, selected
from migrate.extras.positions.held import parse_csv, parse_json_lines
from migrate.model import Decision, Level
from tests.builders import make_check, make_row, make_untranslated
from tests.extras.positions.unit.positionplans import make_positions, origin_of

EXACT = {"rereads_at_most": 0, "rereads_estimate": None}
JOB = [
    make_row("job", "orders", 0, target_offset=1112, **EXACT),
    make_row("job", "orders", 1, target_offset=4720, **EXACT),
]
TWO_TOPICS = [*JOB, make_row("job", "views", 0, target_offset=5, **EXACT)]
BATCH = 'v1\n{"batchWatermarkMs":0, "conf":{}}\n{"orders":{"1":700,"0":700}}\n-\n{"logOffset":3}'


def printed(form: str, *rows, **header) -> list[str]:
    plan = make_positions(rows, **header)
    return list(lines_of_form(plan, form, list(plan.holders())))


def said(form: str, *rows, **header) -> str:
    plan = make_positions(rows, **header)
    return "\n".join(beside(plan, form, list(plan.holders())))


def rewritten(*rows, content: str = BATCH, **header) -> str:
    return "\n".join(printed("spark-checkpoint", *rows, origins=(origin_of("job", content=content),), **header))


KAFKA_END = '{"type":"kafka","partitions":{"type":"end","stream":'
AT = "'scan.startup.mode'='specific-offsets', 'scan.startup.specific-offsets'="


@pytest.mark.parametrize(("form", "lines"), [
    ("spark", ['{"A.orders":{"0":1112,"1":4720},"A.views":{"0":5}}']),
    ("flink", ["A.orders,0,1112", "A.orders,1,4720", "A.views,0,5"]),
    ("flink-sql", [f"'topic'='A.orders', {AT}'partition:0,offset:1112;partition:1,offset:4720'",
                   f"'topic'='A.views', {AT}'partition:0,offset:5'"]),
    ("kcg", ["job,A.orders,0,1112", "job,A.orders,1,4720", "job,A.views,0,5"]),
    ("hudi", ["A.orders,0:1112,1:4720", "A.views,0:5"]),
    ("druid", [KAFKA_END + '"A.orders","partitionOffsetMap":{"0":1112,"1":4720}}}',
               KAFKA_END + '"A.views","partitionOffsetMap":{"0":5}}}']),
    ("routine-load", ['ALTER ROUTINE LOAD FOR job FROM KAFKA("kafka_topic"="A.orders",'
                      '"kafka_partitions"="0,1","kafka_offsets"="1112,4720");',
                      'ALTER ROUTINE LOAD FOR job FROM KAFKA("kafka_topic"="A.views",'
                      '"kafka_partitions"="0","kafka_offsets"="5");']),
    ("connect", ['{"offsets":['
                 '{"partition":{"kafka_topic":"A.orders","kafka_partition":0},"offset":{"kafka_offset":1112}},'
                 '{"partition":{"kafka_topic":"A.orders","kafka_partition":1},"offset":{"kafka_offset":4720}},'
                 '{"partition":{"kafka_topic":"A.views","kafka_partition":0},"offset":{"kafka_offset":5}}]}']),
])  # fmt: skip
def test_each_form_has_its_own_grammar(form, lines):
    assert printed(form, *TWO_TOPICS) == lines


def test_partitions_are_in_the_order_of_their_numbers_and_not_of_their_texts():
    rows = [make_row("job", "orders", p, target_offset=100 + p) for p in range(12)]
    assert list(json.loads(printed("spark", *reversed(rows))[0])["A.orders"]) == [str(p) for p in range(12)]


def test_a_job_with_a_name_that_is_no_identifier_is_quoted():
    rows = [make_row("my `job`; drop", "orders", 0, target_offset=1)]
    assert printed("routine-load", *rows)[0].startswith("ALTER ROUTINE LOAD FOR `my ``job``; drop` FROM KAFKA(")


@pytest.mark.parametrize(("form", "lines", "told"), [
    ("spark", ['{"A.orders":{"0":1112,"1":4720,"2":-2,"3":-2}}'],
     "2 partitions at -2, which is earliest: A.orders-2, A.orders-3. "),
    ("routine-load", ['ALTER ROUTINE LOAD FOR job FROM KAFKA("kafka_topic"="A.orders",'
                      '"kafka_partitions"="0,1,2,3","kafka_offsets"="1112,4720,0,0");'],
     "2 partitions at 0, or where its log starts: A.orders-2, A.orders-3. "),
])  # fmt: skip
def test_who_starts_at_the_end_of_what_is_not_named_is_told_every_partition_the_unknown_ones_from_the_beginning(
    form, lines, told
):
    rows = [*JOB, make_untranslated(Decision.SKIP, "target-topic-missing", "job", "orders", 2)]
    copies = {"A.orders": 4, "A.others": 9}
    assert printed(form, *rows, copies=copies) == lines
    beside_it = said(form, *rows, copies=copies)
    assert told in beside_it and "no record is skipped" in beside_it and "LEFT OUT: 1 position " in beside_it
    assert "partitions at" not in said("csv", *rows, copies=copies)


def test_csv_and_json_lines_are_read_again_by_plan():
    rows = [*TWO_TOPICS, make_row("other", "orders", 0, target_offset=9)]
    plan = make_positions(rows, last=rows[-1:])
    read = list(parse_csv([f"{line}\n" for line in csv_of_positions(plan, rows)], "jobs.csv"))
    assert [(p.holder, p.topic, p.partition, p.source_next) for p in read] == [
        (row.group, row.target_topic, row.partition, row.target_offset) for row in rows
    ]
    assert read == list(parse_json_lines(json_lines_of_positions(plan, rows), "jobs.jsonl"))


def test_a_holder_that_keeps_the_last_record_done_is_told_that_and_minus_one_is_never_printed():
    rows = [make_row(holder, target_offset=offset) for holder, offset in (("a", 9), ("b", 0), ("c", 9))]
    plan = make_positions(rows, last=rows[:2])
    in_csv = csv.DictReader(StringIO("\n".join(csv_of_positions(plan, rows))))
    in_json = map(json.loads, json_lines_of_positions(plan, rows))
    expected = [("8", "last"), ("none", "last"), ("9", "next")]
    assert [(row["offset"], row["meaning"]) for row in in_csv] == expected
    assert [(str(row["offset"]), row["meaning"]) for row in in_json] == expected
    warning = "WARNING: `none` stands where no record is done yet: start there from the beginning, not from -1."
    assert warning in beside(plan, "csv", ["a", "b"]) and warning not in beside(plan, "csv", ["a", "c"])


def test_a_blocked_holder_is_refused_with_its_reason_and_the_others_are_printed():
    blocked = [
        make_row("stuck", "orders", 0, decision=Decision.BLOCK, reason="holder-blocked"),
        make_row("stuck", "orders", 1, decision=Decision.BLOCK, reason="missing-on-target"),
    ]
    plan = make_positions([*JOB, *blocked])
    with pytest.raises(Refused, match="1 holder blocked: stuck: missing-on-target"):
        selected(plan, list(plan.holders()))
    assert selected(plan, ["job"]) == JOB


def test_a_rewritten_batch_is_the_old_one_but_for_each_of_kafkas_lines():
    assert rewritten(*JOB) == BATCH.replace('{"orders":{"1":700,"0":700}}', '{"A.orders":{"1":4720,"0":1112}}')
    content = 'v1\n{}\n{"orders":{"0":700,"1":700}}\n12\n{"views":{"0":700},"orders":{"1":700}}'
    assert rewritten(*TWO_TOPICS, content=content).split("\n")[2:] == [
        '{"A.orders":{"0":1112,"1":4720}}', "12", '{"A.views":{"0":5},"A.orders":{"1":4720}}',
    ]  # fmt: skip


def test_a_batch_is_not_rewritten_from_a_file_with_a_partition_missing_or_under_one_that_was_begun_after_it():
    """The sink may have batch 18: it would drop the one of that number on the target, which has other records."""
    with pytest.raises(UsageError, match="job is from a file"):
        printed("spark-checkpoint", *JOB)
    with pytest.raises(Refused, match="job has no place on the target for orders-1"):
        rewritten(*JOB[:1])
    nowhere = make_untranslated(Decision.SKIP, "target-topic-missing", "job", "orders", 0)
    with pytest.raises(Refused, match="job has no place on the target for orders-1"):
        rewritten(nowhere)
    assert printed("spark", nowhere, copies={"A.orders": 2}) == ['{"A.orders":{"0":-2,"1":-2}}']
    seen = "batch 18 was begun and not finished: its rows stand where batch 17 ended"
    opened = make_check("spark-batch-open", "job", level=Level.BLOCK, seen=seen, accepted=True)
    with pytest.raises(Refused, match="batch 18 was begun and not finished") as refused:
        rewritten(*JOB, checks=(opened,))
    assert "new output folder" in refused.value.todo


def test_a_new_checkpoint_of_a_query_with_a_state_is_said_to_begin_without_it():
    stateful, stateless = ({"origins": (origin_of("job", is_stateful=is_stateful),)} for is_stateful in (True, False))
    assert "job keeps a state" in said("spark", *JOB, **stateful)
    assert "keeps a state" not in said("spark", *JOB, **stateless)
    rewriting = said("spark-checkpoint", *JOB, **stateful)
    assert "keeps a state" not in rewriting and "N is 17." in rewriting


def test_partitions_without_a_position_re_reads_and_what_may_be_skipped_are_said_beside_the_text():
    absent = make_check("holder-partitions", "job", seen="none on orders-1")
    again = said("spark", make_row("job", "orders", 0), checks=(absent,))
    assert "none on orders-1" in again and "1 position may read records twice" in again
    at_end = {"lower_kind": "log-latest", "rereads_at_most": None, "rereads_estimate": None}
    skips = said("spark", make_row("job", "orders", 0, **at_end))
    assert "1 position MAY SKIP records" in skips and "job A.orders-0" in skips and "twice" not in skips
    assert not re.search("MAY SKIP|twice|LEFT OUT", said("spark", *JOB))
