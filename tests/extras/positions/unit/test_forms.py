"""What holders are to be set to, in each form: read back by what reads it, where that can be done without it."""

import csv
import json
import re
from dataclasses import replace
from io import StringIO

import pytest

from migrate.errors import Refused, UsageError
from migrate.extras.positions.forms import (
    BESIDE,
    FORMATS_OF_POSITIONS,
    beside,
    csv_of_positions,
    json_lines_of_positions,
    lines_of_form,
    selected,
)
from migrate.extras.positions.held import parse_csv, parse_json_lines
from migrate.model import Decision, Level
from tests.builders import make_check, make_untranslated
from tests.extras.positions.unit.positionplans import make_position, make_positions, origin_of

EXACT = {"rereads_at_most": 0, "rereads_estimate": None}
JOB = [
    make_position("job", "orders", 0, target_offset=1112, **EXACT),
    make_position("job", "orders", 1, target_offset=4720, **EXACT),
]
TWO_TOPICS = [*JOB, make_position("job", "views", 0, target_offset=5, **EXACT)]
BATCH = 'v1\n{"batchWatermarkMs":0, "conf":{}}\n{"orders":{"1":700,"0":700}}\n-\n{"logOffset":3}'


def printed(form: str, *rows) -> list[str]:
    plan = make_positions(rows)
    return list(lines_of_form(plan, form, list(plan.holders())))


def every_beside(plan, form: str) -> list[str]:
    return beside(plan, form, list(plan.holders()))


def rewritten(plan) -> str:
    return "\n".join(lines_of_form(plan, "spark-checkpoint", ["job"]))


def checkpointed(*rows, content: str = BATCH, batch: int = 17):
    return make_positions(rows, origins=(origin_of("job", "file:///job", batch, content),))


KAFKA_END = '{"type":"kafka","partitions":{"type":"end","stream":'
AT = "'scan.startup.mode'='specific-offsets', 'scan.startup.specific-offsets'="


@pytest.mark.parametrize(("form", "lines"), [
    ("spark", ['{"A.orders":{"0":1112,"1":4720},"A.views":{"0":5}}']),
    ("flink", ["A.orders,0,1112", "A.orders,1,4720", "A.views,0,5"]),
    ("flink-sql", [f"'topic'='A.orders', {AT}'partition:0,offset:1112;partition:1,offset:4720'",
                   f"'topic'='A.views', {AT}'partition:0,offset:5'"]),
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
    rows = [make_position("job", "orders", p, target_offset=100 + p) for p in range(12)]
    assert list(json.loads(printed("spark", *reversed(rows))[0])["A.orders"]) == [str(p) for p in range(12)]


def test_a_job_with_a_name_that_is_no_identifier_is_quoted():
    rows = [make_position("my `job`; drop", "orders", 0, target_offset=1)]
    assert printed("routine-load", *rows)[0].startswith("ALTER ROUTINE LOAD FOR `my ``job``; drop` FROM KAFKA(")


def test_a_routine_load_job_is_told_every_partition_since_it_starts_at_the_end_of_the_others():
    plan = with_copies(JOB, orders=3)
    assert list(lines_of_form(plan, "routine-load", ["job"])) == [
        'ALTER ROUTINE LOAD FOR job FROM KAFKA("kafka_topic"="A.orders",'
        '"kafka_partitions"="0,1,2","kafka_offsets"="1112,4720,0");'
    ]
    assert "1 partition at 0, or where its log starts: A.orders-2." in "\n".join(every_beside(plan, "routine-load"))


def test_csv_and_json_lines_are_read_again_by_plan():
    rows = [*TWO_TOPICS, make_position("other", "orders", 0, target_offset=9)]
    plan = make_positions(rows, last=rows[-1:])
    lines = [f"{line}\n" for line in csv_of_positions(plan, rows)]
    read = list(parse_csv(lines, "jobs.csv"))
    assert [(p.holder, p.topic, p.partition, p.source_next) for p in read] == [
        (row.group, row.target_topic, row.partition, row.target_offset) for row in rows
    ]
    assert read == list(parse_json_lines(json_lines_of_positions(plan, rows), "jobs.jsonl"))


def test_a_holder_that_keeps_the_last_record_done_is_told_the_last_record_done():
    rows = [make_position(target_offset=9), make_position("z", target_offset=9)]
    plan = make_positions(rows, last=rows[:1])
    told = list(csv.DictReader(StringIO("\n".join(csv_of_positions(plan, rows)))))
    assert [(row["offset"], row["meaning"]) for row in told] == [("8", "last"), ("9", "next")]


def test_before_the_first_record_there_is_no_last_one_and_minus_one_is_never_printed():
    rows = [make_position(target_offset=0)]
    plan = make_positions(rows, last=rows)
    (in_csv,) = csv.DictReader(StringIO("\n".join(csv_of_positions(plan, rows))))
    (in_json,) = map(json.loads, json_lines_of_positions(plan, rows))
    assert in_csv["offset"] == in_json["offset"] == "none"
    warning = "WARNING: `none` stands where no record is done yet: start there from the beginning, not from -1."
    assert warning in list(every_beside(plan, "csv"))


def test_what_is_selected_is_what_has_a_place_and_the_rest_is_said_to_be_left_out():
    left = make_untranslated(Decision.SKIP, "target-topic-missing", "job", "gone", 0)
    plan = make_positions([*JOB, left])
    rows = selected(plan, list(plan.holders()))
    assert rows == JOB
    assert any("LEFT OUT: 1 position " in line for line in every_beside(plan, "spark"))


def test_a_blocked_holder_is_refused_with_its_reason_and_the_others_are_printed():
    blocked = [
        make_position("stuck", "orders", 0, decision=Decision.BLOCK, reason="holder-blocked"),
        make_position("stuck", "orders", 1, decision=Decision.BLOCK, reason="missing-on-target"),
    ]
    plan = make_positions([*JOB, *blocked])
    with pytest.raises(Refused, match="1 holder blocked: stuck: missing-on-target"):
        selected(plan, list(plan.holders()))
    assert selected(plan, ["job"]) == JOB


def test_a_rewritten_batch_is_the_old_one_but_for_kafkas_lines():
    assert "N is 17." in every_beside(checkpointed(*JOB), "spark-checkpoint")
    assert rewritten(checkpointed(*JOB)) == BATCH.replace(
        '{"orders":{"1":700,"0":700}}', '{"A.orders":{"1":4720,"0":1112}}'
    )


def test_a_batch_is_not_rewritten_under_one_that_was_begun_after_it():
    """The sink may have batch 18: it would drop the one of that number on the target, which has other records."""
    seen = "batch 18 was begun and not finished: its rows stand where batch 17 ended"
    opened = make_check("spark-batch-open", "job", level=Level.BLOCK, seen=seen, accepted=True)
    plan = checkpointed(*JOB)
    plan = make_positions(plan.rows, origins=plan.header.origins, checks=(opened,))
    with pytest.raises(Refused, match="batch 18 was begun and not finished") as refused:
        rewritten(plan)
    assert "new output folder" in refused.value.todo


def test_a_new_checkpoint_of_a_query_with_a_state_is_said_to_begin_without_it():
    (origin,) = checkpointed(*JOB).header.origins
    stateful = make_positions(JOB, origins=(replace(origin, is_stateful=True),))
    assert any("job keeps a state" in line for line in every_beside(stateful, "spark"))
    assert not any("keeps a state" in line for line in every_beside(stateful, "spark-checkpoint"))
    assert not any("keeps a state" in line for line in every_beside(checkpointed(*JOB), "spark"))


def test_two_kafka_sources_of_a_query_are_rewritten_each_in_its_line():
    content = 'v1\n{}\n{"orders":{"0":700,"1":700}}\n12\n{"views":{"0":700},"orders":{"1":700}}'
    assert rewritten(checkpointed(*TWO_TOPICS, content=content)).split("\n")[2:] == [
        '{"A.orders":{"0":1112,"1":4720}}', "12", '{"A.views":{"0":5},"A.orders":{"1":4720}}',
    ]  # fmt: skip


def test_a_batch_is_not_rewritten_with_a_partition_missing():
    with pytest.raises(Refused, match="job has no place on the target for orders-1"):
        rewritten(checkpointed(*JOB[:1]))


def test_a_holder_from_a_file_has_no_batch_to_rewrite():
    with pytest.raises(UsageError, match="job is from a file"):
        rewritten(make_positions(JOB))


def test_every_form_says_what_changes_beside_it():
    assert set(BESIDE) == set(FORMATS_OF_POSITIONS)
    for form, word in (("spark", "NEW checkpointLocation"), ("spark", "_spark_metadata"), ("flink", "NEW uid"),
                       ("hudi", "--checkpoint"), ("druid", "resetOffsets"), ("connect", "STOPPED"),
                       ("routine-load", "PAUSE"),
                       ("spark-checkpoint", "Copy the query's checkpoint folder")):  # fmt: skip
        assert word in BESIDE[form]
    assert all(re.fullmatch(r"[ -~]+", text) for text in BESIDE.values())


def test_partitions_without_a_position_and_re_reads_are_said_beside_the_text():
    rows = [make_position("job", "orders", 0)]
    plan = make_positions(rows, checks=(make_check("holder-partitions", "job", seen="none on orders-1"),))
    said = "\n".join(every_beside(plan, "spark"))
    assert "none on orders-1" in said and "1 position may read records twice" in said


def with_copies(rows, **copies):
    return make_positions(rows, copies={f"A.{topic}": count for topic, count in copies.items()})


def test_spark_is_told_every_partition_of_the_targets_topics_the_unknown_ones_from_the_beginning():
    skipped = make_untranslated(Decision.SKIP, "target-topic-missing", "job", "orders", 2)
    plan = with_copies([*JOB, skipped], orders=4, others=9)
    assert list(lines_of_form(plan, "spark", ["job"])) == ['{"A.orders":{"0":1112,"1":4720,"2":-2,"3":-2}}']
    said = "\n".join(every_beside(plan, "spark"))
    assert "2 partitions at -2, which is earliest: A.orders-2, A.orders-3." in said and "no record is skipped" in said
    assert "-2" not in "\n".join(every_beside(plan, "csv"))


def test_a_position_at_a_logs_end_is_said_to_skip_and_not_to_repeat():
    rows = [make_position("job", "orders", 0, lower_kind="log-latest", rereads_at_most=None, rereads_estimate=None)]
    said = "\n".join(every_beside(make_positions(rows), "spark"))
    assert "1 position MAY SKIP records" in said and "job A.orders-0" in said and "twice" not in said
    assert "MAY SKIP" not in "\n".join(every_beside(make_positions(JOB), "spark"))
